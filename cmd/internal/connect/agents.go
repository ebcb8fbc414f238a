// Package connect adds `sublet serve mcp` to the settings of agents of other programs: the server, its time limit, and the
// switch that turns their own shell tool off. It changes nothing else in their files, comments and order included, and takes
// its changes back.
package connect

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
)

// File is a settings file of an agent and the settings to make: TOML or YAML if its name ends so, else JSON with or without comments.
type File struct {
	Path  string
	edits []edit
}

// edit is one setting. In a TOML file it may be a string, boolean, number, list of strings, or an object of those.
type edit struct {
	path    []string
	value   any
	add     bool     // value is to be in the list at path; only in JSON
	part    bool     // value is an object: its members are set. Where there was none before, undoing removes the whole object
	needed  []string // members of such an object that are set only where they are missing
	missing bool     // such a member
}

// members splits edits of objects into edits of single settings.
func members(edits []edit) (single []edit) {
	for _, e := range edits {
		if !e.part {
			single = append(single, e)
			continue
		}
		object := e.value.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(object)) {
			single = append(single, edit{path: append(slices.Clone(e.path), name), value: object[name], missing: slices.Contains(e.needed, name)})
		}
	}
	return single
}

// Agent is a program that can be connected.
type Agent struct {
	Name   string // also of its program on PATH
	Tried  string // the version that these settings were tried with; "" = none
	Files  []File
	Checks []Check
	Unseen []string // settings of which the agent shows nothing
	Note   string   // what the user should know; "" = nothing
}

// hour is the time limit of a call in milliseconds, the same as that of a command.
const hour = 3_600_000

