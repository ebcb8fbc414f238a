package hosted

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"
)

// known is what sublet knows of one agent: how to switch off its own shell, for one process and without a change of the user's
// files, and how to make it wait for our tools.
type known struct {
	name        string            // for it in the settings; also used in ours
	program     string            // its name on PATH, and in commands
	npm         string            // its package
	start       []string          // the arguments that make it speak the protocol
	tried       string            // the version that was tried
	args        []string          // added to the command; $FILE stands for the path of a file with text
	env         map[string]string // added to the environment; $FILE may be a whole value
	text        string
	suffix      string         // of the file's name
	unless      string         // the administrator's file that $FILE would replace: if it exists, text is not used
	sessionMeta map[string]any // sent as _meta of the request for a session
	drops       bool           // it drops MCP servers when a call is cancelled, and does not connect them again
}

const hour = "3600000" // in milliseconds

// table is the agents that are known.
var table = []known{
	{
		name: "claude", program: "claude-agent-acp", npm: "@agentclientprotocol/claude-agent-acp", tried: "0.101",
		env:         map[string]string{"MCP_TOOL_TIMEOUT": hour},
		sessionMeta: map[string]any{"claudeCode": map[string]any{"options": map[string]any{"disallowedTools": []string{"Bash", "BashOutput", "KillShell"}}}},
	},
	{name: "codex", program: "codex-acp", npm: "@zed-industries/codex-acp", tried: "0.16", args: []string{"-c", "features.shell_tool=false", "-c", "features.unified_exec=false"}},
	{
		name: "gemini", program: "gemini", npm: "@google/gemini-cli", start: []string{"--acp"}, tried: "0.61", args: []string{"--policy", "$FILE"},
		suffix: ".toml",
		text:   "[[rule]]\ntoolName = \"run_shell_command\"\ndecision = \"deny\"\npriority = 999\n",
	},
	{name: "opencode", program: "opencode", npm: "opencode-ai", start: []string{"acp"}, tried: "1.18", env: map[string]string{"OPENCODE_PERMISSION": `{"bash":"deny"}`}},
	{
		name: "qwen", program: "qwen", npm: "@qwen-code/qwen-code", start: []string{"--acp"}, tried: "0.24", args: []string{"--exclude-tools", "run_shell_command"},
		env:    map[string]string{"QWEN_CODE_SYSTEM_SETTINGS_PATH": "$FILE", "QWEN_CODE_MCP_TOOL_IDLE_TIMEOUT_MS": hour},
		suffix: ".json",
		text:   `{"tools":{"toolSearch":{"enabled":false}}}`, unless: "/etc/qwen-code/settings.json",
		drops: true,
	},
}

// runners are programs that start the first of their arguments that is not an option.
var runners = []string{"npx", "bunx", "node"}

// knownOf returns what is known of the agent that a command starts, by the exact name of its program or package, the zero value
// for nothing.
func knownOf(command []string) known {
	if len(command) == 0 {
		return known{}
	}
	name := filepath.Base(command[0])
	if slices.Contains(runners, name) {
		if i := slices.IndexFunc(command[1:], func(word string) bool { return !strings.HasPrefix(word, "-") }); i >= 0 {
			name = command[1:][i]
			if at := strings.LastIndex(name, "@"); at > 0 { // a version
				name = name[:at]
			}
			if !strings.HasPrefix(name, "@") {
				name = strings.TrimSuffix(filepath.Base(name), ".js")
			}
		}
	}
	for _, k := range table {
		if name == k.program || name == k.npm {
			return k
		}
	}
	return known{}
}

// withoutShell returns the arguments and variables with which the agent's own shell is switched off. The file that $FILE stands for is made
// in folder, where the daemon removes at its start what an earlier one has left.
func (k known) withoutShell(args []string, folder string) (all []string, env map[string]string, err error) {
	args, env = slices.Clone(args), maps.Clone(k.env)
	file := filepath.Join(folder, Leftover+k.name+k.suffix)
	if _, err := os.Stat(k.unless); k.unless != "" && err == nil {
		maps.DeleteFunc(env, func(_, value string) bool { return value == "$FILE" })
	} else if k.text != "" {
		if err := os.WriteFile(file, []byte(k.text), 0o600); err != nil {
			return nil, nil, err
		}
	}
	for _, a := range k.args {
		args = append(args, strings.Replace(a, "$FILE", file, 1))
	}
	for name, value := range env {
		env[name] = strings.Replace(value, "$FILE", file, 1)
	}
	return args, env, nil
}

// Leftover begins the names of files in Options.Folder.
const Leftover = "hosted-"

// ourTools are the tools of sublet's MCP server.
var ourTools = []string{"shell", "job", "ask_user"}

// ours reports whether a call is one of a tool of our own MCP server, which shows and judges it. It looks only at what the agent's
// program sets, never at what its model does. It is false for an agent that is not known.
func (k known) ours(c *call) bool {
	is := func(name, prefix string) bool {
		tool, ok := strings.CutPrefix(name, prefix)
		return ok && slices.Contains(ourTools, tool)
	}
	plain := c.kind == sdk.ToolKindOther || c.kind == sdk.ToolKindExecute
	switch k.name {
	case "claude":
		m, _ := c.meta["claudeCode"].(map[string]any)
		return is(stringField(m, "toolName"), "mcp__"+serverName+"__")
	case "codex": // the input of such a call; the model's arguments are a field of it
		return plain && stringField(c.input, "server") == serverName && is(stringField(c.input, "tool"), "")
	case "gemini": // the id begins with the tool's name; the title is the call's arguments
		name, _, ok := strings.Cut(string(c.ref), "__")
		return ok && is(strings.TrimPrefix(name, "mcp_"), serverName+"_")
	case "opencode": // only the first title is the program's
		return plain && is(c.first, serverName+"_")
	case "qwen": // but the model chooses the name of a workflow
		return c.meta["workflowApproval"] == nil && is(stringField(c.meta, "toolName"), "mcp__"+serverName+"__")
	}
	return false
}
