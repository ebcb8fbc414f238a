package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

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
		{"/sessions", "", "list the conversations", (*model).slashSessions},
		{"/new", "", "begin a new conversation", (*model).slashNew},
		{"/rename", "NAME", "name this conversation", (*model).slashRename},
		{"/compact", "[preview|undo]", "fold the conversation to make room; other words say what to keep", (*model).slashCompact},
		{"/clear", "", "delete what was said in this conversation", (*model).slashClear},
		{"/undo", "[file|shell]", "put back an agent's last change of a file, or of your shell", (*model).slashUndo},
		{"/undo-shell", "[all]", "the same as /undo shell; again for the change before, all for every one", (*model).slashUndoShell},
		{"/mode", "[plan|ask|auto]", "what agents may do unasked", (*model).slashMode},
		{"/rules", "[rm ID]", "list or revoke what you allowed for good", (*model).slashRules},
		{"/accept", "", "take what agents changed in your shell for your own", (*model).slashAccept},
		{"/secrets", "[mask|show]", "whether models see what looks like a secret, in this conversation", (*model).slashSecrets},
		{"/model", "", "which model answers", (*model).slashModel},
		{"/status", "", "the daemon, its turns, who has which shell", (*model).slashStatus},
		{"/mcp", "", "the MCP servers, how they are, and their tools", (*model).slashMCP},
		{"/export", "[FILE]", "write the conversation as Markdown", (*model).slashExport},
		{"/quit", "", "leave", (*model).slashQuit},
	}
}

// slash runs a `/` command; false: there is none of that name, and a hint says so.
func (m *model) slash(text string) bool {
	name, args, _ := strings.Cut(text, " ")
	var found *slashCommand
	for _, c := range slashCommands() {
		if c.name == name {
			found = &c
			break
		}
		if strings.HasPrefix(c.name, name) && len(name) > 1 {
			if found != nil {
				m.hintLines(m.th.warn.Render(name + " could be " + found.name + " or " + c.name))
				return false
			}
			c := c
			found = &c
		}
	}
	if found == nil {
		m.hintLines(m.th.warn.Render("there is no "+visible.Line(name)) + m.th.dim.Render(" · /help lists what there is"))
		return false
	}
	m.echo(strings.TrimSpace(found.name + " " + strings.TrimSpace(args))) // what it prints is read later, too
	found.run(m, strings.TrimSpace(args))
	return true
}

func (m *model) slashHelp(string) {
	var b strings.Builder
	put := func(left, right string) {
		column := 27
		left = "  " + m.th.accent.Render(left)
		if m.w < 2*column { // too narrow for two
			b.WriteString(left + "\n")
			left, column = "", 4
		}
		for _, l := range wrap(right, max(10, m.w-column-1)) {
			b.WriteString(pad(left, column) + m.th.dim.Render(l) + "\n")
			left = ""
		}
	}
	b.WriteString(m.th.bold.Render("Two modes") + "\n")
	put("tab", "on an empty line: from your shell to asking an agent, and back")
	put("?", "on an empty line of your shell: one question")
	put("!command", "runs a command in your shell while asking")
	b.WriteString(m.th.bold.Render("Keys") + "\n")
	put("esc, ctrl+c", "stop the agent and its command")
	put("ctrl+o", "all of an agent's last output; again: of the one before")
	put("alt+enter, ctrl+j", "a new line")
	put("ctrl+c", "in your shell, while an agent's command runs: takes it back")
	put("ctrl+d", "on an empty line: leave")
	b.WriteString(m.th.bold.Render("Commands") + "\n")
	for _, c := range slashCommands() {
		put(strings.TrimSpace(c.name+" "+c.args), c.help)
	}
	m.emit(kindText, strings.TrimRight(b.String(), "\n"))
}

func (m *model) slashQuit(string) { m.endOfInput() }

