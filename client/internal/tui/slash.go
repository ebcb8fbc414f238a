package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/dustin/go-humanize/english"

	"sublet/client/internal/tui/cells"
	"sublet/client/internal/tui/style"
	"sublet/wire"
	"sublet/wire/visible"
)

// slashCommand is one of AI mode's own commands.
type slashCommand struct {
	name, args, help string
	run              func(m *model, args string)
}

// slashCommands is in the order of /help.
func slashCommands() []slashCommand {
	return []slashCommand{
		{"/help", "", "what there is", (*model).slashHelp},
		{"/resume", "[ID]", "go on with an earlier conversation", (*model).slashResume},
		{"/sessions", "", "list the conversations, and go on with one", (*model).slashResume},
		{"/new", "", "begin a new conversation", (*model).slashNew},
		{"/rename", "NAME", "name this conversation", (*model).slashRename},
		{"/compact", "[preview|undo|WORDS]", "compact the conversation to make room; words name what to keep", (*model).slashCompact},
		{"/clear", "", "delete what was said in this conversation", (*model).slashClear},
		{"/undo", "[file|shell|shell all]", "put back an agent's last change of a file, or of your shell", (*model).slashUndo},
		{"/undo-shell", "[all]", "the same as /undo shell; again for the change before, all for every one", (*model).slashUndoShell},
		{"/mode", "[plan|ask|auto|NAME]", modeHelp, (*model).slashMode},
		{"/rules", "[rm ID]", "list or revoke what you allowed for good", (*model).slashRules},
		{"/accept", "", "take what agents changed in your shell for your own", (*model).slashAccept},
		{"/secrets", "[mask|show]", "whether models see what looks like a secret, in this conversation", (*model).slashSecrets},
		{"/agent", "[NAME|default]", "which agent answers from now on: one of sublet's, of yours, or a program that you host", (*model).slashAgent},
		{"/model", "[NAME|default]", "which models there are, or the one that answers from now on", (*model).slashModel},
		{"/thinking", "[off|low|medium|high|default]", "how much it thinks before it answers", (*model).slashThinking},
		{"/status", "", "the daemon, its turns, who has which shell", (*model).slashStatus},
		{"/agents", "[show|stop|merge|drop NAME]", "the agents that the agent has started", (*model).slashAgents},
		{"/mcp", "", "the MCP servers, how they are, and their tools", (*model).slashMCP},
		{"/export", "[FILE]", "write the conversation as Markdown", (*model).slashExport},
		{"/quit", "", "leave", (*model).slashQuit},
	}
}

// slash runs a `/` command, whose name may be shortened. It returns false, with a hint, if no or more than one name begins so.
func (m *model) slash(text string) bool {
	name, args, _ := strings.Cut(text, " ")
	found := slashNames(name)
	if exact := slices.IndexFunc(found, func(c slashCommand) bool { return c.name == name }); exact >= 0 {
		found = found[exact : exact+1]
	}
	switch {
	case len(found) == 0 || name == "/":
		m.hint = m.th.Warn.Render("there is no "+visible.Line(name)) + m.th.Dim.Render(" · /help lists what there is")
		return false
	case len(found) > 1:
		m.hint = m.th.Warn.Render(name + " could be " + found[0].name + " or " + found[1].name)
		return false
	}
	args = strings.TrimSpace(args)
	c := found[0]
	m.echo(strings.TrimSpace(c.name + " " + args)) // in the scrollback its output stands below it
	if words := c.words(); args != "" && words != nil && !slices.Contains(words, args) {
		m.fail(c.name+" takes "+english.WordSeries(words, "or"), c.help)
		return true
	}
	c.run(m, args)
	return true
}

// words returns the arguments that a command takes, if its help lists them all; nil = any argument, which the help names in capitals.
func (c *slashCommand) words() []string {
	if strings.HasPrefix(c.args, "[") && c.args == strings.ToLower(c.args) {
		return strings.Split(strings.Trim(c.args, "[]"), "|")
	}
	return nil
}

const helpText = `Two modes
tab  on an empty line: from your shell to asking an agent, and back
?  on an empty line of your shell: one question
!command  runs a command in your shell while asking
Keys
esc, ctrl+c  stop the agent and its command
ctrl+o  all of an agent's last output; again: of the one before
enter  while an agent works: it gets your message with its next results
ctrl+q  while an agent works: ask that when it is done
ctrl+q  on an empty line: take back what waits, the last first
ctrl+b  while an agent's command runs: it goes on as a job
ctrl+t  how much the model thinks: off, low, medium, high, default
alt+enter, ctrl+j  a new line
ctrl+c  in your shell, while an agent's command runs: takes it back
ctrl+d  on an empty line: leave
Commands`

