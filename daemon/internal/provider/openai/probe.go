package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sublet/daemon/internal/provider"
)

// probeLimit bounds the request for the context window, which may delay the end of a first answer.
const probeLimit = 2 * time.Second

// probeTries is more than one because a server that loads its model with the first request knows the window only then.
const probeTries = 3

// probe finds a model's limits. It stops after probeTries rounds that a server answered. It runs concurrently with answers.
type probe struct {
	mu sync.Mutex
	// guarded by mu:
	limit provider.Limit
	asked int
	found bool
}

func (p *probe) known() provider.Limit {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.limit
}

// wanted reports whether to ask: OpenAI and Google do not report the window.
func (p *probe) wanted(base string, c provider.Config) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.found && p.asked < probeTries && c.ContextWindow == 0 && base != openaiURL && base != googleURL
}

// ask tries the places where servers report the window; if none does, nothing changes. The window of the training
// (n_ctx_train, llama.cpp) is used only if none of them reports the actual one. A round that reached no server does not count:
// it may not run yet, or the call was cancelled.
func (p *probe) ask(ctx context.Context, m *Model) {
	root := strings.TrimSuffix(m.base, "/v1")
	var best provider.Limit
	answered := false
	for _, url := range []string{
		m.base + "/models",      // vLLM, OpenRouter, llama.cpp, Groq
		root + "/api/v0/models", // LM Studio
		root + "/api/ps",        // Ollama, once the model is loaded
		root + "/props",         // llama.cpp
	} {
		body, status := m.fetch(ctx, url)
		answered = answered || status != 0
		if status != http.StatusOK {
			continue
		}
		limit, exact := limitOf(body, m.config.Model)
		if limit.ContextWindow > 0 && (exact || best.ContextWindow == 0) {
			best = limit
		}
		if exact {
			break
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if answered {
		p.asked++
	}
	if best.ContextWindow > 0 {
		p.limit, p.found = merge(p.limit, best), true
	}
}

func merge(old, found provider.Limit) provider.Limit {
	found.MaxOutput = cmp.Or(found.MaxOutput, old.MaxOutput)
	if found.Input == 0 || found.Output == 0 {
		found.Input, found.Output, found.CacheRead, found.CacheWrite = old.Input, old.Output, old.CacheRead, old.CacheWrite
	}
	return found
}

// fetch returns at most maxEvent bytes of a body and the status, 0 if there was no response.
func (m *Model) fetch(ctx context.Context, url string) ([]byte, int) {
	resp, err := m.do(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, 0
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxEvent))
	if err != nil {
		return nil, 0
	}
	return body, resp.StatusCode
}

// window is the fields by which an entry of a list of models may report its window, the most exact first.
type window struct {
	ID            string `json:"id"`
	Name          string `json:"name"`
	Model         string `json:"model"`
	Loaded        int    `json:"loaded_context_length"` // LM Studio
	MaxModelLen   int    `json:"max_model_len"`         // vLLM
	ContextLength int    `json:"context_length"`        // OpenRouter, Ollama's ps
	ContextWindow int    `json:"context_window"`        // Groq
	MaxContext    int    `json:"max_context_length"`    // LM Studio, Mistral
	Meta          struct {
		Ctx      int `json:"n_ctx"`
		CtxTrain int `json:"n_ctx_train"`
	} `json:"meta"` // llama.cpp
	TopProvider struct {
		MaxCompletion int `json:"max_completion_tokens"`
	} `json:"top_provider"`
	Pricing struct {
		Prompt, Completion string
		CacheRead          string `json:"input_cache_read"`
	} `json:"pricing"` // OpenRouter, dollars for a token
}

// offers returns the models of a server's list. Capabilities are read in OpenRouter's format.
func offers(body []byte) ([]provider.Offer, error) {
	var list struct {
		Data []struct {
			window
			Architecture struct {
				Input []string `json:"input_modalities"`
			} `json:"architecture"`
			Parameters []string `json:"supported_parameters"`
		}
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, err
	}
	out := make([]provider.Offer, 0, len(list.Data))
	for _, w := range list.Data {
		found, _ := w.limit()
		known := provider.KnownLimit(w.ID)
		found.ContextWindow = cmp.Or(found.ContextWindow, known.ContextWindow)
		o := provider.Offer{Name: strings.TrimPrefix(w.ID, "models/"), Limit: merge(known, found)} // Google's names begin with it
		says := func(list []string, what string) *bool {
			if list == nil {
				return nil
			}
			has := slices.Contains(list, what)
			return &has
		}
		o.Images, o.Tools, o.Thinking = says(w.Architecture.Input, "image"), says(w.Parameters, "tools"), says(w.Parameters, "reasoning")
		out = append(out, o)
	}
	return out, nil
}

// List returns the models that the server has.
func (m *Model) List(ctx context.Context) ([]provider.Offer, error) {
	if !m.loaded() {
		return nil, m.fault.NoKey()
	}
	resp, err := m.do(ctx, http.MethodGet, m.base+"/models", nil)
	if err != nil {
		return nil, m.fault.Transport(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, m.refused(resp)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxEvent))
	if err != nil {
		return nil, m.fault.Transport(ctx, err)
	}
	list, err := offers(body)
	if err != nil {
		return nil, m.fault.WebPage()
	}
	return list, nil
}

// limit returns what w has of sizes in tokens and of prices; exact reports whether its window is the one in use, not that of the training.
func (w window) limit() (limit provider.Limit, exact bool) {
	limit = provider.Limit{
		ContextWindow: w.Meta.CtxTrain, MaxOutput: w.TopProvider.MaxCompletion,
		Input: perMillion(w.Pricing.Prompt), Output: perMillion(w.Pricing.Completion), CacheRead: perMillion(w.Pricing.CacheRead),
	}
	for _, n := range []int{w.Loaded, w.MaxModelLen, w.Meta.Ctx, w.ContextLength, w.ContextWindow, w.MaxContext} {
		if n > 0 {
			limit.ContextWindow = n
			return limit, true
		}
	}
	return limit, false
}

func perMillion(s string) float64 {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f < 0 {
		return 0
	}
	return f * 1e6
}

// limitOf returns the limits of a model in a server's answer; exact reports whether that is the window that it has there.
func limitOf(body []byte, model string) (_ provider.Limit, exact bool) {
	var answer struct {
		Data     []window // of most servers
		Models   []window // of Ollama
		Settings struct {
			Ctx int `json:"n_ctx"`
		} `json:"default_generation_settings"` // of llama.cpp
	}
	if json.Unmarshal(body, &answer) != nil {
		return provider.Limit{}, false
	}
	for _, w := range slices.Concat(answer.Data, answer.Models) {
		if slices.Contains([]string{w.ID, w.Model, w.Name}, model) || w.Name == model+":latest" {
			return w.limit()
		}
	}
	if len(answer.Data) == 1 {
		return answer.Data[0].limit() // llama.cpp serves one model under whatever name
	}
	return provider.Limit{ContextWindow: answer.Settings.Ctx}, answer.Settings.Ctx > 0
}