// op runs a request of the daemon beside the event loop, and prints its error, or has f's result done.
func (m *model) op(what string, f func(ctx context.Context) (then, error)) {
	if !m.daemon.Connected() {
		m.fail(what+": the daemon is not connected", m.linkWord)
		return
	}
	m.task(func(ctx context.Context) then {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		done, err := f(ctx)
		if err == nil {
			return done
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

// saying prints a note, printing lines that were asked for.
func (m *model) saying(text string) then { return func() { m.note(text) } }

func (m *model) printing(lines ...string) then {
	return func() { m.emit(kindText, strings.Join(lines, "\n")) }
}

func (m *model) slashCompact(args string) {
	r := &wire.CompactRequest{Op: "run", Instructions: args}
	if args == "preview" || args == "undo" {
		r.Op, r.Instructions = args, ""
	}
	daemon := m.daemon
	m.op("/compact", func(ctx context.Context) (then, error) { return nil, daemon.Compact(ctx, r) })
}

func (m *model) slashUndo(args string) {
	switch args {
	case "", "file":
		daemon := m.daemon
		m.op("/undo", func(ctx context.Context) (then, error) {
			return nil, daemon.Undo(ctx, &wire.UndoRequest{What: "file"})
		})
	case "shell":
		m.slashUndoShell("")
	case "shell all":
		m.slashUndoShell("all")
	default:
		m.fail("/undo takes file or shell", "")
	}
}

func (m *model) slashUndoShell(args string) {
	if args != "" && args != "all" {
		m.fail("/undo-shell takes all, or nothing", "")
		return
	}
	sh := m.shell
	m.task(func(ctx context.Context) then {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		changed, left, err := sh.UndoShell(ctx, args == "all")
		return func() {
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
	daemon := m.daemon
	m.op("/rename", func(ctx context.Context) (then, error) {
		_, err := daemon.Sessions(ctx, &wire.SessionRequest{Op: "rename", Name: args})
		return m.saying("this conversation is " + visible.Line(args) + " now"), err
	})
	m.session.Name = args
}

func (m *model) slashClear(string) {
	if now := m.now(); m.clearOK.IsZero() || now.Sub(m.clearOK) > 20*time.Second {
		m.clearOK = now
		m.emit(kindNote, m.marked(m.th.warn.Render("!"), "this deletes what was said in this conversation for good; /clear again does it, /new only begins another", false))
		return
	}
	m.clearOK = time.Time{}
	daemon := m.daemon
	m.op("/clear", func(ctx context.Context) (then, error) {
		_, err := daemon.Sessions(ctx, &wire.SessionRequest{Op: "clear"})
		return m.saying("the conversation is empty"), err
	})
	m.use = wire.ContextUse{}
}

func (m *model) slashMode(args string) {
	r := &wire.PolicyRequest{Op: "get"}
	switch args {
	case "":
	case "plan", "ask", "auto":
		r.Op, r.Mode = "set_mode", args
	default:
		m.fail("/mode takes plan, ask or auto", "full is for `sublet --mode full` alone")
		return
	}
	daemon := m.daemon
	m.op("/mode", func(ctx context.Context) (then, error) {
		p, err := daemon.Policy(ctx, r)
		if err != nil {
			return nil, err
		}
		means := map[string]string{
			"plan": "agents only look; the rest is refused", "ask": "agents look unasked; the rest is asked",
			"auto": "agents look and change what can be undone in the project; the rest is asked", "full": "only what is critical is asked",
		}[p.Mode]
		return func() {
			m.policy = p.Mode
			m.note(visible.Line(p.Mode) + " mode: " + means)
		}, nil
	})
}

func (m *model) slashRules(args string) {
	daemon, th := m.daemon, m.th
	if args == "rm" {
		m.fail("/rules rm needs the ID of a rule", "/rules lists them with their IDs")
		return
	}
	if id, ok := strings.CutPrefix(args, "rm "); ok {
		m.op("/rules", func(ctx context.Context) (then, error) {
			_, err := daemon.Policy(ctx, &wire.PolicyRequest{Op: "revoke", RuleID: wire.RuleID(strings.TrimSpace(id))})
			return m.saying("revoked"), err
		})
		return
	}
	m.op("/rules", func(ctx context.Context) (then, error) {
		p, err := daemon.Policy(ctx, &wire.PolicyRequest{Op: "list"})
		if err != nil {
			return nil, err
		}
		if len(p.Rules) == 0 {
			return m.saying("no rules: everything beyond " + visible.Line(p.Mode) + " mode is asked"), nil
		}
		var lines []string
		for _, r := range p.Rules {
			style := th.good
			if r.Decision != "allow" {
				style = th.warn
			}
			lines = append(lines, style.Render(pad(visible.Line(r.Decision), 6))+visible.Line(r.Pattern)+
				th.dim.Render("  "+visible.Line(strings.TrimSpace(r.Scope+" "+string(r.Subject)))+" · "+visible.Line(r.Source)+" · "+visible.Line(string(r.ID))))
		}
		lines = append(lines, th.dim.Render("/rules rm ID revokes one"))
		return m.printing(lines...), nil
	})
}

func (m *model) slashModel(string) {
	if m.answers == "" {
		m.note("no model is known yet: the daemon has not said")
		return
	}
	var lines []string
	line := func(name, about string) {
		mark := "  "
		if name == m.answers {
			mark = m.th.accent.Render(m.th.glyph("▸ ", "> "))
		}
		lines = append(lines, mark+visible.Line(name)+m.th.dim.Render(about))
	}
	if !slices.ContainsFunc(m.models, func(i wire.ModelInfo) bool { return i.Name == m.answers }) {
		line(m.answers, "") // the settings have changed since the handshake
	}
	for _, i := range m.models {
		about := ""
		if i.ProviderKind != "" && i.ProviderKind != i.Name {
			about = " · " + visible.Line(i.ProviderKind)
		}
		if i.ContextWindow > 0 {
			about += " · " + count(int64(i.ContextWindow)) + " tokens"
		}
		if !i.Loaded {
			about += " · has no key"
		}
		line(i.Name, about)
	}
	m.emit(kindText, strings.Join(append(lines, m.th.dim.Render("choose with `model = \"provider/name\"`: sublet config edit")), "\n"))
}

func (m *model) slashStatus(string) {
	daemon, th := m.daemon, m.th
	m.op("/status", func(ctx context.Context) (then, error) {
		s, err := daemon.Status(ctx)
		if err != nil {
			return nil, err
		}
		lines := []string{fmt.Sprintf("daemon %s · pid %d · up %s · %s", visible.Line(s.Version), s.PID,
			elapsed(time.Duration(s.UptimeMS)*time.Millisecond), plural(s.Turns, "turn", "turns")), "  " + connections(s)}
		for _, l := range s.Leases {
			who := "not lent"
			if l.Holder != "" {
				who = visible.Line(l.Holder) + " for " + ticking(time.Duration(l.HeldMS)*time.Millisecond)
				if l.Purpose != "" {
					who += ": " + visible.Line(firstLine(l.Purpose))
				}
			}
			line := fmt.Sprintf("  shell of %d: %s", l.ClientPID, who)
			for _, w := range l.Queue {
				line += th.dim.Render(" · waits: " + visible.Line(w.Agent))
			}
			lines = append(lines, line)
		}
		lines = append(lines, th.dim.Render(fmt.Sprintf("  this conversation: %s", plural(s.ConversationLength, "event", "events"))))
		return m.printing(lines...), nil
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
	return strings.Join(append([]string{plural(windows, "window", "windows")}, others...), " · ")
}

func (m *model) slashMCP(string) {
	daemon, th := m.daemon, m.th
	m.op("/mcp", func(ctx context.Context) (then, error) {
		s, err := daemon.Status(ctx)
		if err != nil {
			return nil, err
		}
		if len(s.MCPServers) == 0 {
			return m.saying("no MCP servers: [mcp.NAME] in the settings gives agents the tools of one (`sublet config edit`)"), nil
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
			lines = append(lines, visible.Line(srv.Name)+th.dim.Render(" · "+state+" · "+visible.Line(srv.What)))
			if srv.State == wire.MCPFailed {
				lines = append(lines, "  "+th.warn.Render(visible.Line(srv.Error)))
			}
			if len(srv.Tools) > 0 {
				lines = append(lines, "  "+visible.Line(strings.Join(srv.Tools, ", ")))
			}
			if srv.Left != "" {
				lines = append(lines, th.dim.Render("  left out: "+visible.Line(srv.Left)))
			}
		}
		return m.printing(lines...), nil
	})
}

func (m *model) slashExport(args string) {
	dir := m.shell.Dir()
	name := firstOf(args, "sublet-"+m.now().Format("2006-01-02-1504")+".md")
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		name = filepath.Join(lookup(m.opt.Env)("HOME"), rest)
	} else if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	daemon := m.daemon
	m.op("/export", func(ctx context.Context) (then, error) {
		r, err := daemon.Sessions(ctx, &wire.SessionRequest{Op: "export", Format: "markdown"})
		if err != nil {
			return nil, err
		}
		if r.Session.Turns == 0 {
			return m.saying("nothing to export: no agent was asked in this conversation yet"), nil
		}
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // never over a file that is there
		if err != nil {
			return nil, err
		}
		if _, err = f.WriteString(r.Text); err != nil {
			f.Close()
			return nil, err
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
		return m.saying("written to " + visible.Line(name)), nil
	})
}