// slashHelp prints the keys and the commands in two columns; in a narrow window the explanation stands below.
func (m *model) slashHelp(string) {
	rows := strings.Split(helpText, "\n")
	for _, c := range slashCommands() {
		rows = append(rows, strings.TrimSpace(c.name+" "+c.args)+"  "+c.help)
	}
	column := 27
	if m.w < 2*column { // too narrow for two
		column = 4
	}
	var lines []string
	for _, row := range rows {
		left, right, ok := strings.Cut(row, "  ")
		if !ok {
			lines = append(lines, m.th.Bold.Render(row))
			continue
		}
		left = "  " + m.th.Accent.Render(left)
		if cells.Width(left) >= column {
			lines, left = append(lines, left), ""
		}
		for _, l := range cells.Wrap(right, max(10, m.w-column-1)) {
			lines = append(lines, cells.Pad(left, column)+m.th.Dim.Render(l))
			left = ""
		}
	}
	m.list(lines)
}

func (m *model) slashQuit(string) { m.endOfInput() }

// request makes a request of the daemon, as await does.
func request[R wire.Message](m *model, what string, r wire.RequestFor[R], f func(R)) {
	await(m, what, func(ctx context.Context) (R, error) { return wire.Call(ctx, m.Daemon, r) }, f)
}

// post is request for what is a turn of its own: it waits for the running one, and is answered by events.
func post(m *model, what string, r wire.OfRequest) {
	if m.turn != nil {
		m.note(what + " is done after this turn")
	}
	await(m, what, func(ctx context.Context) (struct{}, error) { return struct{}{}, m.Daemon.Post(ctx, r) }, func(struct{}) {})
}

// await calls send, which waits for the daemon, in a goroutine, for at most 30 s; then the event loop prints the error after the name of
// the command, what, or calls f with the result.
func await[R any](m *model, what string, send func(context.Context) (R, error), f func(R)) {
	m.task(func(ctx context.Context) then {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		reply, err := send(ctx)
		if err == nil {
			return func() { f(reply) }
		}
		text, hint := err.Error(), ""
		if e, ok := errors.AsType[*wire.Error](err); ok {
			text, hint = e.Message, e.Hint
		}
		if errors.Is(err, wire.ErrUnknownKind) {
			text, hint = "this daemon is older and cannot do that", "run `sublet daemon restart`; running turns are finished first"
		}
		return func() { m.fail(what+": "+text, hint) }
	})
}

// list prints lines. One that is wider than the window is wrapped, and its continuation indented.
func (m *model) list(lines []string) {
	const indent = "    "
	var out []string
	for _, l := range lines {
		if cells.Width(l) <= m.w {
			out = append(out, l)
			continue
		}
		parts := cells.Wrap(l, max(1, m.w-len(indent)))
		out = append(append(out, parts[0]), cells.Indent(parts[1:], indent)...)
	}
	m.emit(kindText, strings.Join(out, "\n"))
}

func (m *model) slashCompact(args string) {
	r := &wire.CompactRequest{Op: "run", Instructions: args}
	if args == "preview" || args == "undo" {
		r.Op, r.Instructions = args, ""
	}
	post(m, "/compact", r)
}

func (m *model) slashUndo(args string) {
	if all, ok := strings.CutPrefix(args, "shell"); ok {
		m.slashUndoShell(strings.TrimSpace(all))
		return
	}
	post(m, "/undo", &wire.UndoRequest{What: "file"})
}

func (m *model) slashUndoShell(args string) {
	m.task(func(ctx context.Context) then {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		changed, left, err := m.Lender.UndoShell(ctx, args == "all")
		return func() {
			m.dir = "" // unknown: it may have been put back, too
			switch {
			case err != nil:
				m.fail("/undo-shell: "+err.Error(), "")
			case changed == "":
				m.note("nothing that an agent changed in your shell is left to put back")
			default:
				m.note("put back in your shell: " + visible.Line(changed))
			}
			if left != "" {
				m.note("still different: " + visible.Line(left))
			}
		}
	})
}

