package tui

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"sublet/lease/shell"
	"sublet/wire"
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
		{"/undo-shell", "", "the same as /undo shell", (*model).slashUndoShell},
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

// slashTakesArgument tells that a command is usually followed by something.
func slashTakesArgument(name string) bool {
	for _, c := range slashCommands() {
		if c.name == name {
			return c.args != ""
		}
	}
	return false
}

// slashInShell tells that a line of command mode is meant for us: its first word is one of our commands, spelled out,
// and no program is there under that path. A newcomer types /resume where they are, and bash has no use for it.
func slashInShell(text string) bool {
	name, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	if !slices.ContainsFunc(slashCommands(), func(c slashCommand) bool { return c.name == name }) {
		return false
	}
	_, err := os.Stat(name)
	return errors.Is(err, fs.ErrNotExist)
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
		m.hintLines(m.th.warn.Render("there is no "+visibleLine(name)) + m.th.dim.Render(" · /help lists what there is"))
		return false
	}
	m.echo(strings.TrimSpace(found.name + " " + strings.TrimSpace(args))) // what it prints is read later, too
	found.run(m, strings.TrimSpace(args))
	return true
}

// completeSlash offers the commands that begin with what is written.
func (m *model) completeSlash(insert bool) {
	var items []shell.Completion
	for _, c := range slashCommands() {
		if strings.HasPrefix(c.name, m.ed.text) {
			items = append(items, shell.Completion{Text: c.name, Description: c.help})
		}
	}
	switch {
	case len(items) == 0:
		m.comp = nil
	case len(items) == 1 && insert:
		m.complete(0, len(m.ed.text), items[0])
		m.comp = nil
	case len(items) == 1 && items[0].Text == m.ed.text:
		m.comp = nil
	default:
		m.comp = &completion{from: 0, to: len(m.ed.text), items: items, chosen: -1, before: m.ed.text, slash: true}
		if insert {
			m.choose(0)
		}
	}
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
	put("tab", "on an empty line: from the shell to asking an agent, and back")
	put("?question", "asks from the shell")
	put("!command", "runs a command while asking")
	b.WriteString(m.th.bold.Render("Keys") + "\n")
	put("esc, ctrl+c", "stop the agent and its command")
	put("ctrl+o", "all of an agent's last output; again: of the one before")
	put("ctrl+r", "search what you entered before")
	put("alt+enter, ctrl+j", "a new line")
	put("ctrl+x ctrl+e", "the line in your $EDITOR")
	put("enter, enter", "while an agent's command runs: takes your shell back")
	put("ctrl+d", "on an empty line: leave")
	b.WriteString(m.th.bold.Render("Commands") + "\n")
	for _, c := range slashCommands() {
		put(strings.TrimSpace(c.name+" "+c.args), c.help)
	}
	m.emit(kindText, strings.TrimRight(b.String(), "\n"))
}

func (m *model) slashQuit(string) { m.endOfInput() }

// op runs a request of the daemon and prints its error; f's text is printed as a note.
func (m *model) op(what string, f func(ctx context.Context) (printText, error)) {
	if !m.daemon.Connected() {
		m.fail(what+": the daemon is not connected", m.linkWord)
		return
	}
	m.task(func(ctx context.Context) tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		out, err := f(ctx)
		if err != nil {
			var e *wire.Error
			if errors.As(err, &e) {
				return taskFailed{what + ": " + e.Message, e.Hint}
			}
			return taskFailed{what + ": " + err.Error(), ""}
		}
		if out.text == "" {
			return nil
		}
		return out
	})
}

func (m *model) quiet(text string) printText {
	return printText{m.th.dim.Render(m.th.glyph("· ", "- ") + text), kindNote}
}

func (m *model) slashCompact(args string) {
	r := &wire.CompactRequest{Op: "run", Instructions: args}
	if args == "preview" || args == "undo" {
		r.Op, r.Instructions = args, ""
	}
	daemon := m.daemon
	m.op("/compact", func(ctx context.Context) (printText, error) { return printText{}, daemon.Compact(ctx, r) })
}

