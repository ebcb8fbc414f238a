package provider

import "strings"

// A Limit is what is known about a model without a request: tokens, and prices in US dollars for a million of them. 0 is
// unknown.
type Limit struct {
	ContextWindow, MaxOutput             int
	Input, Output, CacheRead, CacheWrite float64
}

// limits are the published figures by prefix of a model's name, a longer prefix before a shorter one. Models that are not in
// the table get their limits from the server and have no price; so has a new version of a family, unless its name begins with that of an
// older one.
//
// Prices are those of November 2026 for a request of ordinary length: platform.claude.com/docs/en/about-claude/pricing,
// developers.openai.com/api/docs/pricing, ai.google.dev/gemini-api/docs/pricing, and api-docs.deepseek.com/quick_start/pricing
// (its peak hours). Long requests may cost more (above 100,000 tokens, Claude Haiku 5.5 costs five times as much; above 272,000, gpt-6
// costs twice), and batches and promotions less. OpenAI's writes to its cache are not counted apart.
var limits = []struct {
	prefix string
	Limit
}{
	{"claude-fable-5-1", Limit{1_000_000, 128_000, 10, 50, 0.25, 12.50}},
	{"claude-fable-5", Limit{1_000_000, 128_000, 10, 50, 1, 12.50}},
	{"claude-opus-5-5", Limit{1_000_000, 128_000, 4, 20, 0.20, 5}},
	{"claude-opus-5", Limit{1_000_000, 128_000, 5, 25, 0.50, 6.25}},
	{"claude-opus-4-0", Limit{200_000, 32_000, 15, 75, 1.50, 18.75}},
	{"claude-opus-4-1", Limit{200_000, 32_000, 15, 75, 1.50, 18.75}},
	{"claude-opus-4-2", Limit{200_000, 32_000, 15, 75, 1.50, 18.75}}, // names with a date: claude-opus-4-2025…
	{"claude-opus-4-5", Limit{200_000, 64_000, 5, 25, 0.50, 6.25}},
	{"claude-opus-4-", Limit{1_000_000, 128_000, 5, 25, 0.50, 6.25}},
	{"claude-sonnet-5-5", Limit{1_000_000, 128_000, 2, 10, 0.10, 2.50}},
	{"claude-sonnet-5", Limit{1_000_000, 128_000, 2, 10, 0.20, 2.50}},
	{"claude-sonnet-4-6", Limit{1_000_000, 128_000, 3, 15, 0.30, 3.75}},
	{"claude-sonnet-4-", Limit{200_000, 64_000, 3, 15, 0.30, 3.75}},
	{"claude-haiku-5-5", Limit{1_000_000, 128_000, 0.10, 0.50, 0.01, 0.125}},
	{"claude-haiku-4-5", Limit{200_000, 64_000, 1, 5, 0.10, 1.25}},
	{"claude-3-5-haiku", Limit{200_000, 8_192, 0.80, 4, 0.08, 1}},
	{"claude-3-haiku", Limit{200_000, 4_096, 0.25, 1.25, 0.03, 0.30}},
	{"claude-", Limit{200_000, 32_000, 0, 0, 0, 0}},
	{"gpt-6.2-astra", Limit{1_050_000, 128_000, 8, 40, 0.40, 0}},
	{"gpt-6.2-sol", Limit{1_050_000, 128_000, 2, 10, 0.10, 0}},
	{"gpt-6.1-sol", Limit{1_050_000, 128_000, 2, 10, 0.10, 0}},
	{"gpt-6.1-terra", Limit{1_050_000, 128_000, 1, 5, 0.05, 0}},
	{"gpt-6-astra", Limit{1_050_000, 128_000, 10, 50, 1, 0}},
	{"gpt-6-sol", Limit{1_050_000, 128_000, 2, 10, 0.20, 0}},
	{"gpt-6-luna", Limit{1_050_000, 128_000, 0.10, 0.50, 0.01, 0}},
	{"gpt-6", Limit{1_050_000, 128_000, 0, 0, 0, 0}},
	{"gpt-5.6-terra", Limit{1_050_000, 128_000, 2, 12, 0.20, 0}},
	{"gpt-5.6-luna", Limit{1_050_000, 128_000, 0.20, 1.20, 0.02, 0}},
	{"gpt-5.6", Limit{1_050_000, 128_000, 4, 20, 0.40, 0}}, // gpt-5.6-sol, for which gpt-5.6 is another name
	{"gpt-5.5-pro", Limit{1_000_000, 128_000, 30, 180, 0, 0}},
	{"gpt-5.5", Limit{1_000_000, 128_000, 5, 30, 0.50, 0}},
	{"gpt-5.4-pro", Limit{1_000_000, 128_000, 30, 180, 0, 0}},
	{"gpt-5.4-mini", Limit{400_000, 128_000, 0.75, 4.50, 0.075, 0}},
	{"gpt-5.4-nano", Limit{400_000, 128_000, 0.20, 1.25, 0.02, 0}},
	{"gpt-5.4", Limit{1_000_000, 128_000, 2.50, 15, 0.25, 0}},
	{"gpt-5.3-codex", Limit{400_000, 128_000, 1.75, 14, 0.175, 0}},
	{"gpt-5.2-pro", Limit{400_000, 128_000, 21, 168, 0, 0}},
	{"gpt-5.2", Limit{400_000, 128_000, 1.75, 14, 0.175, 0}},
	{"gpt-5.1-codex-mini", Limit{400_000, 128_000, 0.25, 2, 0.025, 0}},
	{"gpt-5.1", Limit{400_000, 128_000, 1.25, 10, 0.125, 0}},
	{"gpt-5.", Limit{400_000, 128_000, 0, 0, 0, 0}},
	{"gpt-5-pro", Limit{400_000, 128_000, 15, 120, 0, 0}},
	{"gpt-5-mini", Limit{400_000, 128_000, 0.25, 2, 0.025, 0}},
	{"gpt-5-nano", Limit{400_000, 128_000, 0.05, 0.40, 0.005, 0}},
	{"gpt-5", Limit{400_000, 128_000, 1.25, 10, 0.125, 0}},
	{"gpt-4.1-nano", Limit{1_047_576, 32_768, 0.10, 0.40, 0.025, 0}},
	{"gpt-4.1-mini", Limit{1_047_576, 32_768, 0.40, 1.60, 0.10, 0}},
	{"gpt-4.1", Limit{1_047_576, 32_768, 2, 8, 0.50, 0}},
	{"gpt-4o-mini", Limit{128_000, 16_384, 0.15, 0.60, 0.075, 0}},
	{"gpt-4o", Limit{128_000, 16_384, 2.50, 10, 1.25, 0}},
	{"gpt-4-turbo", Limit{128_000, 4_096, 10, 30, 0, 0}},
	{"gpt-3.5-turbo", Limit{16_385, 4_096, 0.50, 1.50, 0, 0}},
	{"o4-mini", Limit{200_000, 100_000, 1.10, 4.40, 0.275, 0}},
	{"o3-pro", Limit{200_000, 100_000, 20, 80, 0, 0}},
	{"o3-mini", Limit{200_000, 100_000, 1.10, 4.40, 0.55, 0}},
	{"o3", Limit{200_000, 100_000, 2, 8, 0.50, 0}},
	{"o1-pro", Limit{200_000, 100_000, 150, 600, 0, 0}},
	{"o1", Limit{200_000, 100_000, 15, 60, 7.50, 0}},
	{"gemini-4-neon", Limit{1_048_576, 65_536, 3, 15, 0.15, 0}},
	{"gemini-4-hydrogen", Limit{1_048_576, 65_536, 1.50, 7.50, 0.075, 0}},
	{"gemini-3.8-flash", Limit{1_048_576, 65_536, 1.50, 7.50, 0.15, 0}},
	{"gemini-3.7-flash", Limit{1_048_576, 65_536, 1.50, 7.50, 0.15, 0}},
	{"gemini-3.6-flash", Limit{1_048_576, 65_536, 1.50, 7.50, 0.15, 0}},
	{"gemini-3.5-flash-lite", Limit{1_048_576, 65_536, 0.30, 2.50, 0.03, 0}},
	{"gemini-3.5-flash", Limit{1_048_576, 65_536, 1.50, 9, 0.15, 0}},
	{"gemini-3.1-flash-lite", Limit{1_048_576, 65_536, 0.25, 1.50, 0.025, 0}},
	{"gemini-3.1-pro", Limit{1_048_576, 65_536, 2, 12, 0.20, 0}},
	{"gemini-3-pro", Limit{1_048_576, 65_536, 2, 12, 0.20, 0}},
	{"gemini-3-flash", Limit{1_048_576, 65_536, 0.50, 3, 0.05, 0}},
	{"gemini-2.5-pro", Limit{1_048_576, 65_536, 1.25, 10, 0.125, 0}},
	{"gemini-2.5-flash-lite", Limit{1_048_576, 65_536, 0.10, 0.40, 0.01, 0}},
	{"gemini-2.5-flash", Limit{1_048_576, 65_536, 0.30, 2.50, 0.03, 0}},
	{"gemini-", Limit{1_048_576, 65_536, 0, 0, 0, 0}},
	{"deepseek-v4-pro", Limit{1_000_000, 384_000, 1.32, 3.96, 0.044, 0}},
	{"deepseek-v4-flash", Limit{1_000_000, 384_000, 0.30, 1.20, 0.006, 0}},
	{"deepseek-flash", Limit{1_000_000, 384_000, 0.30, 1.20, 0.006, 0}},
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
