package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestMissingFileMeansDefaults(t *testing.T) {
	c, err := Load(filepath.Join(t.TempDir(), "none.toml"))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(c, Default()) {
		t.Errorf("got %+v, want the defaults", c)
	}
}

// Every key is shown with a comment, and what is shown is read back to the same settings.
func TestShowReadsBack(t *testing.T) {
	full := Default()
	full.Model, full.Fallback = "work/m", []string{"openai/gpt-5", "offline"}
	full.Providers["work"] = Provider{
		Kind: "openai", BaseURL: "http://localhost:1/v1", APIKeyCommand: "pass \"x\"", ContextWindow: 9, Silence: Duration{90 * time.Second}, Images: new(bool),
		API: "chat", Headers: map[string]string{"X-Team": "${TEAM}"}, Query: map[string]string{"api-version": "1"}, PriceInput: 1.5, PriceOutput: 2, PriceCacheRead: 0.1, PriceCacheWrite: 3,
	}
	full.Providers["odd name"] = Provider{Kind: "scripted", Script: "/s.json"}
	full.Models.Small, full.Models.Compaction, full.Thinking = "work/small", "openai/gpt-5-mini", "low"
	full.Limits.CostTurn, full.Limits.CostDay = 0.5, 20
	full.Shell.Path, full.Shell.SwitchKey, full.Lease.Patience = "/usr/bin/zsh", "f12", Duration{250 * time.Millisecond}
	full.Shell.Pass = []string{"GH_TOKEN"}
	full.Policy.Allow = []string{`bash: git push "x" *`}
	full.Policy.Deny = []string{"bash: rm *"}
	full.Policy.Secrets, full.Policy.NotSecrets = []string{"~/vault"}, []string{"~/certs", "/srv/a \"b\""}
	full.Policy.Project.Write = []string{"~/.cache/bazel"}
	full.Policy.Project.Hosts = []string{"proxy.golang.org"}
	full.Policy.Rules = []Rule{
		{Decision: "allow", Pattern: `bash: go test *`, Match: []string{"go test ./..."}, NoMatch: []string{`go test && echo "x"`}},
		{Decision: "ask", Pattern: "effect: network", Match: []string{}, NoMatch: []string{}},
	}
	full.Agents["docs"] = Agent{Description: "writes", Model: "work/m", Prompt: "a\nb\t\x1b", Tools: []string{"read"}}
	full.Agents["all"], full.Agents["none"] = Agent{Model: "work/m"}, Agent{Tools: []string{}} // a role without a list has all tools
	full.Agents["claude"] = Agent{
		Description: "hosted", Command: []string{"claude-agent-acp", "-v"}, Env: map[string]string{"KEY": "${KEY}"}, Reach: "project", Timeout: Duration{time.Minute}, Mode: "plan", Worktree: true,
	}
	full.MCP["fs"] = MCP{Command: "npx", Args: []string{"-y"}, Env: map[string]string{"A B": "1", "C": "${D}"}, Reach: "project", Write: []string{"~/notes"}}
	full.MCP["remote-1"] = MCP{URL: "http://x/mcp", Headers: map[string]string{"Authorization": "Bearer ${KEY}"}}
	full.Policy.Mode, full.Daemon.LogLevel = "auto", "debug"
	change(t, reflect.ValueOf(Default()), reflect.ValueOf(&full).Elem(), "Config")
	for _, want := range []Config{Default(), full} {
		shown, err := Show(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Parse("shown", []byte(shown))
		if err != nil {
			t.Fatalf("%v in\n%s", err, shown)
		}
		normalise(&got)
		normalise(&want)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v\nfrom\n%s", got, want, shown)
		}
	}
}