// Agents are those that are known, in the order of their names. command starts sublet; getenv is os.Getenv.
func Agents(home, command string, getenv func(string) string) []Agent {
	args := []string{"serve", "mcp"}
	config := cmp.Or(getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config"))
	claude, claudeServers := filepath.Join(home, ".claude"), filepath.Join(home, ".claude.json")
	if dir := getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		claude, claudeServers = dir, filepath.Join(dir, ".claude.json")
	}
	codex := cmp.Or(getenv("CODEX_HOME"), filepath.Join(home, ".codex"))
	// Of the user's environment, Codex passes on HOME and PATH; these are where the daemon is.
	places := []string{"SUBLET_CONFIG", "SUBLET_RUNTIME_DIR", "SUBLET_STATE_DIR", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"}
	server := func(more ...any) map[string]any {
		m := map[string]any{"command": command, "args": args}
		for i := 0; i < len(more); i += 2 {
			m[more[i].(string)] = more[i+1]
		}
		return m
	}
	return []Agent{
		{
			Name: "claude", Tried: "2.1",
			Files: []File{
				{claudeServers, []edit{{path: []string{"mcpServers", "sublet"}, value: server("type", "stdio", "alwaysLoad", true), part: true}}},
				{filepath.Join(claude, "settings.json"), []edit{
					{path: []string{"permissions", "deny"}, value: "Bash", add: true},
					{path: []string{"env", "MCP_TOOL_TIMEOUT"}, value: "3600000"},
				}},
			},
			Checks: []Check{serverList("mcpServers.sublet"), toolList("permissions.deny", "Bash", "/cost", "--no-session-persistence", "--verbose", "--output-format", "stream-json")},
			Unseen: []string{"mcpServers.sublet.alwaysLoad", "env.MCP_TOOL_TIMEOUT"},
			Note:   `it asks before each call as well; "mcp__sublet" in permissions.allow leaves the asking to your window`,
		},
		{
			Name: "codex", Tried: "0.169",
			Files: []File{{filepath.Join(codex, "config.toml"), []edit{
				{path: []string{"mcp_servers", "sublet"}, value: server("env_vars", places, "tool_timeout_sec", hour/1000), part: true},
				{path: []string{"features", "shell_tool"}, value: false},
				{path: []string{"features", "unified_exec"}, value: false},
			}}},
			Checks: []Check{
				serverList("mcp_servers.sublet"),
				{Args: []string{"mcp", "get", "sublet"}, Traces: []Trace{
					{Setting: "mcp_servers.sublet.env_vars", has: `SUBLET_STATE_DIR`},
					{Setting: "mcp_servers.sublet.tool_timeout_sec", has: `tool_timeout_sec: 3600`},
				}},
				// 0.169 knows the name unified_exec and keeps it on: without shell_tool it has neither.
				{Args: []string{"features", "list"}, Traces: []Trace{
					{Setting: "features.shell_tool", has: `(?m)^shell_tool[ \t].*false`},
					{Setting: "features.unified_exec", has: `(?m)^unified_exec[ \t]`},
				}},
			},
			Note: `it asks before each call as well; default_tools_approval_mode = "approve" below [mcp_servers.sublet] leaves the asking to your window`,
		},
		{
			Name: "crush",
			Files: []File{{filepath.Join(config, "crush", "crush.json"), []edit{
				{path: []string{"mcp", "sublet"}, value: server("type", "stdio", "timeout", hour/1000), part: true},
				{path: []string{"options", "disabled_tools"}, value: "bash", add: true},
			}}},
			Unseen: []string{"mcp.sublet", "options.disabled_tools"},
			Note:   `it asks before each call as well; "mcp_sublet_shell" in permissions.allowed_tools leaves the asking to your window`,
		},
		{
			Name: "gemini", Tried: "0.61",
			Files: []File{{filepath.Join(home, ".gemini", "settings.json"), []edit{
				{path: []string{"mcpServers", "sublet"}, value: server("timeout", hour), part: true},
				{path: []string{"tools", "exclude"}, value: "run_shell_command", add: true},
			}}},
			// It warns that the setting will go some day, and so shows that it has read it.
			Checks: []Check{serverList("mcpServers.sublet", Trace{Setting: "tools.exclude", Proof: true, has: `tools\.exclude`})},
			Unseen: []string{"mcpServers.sublet.timeout"},
			Note:   `it asks before each call as well; "trust": true in mcpServers.sublet leaves the asking to your window`,
		},
		{
			Name: "goose", Tried: "1.50",
			Files: []File{{filepath.Join(config, "goose", "config.yaml"), []edit{
				{path: []string{"extensions", "sublet"}, value: map[string]any{
					"type": "stdio", "name": "sublet", "description": "the user's live shell", "cmd": command, "args": args, "timeout": hour / 1000, "enabled": true,
				}, part: true},
				// goose drops an extension that lacks type, name or description, and starts its own default in the place of this one.
				{path: []string{"extensions", "developer"}, value: map[string]any{
					"enabled": false, "type": "builtin", "name": "developer", "description": "files and shell commands",
				}, part: true, needed: []string{"type", "name", "description"}},
			}}},
			Checks: []Check{{Args: []string{"info", "-v"}, Traces: []Trace{
				{Setting: "extensions.sublet", has: `\n    sublet:\n`},
				{Setting: "extensions.developer.enabled", has: `\n    developer:\n      enabled: false\n`},
			}}},
			Unseen: []string{"extensions.sublet.timeout"},
			Note:   "its extension developer has its tools for files as well; its extension computercontroller, if you use that, runs scripts of its own",
		},
		{
			Name: "opencode", Tried: "1.18",
			Files: []File{{firstThere(filepath.Join(config, "opencode", "opencode.json"), filepath.Join(config, "opencode", "opencode.jsonc")), []edit{
				{path: []string{"mcp", "sublet"}, value: map[string]any{"type": "local", "command": append([]string{command}, args...), "enabled": true}, part: true},
				{path: []string{"permission", "bash"}, value: "deny"},
			}}},
			Checks: []Check{
				serverList("mcp.sublet"),
				{Args: []string{"debug", "agent", "build"}, Traces: []Trace{{Setting: "permission.bash", has: `"bash": false`}}},
			},
		},
		{
			Name: "qwen", Tried: "0.24",
			Files: []File{{filepath.Join(home, ".qwen", "settings.json"), []edit{
				{path: []string{"mcpServers", "sublet"}, value: server("timeout", hour, "alwaysLoadTools", true), part: true},
				{path: []string{"permissions", "deny"}, value: "run_shell_command", add: true},
			}}},
			Checks: []Check{serverList("mcpServers.sublet"), toolList("permissions.deny", "run_shell_command", "/stats", "--chat-recording", "false", "-o", "stream-json")},
			Unseen: []string{"mcpServers.sublet.timeout", "mcpServers.sublet.alwaysLoadTools"},
			Note:   `it asks before each call as well; "trust": true in mcpServers.sublet leaves the asking to your window`,
		},
	}
}

// Find returns the agent of that name.
func Find(agents []Agent, name string) (Agent, bool) {
	i := slices.IndexFunc(agents, func(a Agent) bool { return a.Name == name })
	if i < 0 {
		return Agent{}, false
	}
	return agents[i], true
}