func (m *model) slashUndo(args string) {
	switch args {
	case "", "file":
		daemon := m.daemon
		m.op("/undo", func(ctx context.Context) (printText, error) {
			return printText{}, daemon.Undo(ctx, &wire.UndoRequest{What: "file"})
		})
	case "shell":
		m.slashUndoShell("")
	default:
		m.fail("/undo takes file or shell", "")
	}
}

func (m *model) slashUndoShell(string) {
	sh := m.shell
	m.task(func(ctx context.Context) tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		changed, err := sh.UndoShell(ctx)
		return shellUndone{changed, err}
	})
}

// shellUndone is the end of /undo-shell.
type shellUndone struct {
	changed string
	err     error
}

func (m *model) onShellUndone(u shellUndone) {
	switch {
	case u.err != nil:
		m.fail("/undo-shell: "+u.err.Error(), "")
	case u.changed == "":
		m.handle(m.quiet("no agent changed anything in your shell"))
	default:
		m.handle(m.quiet("put back in your shell: " + visibleLine(u.changed)))
	}
	m.readPrompt() // not before: it may be in another folder now
}

func (m *model) slashRename(args string) {
	if args == "" {
		m.fail("/rename needs a name", "")
		return
	}
	daemon := m.daemon
	m.op("/rename", func(ctx context.Context) (printText, error) {
		_, err := daemon.Sessions(ctx, &wire.SessionRequest{Op: "rename", Name: args})
		return m.quiet("this conversation is " + visibleLine(args) + " now"), err
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
	m.op("/clear", func(ctx context.Context) (printText, error) {
		_, err := daemon.Sessions(ctx, &wire.SessionRequest{Op: "clear"})
		return m.quiet("the conversation is empty"), err
	})
	m.use = wire.ContextUse{}
}

// policyRead is the policy's mode, and what to print of it.
type policyRead struct{ mode, text string }

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
	if !daemon.Connected() {
		m.fail("/mode: the daemon is not connected", m.linkWord)
		return
	}
	m.task(func(ctx context.Context) tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		p, err := daemon.Policy(ctx, r)
		if err != nil {
			return taskFailed{"/mode: " + err.Error(), ""}
		}
		means := map[string]string{
			"plan": "agents only look; the rest is refused", "ask": "agents look unasked; the rest is asked",
			"auto": "agents look and change what can be undone in the project; the rest is asked", "full": "only what is critical is asked",
		}[p.Mode]
		return policyRead{p.Mode, m.th.dim.Render(m.th.glyph("· ", "- ")) + m.th.bold.Render(visibleLine(p.Mode)+" mode") + m.th.dim.Render(": "+means)}
	})
}

func (m *model) slashRules(args string) {
	daemon, th := m.daemon, m.th
	if args == "rm" {
		m.fail("/rules rm needs the ID of a rule", "/rules lists them with their IDs")
		return
	}
	if id, ok := strings.CutPrefix(args, "rm "); ok {
		m.op("/rules", func(ctx context.Context) (printText, error) {
			_, err := daemon.Policy(ctx, &wire.PolicyRequest{Op: "revoke", RuleID: wire.RuleID(strings.TrimSpace(id))})
			return m.quiet("revoked"), err
		})
		return
	}
	m.op("/rules", func(ctx context.Context) (printText, error) {
		p, err := daemon.Policy(ctx, &wire.PolicyRequest{Op: "list"})
		if err != nil {
			return printText{}, err
		}
		if len(p.Rules) == 0 {
			return m.quiet("no rules: everything beyond " + visibleLine(p.Mode) + " mode is asked"), nil
		}
		var lines []string
		for _, r := range p.Rules {
			style := th.good
			if r.Decision != "allow" {
				style = th.warn
			}
			lines = append(lines, style.Render(pad(visibleLine(r.Decision), 6))+visibleLine(r.Pattern)+
				th.dim.Render("  "+visibleLine(strings.TrimSpace(r.Scope+" "+string(r.Subject)))+" · "+visibleLine(r.Source)+" · "+visibleLine(string(r.ID))))
		}
		lines = append(lines, th.dim.Render("/rules rm ID revokes one"))
		return printText{strings.Join(lines, "\n"), kindText}, nil
	})
}