// change makes each setting that is as by default another one, so that it is shown and read back.
func change(t *testing.T, standard, full reflect.Value, path string) {
	t.Helper()
	switch {
	case full.Kind() == reflect.Struct:
		for i := range full.NumField() {
			change(t, standard.Field(i), full.Field(i), path+"."+full.Type().Field(i).Name)
		}
	case !reflect.DeepEqual(standard.Interface(), full.Interface()):
	case full.Kind() == reflect.Bool:
		full.SetBool(!full.Bool())
	case full.CanInt():
		full.SetInt(full.Int() * 9 / 10)
	case full.CanFloat():
		full.SetFloat(full.Float() * 0.9)
	default:
		t.Errorf("%s has its default here: set it to something else", path)
	}
}

// docs/configuration.md has a row for every key.
func TestKeysHaveRows(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := strings.Cut(string(page), "## All keys")
	table := ""
	shown, err := Show(Default())
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(shown) {
		if strings.HasPrefix(line, "[") {
			table = strings.Trim(line, "[]\n") + "."
		}
		name, _, ok := strings.Cut(line, " = ")
		if !ok || strings.HasPrefix(line, "#") || strings.HasPrefix(table, "provider.") || strings.HasPrefix(table, "agents.") || strings.HasPrefix(table, "mcp.") {
			continue
		}
		if !strings.Contains(rows, "`"+table+name+"`") && !strings.Contains(rows, ", `"+name+"`") {
			t.Errorf("no row for %s%s", table, name)
		}
	}
}

func normalise(c *Config) {
	for _, l := range []*[]string{&c.Fallback, &c.Shell.Pass, &c.Policy.Allow, &c.Policy.Deny, &c.Policy.Secrets, &c.Policy.NotSecrets, &c.Policy.Project.Write, &c.Policy.Project.Hosts} {
		if len(*l) == 0 {
			*l = nil
		}
	}
}