func (m *model) slashRename(args string) {
	if args == "" {
		m.fail("/rename needs a name", "")
		return
	}
	request(m, "/rename", &wire.SessionRequest{Op: "rename", Name: args}, func(*wire.SessionReply) {
		m.SessionInfo.Name = args
		m.note("this conversation is " + visible.Line(args) + " now")
	})
}

func (m *model) slashClear(string) {
	if !m.again.second("/clear", m.now(), 20*time.Second) {
		m.warn("this deletes what was said in this conversation for good; /clear again does it, /new only begins another")
		return
	}
	request(m, "/clear", &wire.SessionRequest{Op: "clear"}, func(*wire.SessionReply) {
		m.use = wire.ContextUse{}
		m.note("the conversation is empty")
	})
}

const modeHelp = "what agents may do unasked, or a hosted agent's own mode; full: `sublet policy mode full --session ID` in another terminal"

func (m *model) slashMode(args string) {
	means := map[string]string{
		"plan": "agents only look; the rest is refused", "ask": "agents look unasked; the rest is asked",
		"auto": "agents look and change what can be undone in the project; the rest is asked", "full": "only what is critical is asked",
	}
	own := args == "" || means[args] != ""
	refuse := func() { m.fail("/mode takes plan, ask or auto", modeHelp) }
	if args == "full" {
		refuse()
		return
	}
	if own {
		r := &wire.PolicyRequest{Op: "get"}
		if args != "" {
			r.Op, r.Mode = "set_mode", args
		}
		request(m, "/mode", r, func(p *wire.PolicyReply) {
			m.policy = p.Mode
			m.note(visible.Line(p.Mode) + " mode: " + means[p.Mode])
		})
	}
	if m.chosenAgent == "" {
		if !own {
			refuse()
		}
		return
	}
	request(m, "/mode", &wire.ModelsRequest{Agent: m.chosenAgent, Mode: args}, func(of *wire.ModelsReply) {
		switch {
		case of.Agent == "" && !own:
			refuse()
		case of.Agent != "" && of.Mode != "":
			m.note(visible.Line(of.Agent + " is in its own mode " + of.Mode + "; it has " + strings.Join(of.Modes, ", ")))
		}
	})
}

// slashSecrets prints or sets whether models see what looks like a secret, in this conversation.
func (m *model) slashSecrets(args string) {
	r := &wire.PolicyRequest{Op: "get"}
	if args != "" {
		r.Op, r.Secrets = "set_secrets", args
	}
	request(m, "/secrets", r, func(p *wire.PolicyReply) {
		if p.Secrets == "show" {
			m.note("models see secrets as they are in this conversation; /secrets mask hides them again")
			return
		}
		m.note("what looks like a secret is masked before a model sees it")
	})
}

// slashAccept takes what agents changed in the shell for the user's own: it no longer raises the risk of later commands.
func (m *model) slashAccept(string) {
	request(m, "/accept", &wire.PolicyRequest{Op: "get"}, func(p *wire.PolicyReply) {
		if len(p.Suspects) == 0 {
			m.note("agents changed nothing in your shell that you have not allowed")
			return
		}
		request(m, "/accept", &wire.PolicyRequest{Op: "accept", Suspects: p.Suspects}, func(after *wire.PolicyReply) {
			accepted := slices.DeleteFunc(p.Suspects, func(name string) bool { return slices.Contains(after.Suspects, name) })
			m.note("accepted: " + cmp.Or(visible.Line(strings.Join(accepted, " ")), "nothing"))
			if len(after.Suspects) > 0 {
				m.warn("changed meanwhile, and not accepted: " + visible.Line(strings.Join(after.Suspects, " ")))
			}
		})
	})
}

func (m *model) slashRules(args string) {
	if args == "rm" {
		m.fail("/rules rm needs the ID of a rule", "/rules lists them with their IDs")
		return
	}
	if id, ok := strings.CutPrefix(args, "rm "); ok {
		r := &wire.PolicyRequest{Op: "revoke", RuleID: wire.RuleID(strings.TrimSpace(id))}
		request(m, "/rules", r, func(*wire.PolicyReply) { m.note("revoked") })
		return
	}
	request(m, "/rules", &wire.PolicyRequest{Op: "list"}, func(p *wire.PolicyReply) {
		if len(p.Rules) == 0 {
			m.note("no rules: " + visible.Line(p.Mode) + " mode alone decides")
			return
		}
		var lines []string
		for _, r := range p.Rules {
			style := m.th.Good
			if r.Decision != "allow" {
				style = m.th.Warn
			}
			about := "  " + strings.TrimSpace(r.Scope+" "+string(r.Subject)) + " · " + r.Source + " · " + string(r.ID)
			lines = append(lines, style.Render(cells.Pad(visible.Line(r.Decision), 6))+visible.Line(r.Pattern)+m.th.Dim.Render(visible.Line(about)))
		}
		m.list(append(lines, m.th.Dim.Render("/rules rm ID revokes one")))
	})
}