func (m *model) slashModel(string) {
	if len(m.models) == 0 {
		m.note("no model is known yet: the daemon has not said")
		return
	}
	var lines []string
	for i, mod := range m.models {
		mark := "  "
		if i == 0 {
			mark = m.th.accent.Render(m.th.glyph("▸ ", "> "))
		}
		kind, state := "", ""
		if mod.ProviderKind != "" && mod.ProviderKind != mod.Name {
			kind = " · " + visibleLine(mod.ProviderKind)
		}
		if !mod.Loaded {
			state = " · has no key"
		}
		window := ""
		if mod.ContextWindow > 0 {
			window = " · " + count(int64(mod.ContextWindow)) + " tokens"
		}
		lines = append(lines, mark+visibleLine(mod.Name)+m.th.dim.Render(kind+window+state))
	}
	lines = append(lines, m.th.dim.Render("choose with `model = \"provider/name\"`: sublet config edit"))
	m.emit(kindText, strings.Join(lines, "\n"))
}

func (m *model) slashStatus(string) {
	daemon, th := m.daemon, m.th
	m.op("/status", func(ctx context.Context) (printText, error) {
		s, err := daemon.Status(ctx)
		if err != nil {
			return printText{}, err
		}
		lines := []string{fmt.Sprintf("daemon %s · pid %d · up %s · %s", visibleLine(s.Version), s.PID,
			elapsed(time.Duration(s.UptimeMS)*time.Millisecond), plural(s.Turns, "turn", "turns")), "  " + connections(s)}
		for _, l := range s.Leases {
			who := "not lent"
			if l.Holder != "" {
				who = visibleLine(l.Holder) + " for " + ticking(time.Duration(l.HeldMS)*time.Millisecond)
				if l.Purpose != "" {
					who += ": " + visibleLine(firstLine(l.Purpose))
				}
			}
			line := fmt.Sprintf("  shell of %d: %s", l.ClientPID, who)
			for _, w := range l.Queue {
				line += th.dim.Render(" · waits: " + visibleLine(w.Agent))
			}
			lines = append(lines, line)
		}
		lines = append(lines, th.dim.Render(fmt.Sprintf("  this conversation: %s", plural(s.ConversationLength, "event", "events"))))
		return printText{strings.Join(lines, "\n"), kindText}, nil
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
			others = append(others, visibleLine(of.Name))
		default:
			others = append(others, fmt.Sprintf("%d %s", of.Count, visibleLine(of.Name)))
		}
	}
	return strings.Join(append([]string{plural(windows, "window", "windows")}, others...), " · ")
}

func (m *model) slashMCP(string) {
	daemon, th := m.daemon, m.th
	m.op("/mcp", func(ctx context.Context) (printText, error) {
		s, err := daemon.Status(ctx)
		if err != nil {
			return printText{}, err
		}
		if len(s.MCPServers) == 0 {
			return m.quiet("no MCP servers: [mcp.NAME] in the settings gives agents the tools of one (`sublet config edit`)"), nil
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
			lines = append(lines, visibleLine(srv.Name)+th.dim.Render(" · "+state+" · "+visibleLine(srv.What)))
			if srv.State == wire.MCPFailed {
				lines = append(lines, "  "+th.warn.Render(visibleLine(srv.Error)))
			}
			if len(srv.Tools) > 0 {
				lines = append(lines, "  "+visibleLine(strings.Join(srv.Tools, ", ")))
			}
			if srv.Left != "" {
				lines = append(lines, th.dim.Render("  left out: "+visibleLine(srv.Left)))
			}
		}
		return printText{strings.Join(lines, "\n"), kindText}, nil
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
	m.op("/export", func(ctx context.Context) (printText, error) {
		r, err := daemon.Sessions(ctx, &wire.SessionRequest{Op: "export", Format: "markdown"})
		if err != nil {
			return printText{}, err
		}
		if r.Session.Turns == 0 {
			return m.quiet("nothing to export: no agent was asked in this conversation yet"), nil
		}
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // never over a file that is there
		if err != nil {
			return printText{}, err
		}
		if _, err = f.WriteString(r.Text); err != nil {
			f.Close()
			return printText{}, err
		}
		if err := f.Close(); err != nil {
			return printText{}, err
		}
		return m.quiet("written to " + visibleLine(name)), nil
	})
}