func TestBadFilesSayWhere(t *testing.T) {
	for _, tc := range []struct{ text, place, message string }{
		{"model = ", ":1:", ""},
		{"\nmodle = \"x\"", ":2:1:", "no such key: modle"},
		{"[lease]\nwait = \"soon\"", ":2:", `lease.wait: want a duration such as "30s" or "2m", found "soon"`},
		{"[lease]\nwait = 30", ":2:1:", `lease.wait: want a duration such as "30s" or "2m", found a value without a unit`},
		// A bare number was taken as nanoseconds: the daemon exited at once.
		{"[daemon]\nidle_exit = 30", ":2:1:", `daemon.idle_exit: want a duration such as "30s" or "2m", found a value without a unit`},
		{"[daemon]\nidle_exit = 1800000", ":2:1:", `daemon.idle_exit: want a duration such as "30s" or "2m", found a value without a unit`},
		{"[lease]\nwait = \"9s\"\nterm = 1.5", ":3:1:", `lease.term: want a duration such as "30s" or "2m", found a value without a unit`},
		// Wrong types were named as Go does: struct field struct { config.Models; Default string }.
		{"models = \"x\"", ":1:10:", "models: want a table with keys of its own, found a text"},
		{"[models]\ndefault = 3", ":2:11:", "models.default: want a text such as \"x\", found a whole number"},
		{"[shell]\noutput_head = \"a\"", ":2:15:", "shell.output_head: want a whole number, found a text"},
		{"[limits]\njobs = 1.5", ":2:8:", "limits.jobs: want a whole number, found a number with a point"},
		{"[compaction]\nthreshold = \"0.5\"", ":2:13:", "compaction.threshold: want a number, found a text"},
		{"fallback = {a = 1}", ":1:12:", "fallback: want a list such as [\"x\", \"y\"], found a table"},
		{"[daemon]\ndebug = 12:00:00", ":2:9:", "daemon.debug: want true or false, found a date or time"},
		{"[policy]\nrules = true", ":2:9:", "policy.rules: want tables in [[ ]], found true or false"},
		{"[provider]\nx = [1]", ":2:5:", "provider.x: want a table with keys of its own, found a list"},
		{"[lease]\nwait = \"0s\"", ":2:1:", "lease.wait: 0s is outside"},
		{"[lease]\npatience = \"1h\"", ":2:1:", "lease.patience: 1h0m0s is outside"},
		{"[limits]\ncheck_time = \"0s\"", ":2:1:", "limits.check_time: 0s is outside"},
		{"[shell]\npath = \"zsh\"", ":2:1:", "not an absolute path"},
		{"[shell]\nswitch_key = \"ctrl+c\"", ":2:1:", "none of ctrl+a"},
		{"[policy]\nmode = \"full\"", ":2:1:", "none of plan, ask, auto"},
		{"model = \"nobody/x\"", ":1:1:", "no provider \"nobody\""},
		{"model = \"openai\"", ":1:1:", "write \"openai/NAME\""},
		{"[provider.x]\nkind = \"openai\"\nbase_url = \"ftp://x\"", ":3:1:", "not an http or https address"},
		{"[provider.x]\nkind = \"openai\"\nbase_url = \"http://me:hunter2@x\"", ":3:1:", "a password does not belong"},
		{"[provider.a]\nkind = \"openai\"\n[provider.\"b\"]\nkind = \"odd\"", ":4:1:", "provider.b.kind: \"odd\" is none of"},
		{"[provider.x]\nbase_url = \"http://x\"", "", "provider.x.kind: \"\" is none of"},
		{"model = \"openai/m\"\nfallback = [\"offline\", \"openai/m\"]", ":2:1:", "fallback: \"openai/m\" is the model itself"},
		{"fallback = [\"openai/m\", \"openai/m\"]", ":1:1:", "is listed twice"},
		{"[models]\nsmall = \"openai\"", ":2:1:", "models.small: \"openai\" names a provider but no model"},
		{"model = \"openai/m\"\n[models]\ndefault = \"openai/n\"", ":3:1:", "models.default: there is `model` already"},
		{"thinking = \"much\"", ":1:1:", "thinking: \"much\" is none of off, low, medium, high"},
		{"[limits]\ncost_usd_turn = -1.0", ":2:1:", "limits.cost_usd_turn: -1 is outside 0 to"},
		{"[provider.openai]\nprice_input = nan", ":2:1:", "provider.openai.price_input: NaN is outside"},
		{"[provider.openai]\nheaders = {\"X Y\" = \"1\"}", ":2:1:", "provider.openai.headers: \"X Y\" cannot be a header"},
		{"[provider.openai]\napi = \"assistants\"", ":2:1:", "provider.openai.api: \"assistants\" is none of"},
		{"[provider.anthropic]\napi = \"chat\"", ":2:1:", "provider.anthropic.api: is for the kind openai"},
		{"fallback = [\"nobody/m\"]", ":1:1:", "fallback: no provider \"nobody\""},
		{"[provider.openai]\nsilence = \"-1s\"", ":2:1:", "provider.openai.silence: -1s is outside"},
		{"[provider.openai]\nsilence = \"soon\"", ":2:11:", "provider.openai.silence: want a duration"},
		{"[compaction]\nthreshold = 2.0", ":2:1:", "outside 0.1 to 0.95"},
		{"[compaction]\nthreshold = nan", ":2:1:", "outside 0.1 to 0.95"},
		{"[shell]\noutput_head = 1", ":2:1:", "outside 1024"},
		{"[[policy.rules]]\npattern = \"bash: ls\"\ndecision = \"never\"", ":3:1:", "none of allow, ask, deny"},
		{"[[policy.rules]]\ndecision = \"deny\"", "", "policy.rules[0].pattern: is missing"},
		{"[policy]\nsecrets = [\"vault\"]", ":2:1:", "policy.secrets: \"vault\" is neither an absolute path"},
		{"[policy]\nsecrets = [\"~/a\", \"\"]", ":2:1:", "policy.secrets: has an empty path"},
		{"[policy]\nsecrets = [\"~/\"]", ":2:1:", "is too wide"},
		{"[policy]\nnot_secrets = [\"~/..\"]", ":2:1:", "is too wide"}, // the part after ~ was not looked at: it opened every home
		{"[policy]\nnot_secrets = [\"~/a/../../b\"]", ":2:1:", "is too wide"},
		{"[policy]\nnot_secrets = [\"~other/x\"]", ":2:1:", "policy.not_secrets: \"~other/x\" is neither"},
		{"[policy]\nnot_secrets = [\"/\"]", ":2:1:", "is too wide"},
		{"[policy]\nsecrets = [\"/a\\u0000\"]", ":2:1:", "NUL"},
		{"[policy]\nsecrets = [\"~/a\"]\nnot_secrets = [\"~/a\"]", ":3:1:", "is also in policy.secrets"},
		{"[agents.mine]\nmodel = \"nope/x\"", ":2:1:", "agents.mine.model: no provider \"nope\"; there is "},
		{"[agents.codex]\ncommand = []", ":2:1:", "agents.codex.command: is empty; write the program and its arguments"},
		{"[agents.codex]\ncommand = \"codex-acp\"", ":2:", ""},
		{"[agents.codex]\ncommand = [\"\"]", ":2:1:", "agents.codex.command: has no program"},
		{"[agent.codex]\ncommand = [\"x\"]\nreach = \"all\"", ":3:1:", "agents.codex.reach: \"all\" is none of read, project, free"},
		{"[agents.codex]\ncommand = [\"x\"]\nprompt = \"p\"", ":3:1:", "agents.codex.prompt: an agent with a command has its own"},
		{"[agents.codex]\nenv = {A = \"b\"}", ":2:1:", "agents.codex.env: is for a command"},
		{"[agents.codex]\ncommand = [\"x\"]\nenv = {\"A=\" = \"b\"}", ":3:1:", "agents.codex.env: \"A=\" cannot be a variable"},
		{"[agents.gpt-5]\ncommand = [\"x\"]", ":2:1:", "a name that ends in - and a number"},
		{"[agents.engineer]\ncommand = [\"x\"]", ":2:1:", "engineer is a name of sublet's own"},
		{"[agents.Codex]\ncommand = [\"x\"]", "", "agents.Codex: the name of an agent with a command is"},
		{"[agents.codex]\n[agent.codex]\n", "", "agent.codex: there is agents.codex already"},
		{"[policy.project]\nwrite = [\"build\"]", ":2:1:", "policy.project.write: \"build\" is neither"},
		{"[provider.x]\nkind = \"openai\"\napi_key = \"k\"", ":3:1:", "api_key_env names the variable"},
		{"[policy.project]\nports = []", ":2:1:", "no such key: policy.project.ports"},
		{"[[policy.rules]]\nmatches = []", ":2:1:", "no such key"},
		{"[mcp.db]\nargs = [\"x\"]", "", "mcp.db: needs a command or a url"},
		{"[mcp.db]\ncommand = \"x\"\nurl = \"http://x\"", ":3:1:", "one or the other"},
		{"[mcp.db]\nurl = \"ftp://x\"", ":2:1:", "not an http or https address"},
		{"[mcp.db]\nurl = \"https://me:hunter2@x\"", ":2:1:", "a password does not belong"},
		{"[mcp.db]\nurl = \"https://x\"\nenv = { A = \"1\" }", ":2:1:", "args, env, reach and write are for a command"},
		{"[mcp.db]\ncommand = \"x\"\nheaders = { A = \"1\" }", ":3:1:", "are for a url"},
		{"[mcp.db]\ncommand = \"x\"\nenv = { \"A=\" = \"1\" }", ":3:1:", "cannot be a variable"},
		{"[mcp.db]\ncommand = \"x\"\nreach = \"shell\"", ":3:1:", "mcp.db.reach: \"shell\" is none of read, project, free"},
		{"[mcp.db]\ncommand = \"x\"\nwrite = [\"notes\"]", ":3:1:", "mcp.db.write: \"notes\" is neither"},
		{"[mcp.db]\ncommand = \"x\"\nreach = \"read\"\nwrite = [\"~/notes\"]", ":4:1:", "mcp.db.write: is for the reach project"},
		{"[mcp.\"a b\"]\ncommand = \"x\"", "", "a server's name is"},
		{"[mcp.a__b]\ncommand = \"x\"", "", "a server's name is"},
		{"[mcp.a_]\ncommand = \"x\"", "", "a server's name is"},
	} {
		path := filepath.Join(t.TempDir(), "config.toml")
		if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(path)
		if err == nil || !strings.HasPrefix(err.Error(), path+tc.place) || !strings.Contains(err.Error(), tc.message) {
			t.Errorf("%q: got %v, want %s…%s", tc.text, err, tc.place, tc.message)
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: the error shows the password: %v", tc.text, err)
		}
		// a file that does not parse is never overwritten.
		if after, _ := os.ReadFile(path); string(after) != tc.text {
			t.Errorf("%q was changed to %q", tc.text, after)
		}
	}
}

