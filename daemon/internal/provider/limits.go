package provider

import "strings"

// A Limit is what is known about a model without a request: tokens, and prices in US dollars for a million of them. 0 is
// unknown.
type Limit struct {
	ContextWindow, MaxOutput             int
	Input, Output, CacheRead, CacheWrite float64
}

// limits are the published figures by prefix of a model's name, a longer prefix before a shorter one. Models that are not in
// the table get their limits from the server and have no price.
var limits = []struct {
	prefix string
	Limit
}{
	{"claude-3-5-haiku", Limit{200_000, 8_192, 0.80, 4, 0.08, 1}},
	{"claude-3-haiku", Limit{200_000, 4_096, 0.25, 1.25, 0.03, 0.30}},
	{"claude-haiku-4-5", Limit{200_000, 64_000, 1, 5, 0.10, 1.25}},
	{"claude-sonnet-4-", Limit{200_000, 64_000, 3, 15, 0.30, 3.75}},
	{"claude-opus-4-5", Limit{200_000, 64_000, 5, 25, 0.50, 6.25}},
	{"claude-opus-4-1", Limit{200_000, 32_000, 15, 75, 1.50, 18.75}},
	{"claude-opus-4-2", Limit{200_000, 32_000, 15, 75, 1.50, 18.75}}, // names with a date: claude-opus-4-2025…
	{"claude-", Limit{200_000, 32_000, 0, 0, 0, 0}},
	{"gpt-4o-mini", Limit{128_000, 16_384, 0.15, 0.60, 0.075, 0}},
	{"gpt-4o", Limit{128_000, 16_384, 2.50, 10, 1.25, 0}},
	{"gpt-4.1-nano", Limit{1_047_576, 32_768, 0.10, 0.40, 0.025, 0}},
	{"gpt-4.1-mini", Limit{1_047_576, 32_768, 0.40, 1.60, 0.10, 0}},
	{"gpt-4.1", Limit{1_047_576, 32_768, 2, 8, 0.50, 0}},
	{"gpt-4-turbo", Limit{128_000, 4_096, 10, 30, 0, 0}},
	{"gpt-5-mini", Limit{400_000, 128_000, 0.25, 2, 0.025, 0}},
	{"gpt-5-nano", Limit{400_000, 128_000, 0.05, 0.40, 0.005, 0}},
	{"gpt-5", Limit{400_000, 128_000, 0, 0, 0, 0}},
	{"gpt-3.5-turbo", Limit{16_385, 4_096, 0.50, 1.50, 0, 0}},
	{"o4-mini", Limit{200_000, 100_000, 1.10, 4.40, 0.275, 0}},
	{"o3-mini", Limit{200_000, 100_000, 1.10, 4.40, 0.55, 0}},
	{"o3", Limit{200_000, 100_000, 2, 8, 0.50, 0}},
	{"o1", Limit{200_000, 100_000, 0, 0, 0, 0}},
	{"gemini-", Limit{1_048_576, 65_536, 0, 0, 0, 0}},
	{"deepseek-", Limit{128_000, 8_192, 0, 0, 0, 0}},
}

// KnownLimit returns the limits of a model by name, ignoring the vendor in "vendor/model"; the zero Limit if unknown.
func KnownLimit(model string) Limit {
	model = strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	for _, l := range limits {
		if strings.HasPrefix(model, l.prefix) {
			return l.Limit
		}
	}
	return Limit{}
}

// Cost returns the price of u in US dollars; nil if a needed price is unknown, or no tokens were counted.
func (l Limit) Cost(u Usage) *float64 {
	if u == (Usage{}) || l.Input == 0 || l.Output == 0 || u.CacheWrite > 0 && l.CacheWrite == 0 {
		return nil
	}
	cached := l.CacheRead
	if cached == 0 {
		cached = l.Input
	}
	usd := (float64(u.Input)*l.Input + float64(u.Output)*l.Output + float64(u.CacheRead)*cached + float64(u.CacheWrite)*l.CacheWrite) / 1e6
	return &usd
}
