package daemon

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"sublet/daemon/config"
	"sublet/wire"
)

// Every provider is asked which models it has, one that cannot be asked is named with what to do, and one model is looked up
// without a request. A key travels from the client to its provider, a header from the daemon's environment.
func TestModels(t *testing.T) {
	t.Setenv("SUBLET_TEST_TEAM", "blue")
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "Bearer secret-key" || r.Header.Get("X-Team") != "blue" {
			t.Errorf("asked for %s with %v", r.URL, r.Header)
		}
		fmt.Fprint(w, `{"data": [{"id": "m", "context_length": 1000}]}`)
	}))
	defer srv.Close()
	p := home(t, fmt.Sprintf(`
[provider.work]
kind = "openai"
base_url = "%s/v1"
api_key_env = "WORK_KEY"
headers = {X-Team = "${SUBLET_TEST_TEAM}"}
price_input = 1.0
price_output = 2.0
[provider.ollama]
kind = "openai"
base_url = "http://127.0.0.1:1/v1"
`, srv.URL))
	stop, ended := run(t, Options{Paths: p})
	defer func() {
		stop()
		_ = over(t, ended)
	}()
	c := client(t, p, func(e *wire.EnvSnapshot) { e.Credentials = map[string]string{"WORK_KEY": "secret-key"} })
	if err := c.Send(&wire.ModelsRequest{RequestID: "r1"}); err != nil {
		t.Fatal(err)
	}
	reply := receive(t, c, func(m *wire.ModelsReply) bool { return m.RequestID == "r1" })
	if n := len(reply.Models); n != 2 || reply.Models[0].Name != "offline" || reply.Models[1].Name != "work/m" ||
		reply.Models[1].ContextWindow != 1000 || *reply.Models[1].PriceOutput != 2 {
		t.Errorf("got %+v", reply.Models)
	}
	faults := fmt.Sprintf("%+v", reply.Faults)
	for _, want := range []string{"Provider:anthropic Message:no API key Hint:export ANTHROPIC_API_KEY", "Provider:ollama Message:no server answers at 127.0.0.1:1"} {
		if !strings.Contains(faults, want) {
			t.Errorf("got faults %s, want %q", faults, want)
		}
	}
	for name, want := range map[string]string{"work/other": "", "nobody/x": "no such provider", "openai/gpt-5": "no API key"} {
		id := wire.RequestID("look-" + name)
		if err := c.Send(&wire.ModelsRequest{RequestID: id, Name: name}); err != nil {
			t.Fatal(err)
		}
		if want == "" {
			if got := receive(t, c, func(m *wire.ModelsReply) bool { return m.RequestID == id }); got.Models[0].Name != name {
				t.Errorf("%s: got %+v", name, got.Models)
			}
		} else if e := receive(t, c, func(m *wire.Error) bool { return m.RequestID == id }); !strings.Contains(e.Message, want) || e.Hint == "" {
			t.Errorf("%s: got %+v, want %q", name, e, want)
		}
	}
	if asked != 1 {
		t.Errorf("the provider was asked %d times, want 1", asked)
	}
}

// A model whose key a command prints was reported as not loaded if a variable for the key was named as well and not set.
func TestDescribeModelWithKeyCommand(t *testing.T) {
	t.Setenv("SUBLET_TEST_NO_KEY", "")
	c := config.Default()
	c.Model = "work/m"
	c.Providers["work"] = config.Provider{Kind: "openai", APIKeyEnv: "SUBLET_TEST_NO_KEY", APIKeyCommand: "exit 1"}
	conf := &settings{}
	conf.now.Store(&c)
	m := &models{conf: conf, log: slog.New(slog.DiscardHandler)}
	if got := m.describe(nil); len(got) != 1 || !got[0].Loaded {
		t.Errorf("got %+v, want one loaded model", got)
	}
}

// Roles with the same model had it described once for each of them, in any order.
func TestDescribeModelsOnce(t *testing.T) {
	c := config.Default()
	c.Agents = map[string]config.Agent{"a": {Model: "ollama/y"}, "b": {Model: "ollama/y"}, "c": {Model: "ollama/x"}, "d": {Model: c.Model}}
	conf := &settings{}
	conf.now.Store(&c)
	m := &models{conf: conf, log: slog.New(slog.DiscardHandler)}
	var got []string
	for _, info := range m.describe(nil) {
		got = append(got, info.Name)
	}
	if want := []string{"offline", "ollama/x", "ollama/y"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