// A file that others may write to is refused: its commands and its rules would be theirs.
func TestFileOfOthersIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	link := filepath.Join(t.TempDir(), "link.toml")
	if err := errors.Join(os.WriteFile(path, []byte("model = \"offline\"\n"), 0o600), os.Symlink(path, link)); err != nil {
		t.Fatal(err)
	}
	for mode, safe := range map[os.FileMode]bool{0o600: true, 0o644: true, 0o444: true, 0o620: false, 0o602: false, 0o666: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{path, link} {
			_, err := Load(name)
			if safe && err != nil {
				t.Errorf("mode %o: %v", mode, err)
			}
			bad, ok := errors.AsType[*Error](err)
			if !safe && (!ok || !strings.Contains(err.Error(), "others may write to it") || bad.Hint() != "run `chmod go-w "+name+"`") {
				t.Errorf("mode %o: got %v", mode, err)
			}
		}
	}
	for owner, safe := range map[int]bool{0: true, 1000: true, 1001: false} {
		if err := checkOwner(path, 0o600, owner, 1000); (err == nil) != safe {
			t.Errorf("owner %d: got %v", owner, err)
		}
	}
	if os.Geteuid() != 0 {
		return // only root can give a file away
	}
	if err := errors.Join(os.Chmod(path, 0o600), os.Chown(path, 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "belongs to user 65534") {
		t.Errorf("of another user: got %v", err)
	}
}

