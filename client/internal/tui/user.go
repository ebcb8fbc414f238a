package tui

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sublet/client/internal/tui/style"
	"sublet/lease/shell"
	"sublet/wire"
	"sublet/wire/visible"
)

// maxRecent commands of the user's go along with a question.
const maxRecent = 10

// onUserEnded keeps a command of the user's for the next question and reports it to the daemon.
func (m *model) onUserEnded(e shell.UserEnded) {
	if m.own.returns {
		m.enterAI(false)
	}
	if e.Text == "" {
		return // nothing is known of it
	}
	rc := wire.RecentCommand{Command: wire.OSString(e.Text), ExitCode: &e.ExitCode, StartedAtMS: e.Started.UnixMilli(), OutputTail: e.Output}
	m.recent = append(m.recent, rc)
	m.recent = m.recent[max(0, len(m.recent)-maxRecent):]
	report := &wire.CommandResult{
		ExecutionID: wire.ExecutionID(wire.NewID()), Command: rc.Command, Status: wire.StatusOK, OutputTail: e.Output, ExitCode: &e.ExitCode,
		Cwd: wire.OSString(e.Dir), StartedAtMS: rc.StartedAtMS, DurationMS: e.Duration.Milliseconds(),
	}
	if m.daemon.Connected() { // without a daemon nobody needs it; questions carry the commands again
		m.reports = append(m.reports, report)
		m.reported[report.ExecutionID] = true
		m.report()
	}
	m.envChanged()
}

// report sends the daemon the user's commands, in their order.
func (m *model) report() {
	if m.reporting || len(m.reports) == 0 {
		return
	}
	m.reporting = true
	daemon, list := m.daemon, m.reports
	m.reports = nil
	m.task(func(ctx context.Context) then {
		for _, r := range list {
			_ = daemon.UserCommand(ctx, r) // the link went down meanwhile
		}
		return func() {
			m.reporting, m.dirty = false, false
			m.report()
		}
	})
}

// onJobOutput prints what background jobs print while the screen is not the shell's.
func (m *model) onJobOutput(data []byte) {
	if text := strings.TrimRight(string(shell.Render(data, max(m.w, 20))), "\n "); text != "" {
		m.emit(kindShell, visible.Text(text))
	}
}

// envChanged sends the terminal's size to the shell, and the environment to the daemon; one message is on its way at a time.
func (m *model) envChanged() {
	if m.envBusy {
		m.envMore = true
		return
	}
	m.envBusy = true
	daemon, sh, size := m.daemon, m.shell, m.opt.size
	m.task(func(ctx context.Context) then {
		if s, ok := size(); ok {
			_ = sh.Resize(s) // a shell that is gone needs no size
		}
		if daemon.Connected() {
			_ = daemon.EnvChanged(ctx) // the next handshake says it again
		}
		return func() {
			m.envBusy, m.dirty = false, false
			if m.envMore {
				m.envMore = false
				m.envChanged()
			}
		}
	})
}

// describeExit describes how a command of the user's ended, for the replay of a session.
func describeExit(th *style.Theme, code *int, took time.Duration) string {
	var parts []string
	if code != nil && *code != 0 {
		parts = append(parts, th.Bad.Render(fmt.Sprintf("exit %d", *code)))
	}
	if took >= time.Second {
		parts = append(parts, th.Dim.Render(style.Elapsed(took)))
	}
	return strings.Join(parts, th.Dim.Render(" · "))
}