// slashStatus prints the daemon's state: its connections and, for each shell, who holds its lease and who waits for it.
func (m *model) slashStatus(string) {
	request(m, "/status", &wire.StatusRequest{}, func(s *wire.StatusReply) {
		lines := []string{fmt.Sprintf("daemon %s · pid %d · up %s · %s", visible.Line(s.Version), s.PID,
			style.Elapsed(time.Duration(s.UptimeMS)*time.Millisecond), english.Plural(s.Turns, "turn", "")), "  " + connections(s)}
		for _, l := range s.Leases {
			who := "not lent"
			if l.Holder != "" {
				who = visible.Line(l.Holder) + " for " + style.Ticking(time.Duration(l.HeldMS)*time.Millisecond)
				if l.Purpose != "" {
					who += ": " + visible.FirstLine(l.Purpose)
				}
			}
			line := fmt.Sprintf("  shell of %d: %s", l.ClientPID, who)
			for _, w := range l.Queue {
				line += m.th.Dim.Render(" · waits: " + visible.Line(w.Agent))
			}
			lines = append(lines, line)
		}
		m.list(append(lines, m.th.Dim.Render("  this conversation: "+visible.Line(string(m.SessionInfo.ID))+", "+english.Plural(s.ConversationLength, "event", ""))))
	})
}

// connections counts who is connected by what they are: windows, then the others by their names.
func connections(s *wire.StatusReply) string {
	windows := 0
	var others []string
	for _, of := range s.Connections {
		switch {
		case of.Shell:
			windows += of.Count
		case of.Count == 1:
			others = append(others, visible.Line(of.Name))
		default:
			others = append(others, fmt.Sprintf("%d %s", of.Count, visible.Line(of.Name)))
		}
	}
	return strings.Join(append([]string{english.Plural(windows, "window", "")}, others...), " · ")
}

func (m *model) slashMCP(string) {
	request(m, "/mcp", &wire.StatusRequest{}, func(s *wire.StatusReply) {
		if len(s.MCPServers) == 0 {
			m.note("no MCP servers: [mcp.NAME] in the settings gives agents the tools of one (`sublet config edit`)")
			return
		}
		var lines []string
		for _, srv := range s.MCPServers {
			state := srv.State
			if state == wire.MCPResting {
				state = "started when a turn needs it"
			}
			if srv.Client {
				state += " · this window's"
			}
			lines = append(lines, visible.Line(srv.Name)+m.th.Dim.Render(" · "+state+" · "+visible.Line(srv.What)))
			if srv.State == wire.MCPFailed {
				lines = append(lines, "  "+m.th.Warn.Render(visible.Line(srv.Error)))
			}
			if len(srv.Tools) > 0 {
				lines = append(lines, "  "+visible.Line(strings.Join(srv.Tools, ", ")))
			}
			if srv.Left != "" {
				lines = append(lines, m.th.Dim.Render("  left out: "+visible.Line(srv.Left)))
			}
		}
		m.list(lines)
	})
}

func (m *model) slashExport(args string) {
	name := cmp.Or(args, "sublet-"+m.now().Format("2006-01-02-1504")+".md")
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		name = filepath.Join(uv.Environ(m.Env).Getenv("HOME"), rest)
	} else if !filepath.IsAbs(name) {
		name = filepath.Join(m.Shell.Dir(), name)
	}
	export := func(ctx context.Context) (note string, err error) {
		reply, err := wire.Call(ctx, m.Daemon, &wire.SessionRequest{Op: "export", Format: "markdown"})
		if err != nil {
			return "", err
		}
		if reply.Session.Turns == 0 {
			return "nothing to export: no agent was asked in this conversation yet", nil
		}
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // never over a file that is there
		if err != nil {
			return "", err
		}
		_, err = f.WriteString(reply.Text)
		return "written to " + visible.Line(name), errors.Join(err, f.Close())
	}
	await(m, "/export", export, m.note)
}
