package tui

import (
	"context"
	"strings"

	"sublet/lease/shell"
	"sublet/wire"
	"sublet/wire/visible"
)

// maxRecent bounds the user's commands that are sent with a question.
const maxRecent = 10

// reports holds what this client reports about the user's shell: the latest commands, for the next question, and whether the
// environment is being sent to the daemon.
type reports struct {
	recent   []wire.RecentCommand
	reported map[wire.ExecutionID]bool // commands whose events the daemon has yet to send back
	dir      string                    // the shell's directory after the last command, the user's or an agent's; "" = not known
	sending  bool
	changed  bool // the environment has changed since sending began
}

// onUserEnded keeps a command of the user's for the next question and reports it to the daemon.
func (m *model) onUserEnded(e shell.UserEnded) {
	m.lineRan()
	if e.Text == "" {
		return // the shell did not report its text
	}
	rc := wire.RecentCommand{Command: wire.OSString(e.Text), ExitCode: &e.ExitCode, StartedAtMS: e.Started.UnixMilli(), OutputTail: e.Output}
	m.recent = append(m.recent, rc)
	m.recent = m.recent[max(0, len(m.recent)-maxRecent):]
	report := &wire.CommandResult{
		ExecutionID: wire.ExecutionID(wire.NewID()), Command: rc.Command, Status: wire.StatusOK, OutputTail: e.Output, ExitCode: &e.ExitCode,
		Cwd: wire.OSString(e.Dir), StartedAtMS: rc.StartedAtMS, DurationMS: e.Duration.Milliseconds(),
	}
	if m.Daemon.Connected() { // if not, the next question has the command
		if m.reported == nil {
			m.reported = map[wire.ExecutionID]bool{}
		}
		m.reported[report.ExecutionID] = true
		_ = m.Daemon.Send(report) // it only queues; an error: the link is down
	}
	if e.Dir != m.dir { // what else changed in the shell is sent as its state
		m.dir = e.Dir
		m.envChanged()
	}
}

// onJobOutput prints what background jobs print while the screen is not the shell's.
func (m *model) onJobOutput(data []byte) {
	if text := strings.TrimRight(string(shell.Render(data, max(m.w, 20))), "\n "); text != "" {
		m.emit(kindShell, visible.Text(text))
	}
}

// envChanged sends the environment to the daemon, outside the event loop, since reading it waits for the shell's first prompt. One
// call sends at a time, so that the newest environment arrives last. Without a connection the next handshake sends it.
func (m *model) envChanged() {
	if m.changed = m.sending; m.sending || !m.Daemon.Connected() {
		return
	}
	m.sending = true
	m.task(func(ctx context.Context) then {
		_ = m.Daemon.EnvChanged() // an error: the link is down
		return func() {
			if m.sending = false; m.changed {
				m.envChanged()
			}
		}
	})
}