func TestFileOverridesOnlyWhatItNames(t *testing.T) {
	c, err := Parse("x", []byte("model = \"ollama/qwen3\"\n[lease]\nterm = \"5s\"\n[provider.openai]\nbase_url = \"http://127.0.0.1:8080/v1\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Model != "ollama/qwen3" || c.Lease.Term != (Duration{5 * time.Second}) || c.Lease.Wait != (Duration{time.Minute}) {
		t.Errorf("got %+v", c)
	}
	if p := c.Providers["openai"]; p.Kind != "openai" || p.APIKeyEnv != "OPENAI_API_KEY" || p.BaseURL == "" {
		t.Errorf("got provider %+v, want kind and key of the built-in one kept", p)
	}
}

// A key is named as people call it, and is what a terminal sends for it.
func TestKeys(t *testing.T) {
	for name, want := range map[string]string{"": "", "ctrl+g": "\x07", "alt+s": "\x1bs", "f1": "\x1bOP", "f5": "\x1b[15~", "f12": "\x1b[24~"} {
		if got, ok := Key(name); string(got) != want || !ok {
			t.Errorf("%s: got %q, %v, want %q", name, got, ok, want)
		}
	}
	for _, name := range []string{"ctrl+", "ctrl+c", "ctrl+m", "ctrl+[", "alt+é", "f0", "f13", "f", "tab", "g", "5", "f+1"} {
		if got, ok := Key(name); ok {
			t.Errorf("%s: got %q", name, got)
		}
	}
}
