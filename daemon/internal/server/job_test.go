package server_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sublet/daemon/config"
	"sublet/daemon/internal/job"
	"sublet/daemon/internal/provider/scripted"
	"sublet/daemon/internal/store"
	"sublet/wire"
)

// there is a client in a folder that exists, where a private shell can be started.
func (r *rig) there(env *wire.EnvSnapshot) {
	env.Cwd, env.Env["HOME"] = wire.OSString(r.dir), wire.OSString(r.dir)
}

// background has a job started and returns its call's result.
func (p *peer) background(command string, wake bool) *wire.CommandResult {
	p.t.Helper()
	args, _ := json.Marshal(map[string]any{"command": command, "background": true, "wake": wake}) // no other kinds: no error
	r := &wire.ToolRequest{RequestID: requestID(), Tool: "bash", Arguments: string(args), Cwd: wire.OSString(p.rig.dir)}
	p.send(r)
	await(p, func(m *wire.AgentComplete) bool { return m.RequestID == r.RequestID })
	return await(p, func(m *wire.CommandResult) bool { return m.RequestID == r.RequestID })
}

func (p *peer) jobs(r *wire.JobRequest) *wire.JobReply {
	p.t.Helper()
	r.RequestID = requestID()
	p.send(r)
	return await(p, func(m *wire.JobReply) bool { return m.RequestID == r.RequestID })
}

// woken counts the turns that jobs began.
func (p *peer) woken() (n int) {
	for _, m := range p.all() {
		if s, ok := m.(*wire.TurnStarted); ok && strings.HasPrefix(s.Prompt, "[sent by sublet, not by the user] job ") {
			n++
		}
	}
	return n
}

// The end of a job wakes its agent, at most ten times an hour, and where no client was there, with the next one that comes. A
// daemon with a running job is not idle.
func TestJobsWake(t *testing.T) {
	r := newRig(t, scripted.Script{Match: ".", Steps: []scripted.Step{{Text: "well"}}})
	p := r.dial(withoutShell, r.there)
	gate := r.dir + "/gate"
	if done := p.background("until [ -e "+gate+" ]; do sleep 0.01; done; exit 7", true); done.ExitCode != nil || done.Status != wire.StatusSuccess {
		t.Errorf("got %+v", done)
	}
	job := p.jobs(&wire.JobRequest{Op: "list"}).Jobs[0]
	if job.State != "running" || job.SessionID != p.session || job.Shell != "a private bash" || job.Wake != "$end" {
		t.Errorf("got %+v", job)
	}
	p.close()
	other := r.dial(withoutShell, r.there)
	if r.hub.Idle() {
		t.Error("idle with a running job")
	}
	other.background("touch "+gate, false)
	if got := other.jobs(&wire.JobRequest{Op: "read", JobID: job.JobID, WaitMS: 60_000}).Jobs[0]; got.State != "ended" || *got.ExitCode != 7 {
		t.Errorf("got %+v", got)
	}
	if other.woken() > 0 {
		t.Error("another session's agent was woken")
	}
	p = r.dial(withoutShell, r.there, inSession(p.session, -1))
	start := await(p, func(m *wire.TurnStarted) bool { return true })
	if !strings.HasSuffix(start.Prompt, "ended with exit code 7. Look at it with the jobs tool and go on with what waited for it.") {
		t.Errorf("got %q", start.Prompt)
	}
	await(p, func(m *wire.AgentComplete) bool { return m.TurnID == start.TurnID })
	for n := 2; n <= 10; n++ {
		p.background("true", true)
		for end := time.Now().Add(patience); p.woken() < n; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("woken %d times, want %d", p.woken(), n)
			}
		}
	}
	p.background("true", true)
	await(p, func(m *wire.Notice) bool {
		return strings.Contains(m.Text, "its agent was not woken: jobs have woken it 10 times")
	})
	if p.woken() != 10 {
		t.Errorf("woken %d times", p.woken())
	}
	ends := 0
	if err := store.ReadAudit(r.dir+"/audit.log", func(e store.AuditEntry) error {
		if strings.HasPrefix(e.Why, "background job j1 ended with exit code 7") && e.Event == "execution" && *e.ExitCode == 7 {
			ends++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if ends != 1 {
		t.Errorf("%d ends of j1 in the audit log", ends)
	}
}

// The report of a job that ends while the daemon stops is left for the next daemon.
func TestJobEndsWhileTheDaemonStops(t *testing.T) {
	r := newRig(t, say(".", "well"))
	p := r.dial(withoutShell, r.there)
	gate := filepath.Join(r.dir, "gate")
	p.background("until [ -e "+gate+" ]; do sleep 0.01; done", true)
	r.hub.Refuse()
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for ended, end := false, time.Now().Add(patience); !ended && time.Now().Before(end); time.Sleep(time.Millisecond) {
		if err := store.ReadAudit(r.dir+"/audit.log", func(e store.AuditEntry) error {
			ended = ended || strings.HasPrefix(e.Why, "background job j1 ended")
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	r.close()
	m, err := job.Open(filepath.Join(r.dir, "jobs"), r.log)
	if err == nil {
		err = m.Follow(func(job.Info) {})
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := m.List("")[0]; got.State != job.Ended || got.Due == "" {
		t.Errorf("got state %s and no report that is due", got.State)
	}
}

// A job is read as it prints and ended by a request; what is wrong with one is said.
func TestJobRequests(t *testing.T) {
	r := newRig(t)
	r.set(func(c *config.Config) { c.Limits.Jobs = 1 })
	p := r.dial(withoutShell, r.there)
	p.background("echo one; sleep 1000", false)
	got := p.jobs(&wire.JobRequest{Op: "read", JobID: "j1", WaitMS: 60_000})
	if string(got.Output) != "one\n" || got.Offset != 0 {
		t.Errorf("got %q at %d", got.Output, got.Offset)
	}
	if got := p.jobs(&wire.JobRequest{Op: "read", JobID: "j1", Offset: -1, Limit: 2}); string(got.Output) != "e\n" || got.Offset != 2 {
		t.Errorf("the newest: %q at %d", got.Output, got.Offset)
	}
	if done := p.background("true", false); done.Status != wire.StatusError || !strings.Contains(string(done.Output), "limits.jobs is 1") {
		t.Errorf("one too many: %s %q", done.Status, done.Output)
	}
	fails := func(r *wire.JobRequest, code string) {
		t.Helper()
		if e := await(p, func(m *wire.Error) bool { return m.RequestID == r.RequestID }); e.Code != code {
			t.Errorf("%+v: %s %s, want %s", r, e.Code, e.Message, code)
		}
	}
	for _, bad := range []*wire.JobRequest{{Op: "dance"}, {Op: "read", JobID: "j9"}, {Op: "kill", JobID: ""}, {Op: "read", JobID: "j1", Limit: -1}, {Op: "read", JobID: "j1", WaitMS: 1 << 40}} {
		bad.RequestID = requestID()
		p.send(bad)
		fails(bad, wire.CodeInvalidMessage)
	}
	waits := &wire.JobRequest{RequestID: requestID(), Op: "read", JobID: "j1", Offset: 4, WaitMS: 60_000}
	p.send(waits)
	p.send(&wire.CancelRequest{RequestID: &waits.RequestID})
	fails(waits, wire.CodeCancelled)
	if err := os.Remove(string(got.Jobs[0].OutputPath)); err != nil {
		t.Fatal(err)
	}
	lost := &wire.JobRequest{RequestID: requestID(), Op: "read", JobID: "j1"}
	p.send(lost)
	fails(lost, wire.CodeInternal)
	if got := p.jobs(&wire.JobRequest{Op: "kill", JobID: "j1"}).Jobs[0]; got.State != "ended" || !strings.HasPrefix(got.Note, "ended by client test") {
		t.Errorf("got %+v", got)
	}
}

// A command in a private shell that exceeds its time goes on as a job, or sooner where a person wants that: its agent gets what it
// printed so far, and a new shell in the state before. A job of this kind is ended as any other, and with its shell.
func TestACommandGoesOnAsAJob(t *testing.T) {
	r := newRig(t)
	p := r.dial(withoutShell, r.there)
	begin := func(args map[string]any) wire.RequestID {
		text, _ := json.Marshal(args) // no other kinds: no error
		r := &wire.ToolRequest{RequestID: requestID(), Tool: "bash", Arguments: string(text), Cwd: wire.OSString(p.rig.dir)}
		p.send(r)
		return r.RequestID
	}
	run := func(args map[string]any) string {
		t.Helper()
		id := begin(args)
		await(p, func(m *wire.AgentComplete) bool { return m.RequestID == id })
		return string(await(p, func(m *wire.CommandResult) bool { return m.RequestID == id }).Output)
	}
	run(map[string]any{"command": "mkdir sub; cd sub; export KEPT='a b'; here() { echo \"$KEPT in ${PWD##*/}\"; }; alias h=here"})
	gate := r.dir + "/gate"
	got := run(map[string]any{"command": "echo before; cd /; until [ -e " + gate + " ]; do sleep 0.01; done; echo after; exit 7", "timeout_ms": 200})
	if !strings.HasPrefix(got, "before\n[it goes on as the job j1: ") || !strings.Contains(got, "in "+r.dir+"/sub and as it was") {
		t.Errorf("got %q", got)
	}
	if got := run(map[string]any{"command": "h"}); !strings.HasPrefix(got, "a b in sub\n") {
		t.Errorf("in the shell that follows: %q", got)
	}
	if j := p.jobs(&wire.JobRequest{Op: "list"}).Jobs[0]; j.State != "running" || j.Shell != "a private bash" || !strings.HasPrefix(string(j.Command), "echo before") {
		t.Errorf("got %+v", j)
	}
	run(map[string]any{"command": "touch " + gate})
	p.jobs(&wire.JobRequest{Op: "read", JobID: "j1", Offset: 8, WaitMS: 60_000})
	if got := p.jobs(&wire.JobRequest{Op: "read", JobID: "j1", Offset: 13, WaitMS: 60_000}); got.Jobs[0].State != "ended" || *got.Jobs[0].ExitCode != 7 {
		t.Errorf("got %+v", got.Jobs[0])
	}
	if got := p.jobs(&wire.JobRequest{Op: "read", JobID: "j1"}); string(got.Output) != "before\nafter\n" {
		t.Errorf("got %q", got.Output)
	}

	none := &wire.JobRequest{RequestID: requestID(), Op: "background"}
	p.send(none)
	if e := await(p, func(m *wire.Error) bool { return m.RequestID == none.RequestID }); !strings.Contains(e.Message, "no agent runs a command that can go on as a job") {
		t.Errorf("got %q", e.Message)
	}
	id := begin(map[string]any{"command": "echo by hand; sleep 1000; true"})
	await(p, func(m *wire.AgentStreamChunk) bool { return m.RequestID == id && m.Chunk.Type == wire.ChunkToolOutput })
	if got := p.jobs(&wire.JobRequest{Op: "background"}).Jobs; len(got) != 1 || got[0].JobID != "j2" || got[0].State != "running" {
		t.Fatalf("got %+v", got)
	}
	await(p, func(m *wire.AgentComplete) bool { return m.RequestID == id })
	if got := p.jobs(&wire.JobRequest{Op: "kill", JobID: "j2"}).Jobs[0]; got.State != "ended" || !strings.HasPrefix(got.Note, "ended by client") {
		t.Errorf("got %+v", got)
	}
	r.set(func(c *config.Config) { c.Limits.Jobs = 1 })
	run(map[string]any{"command": "sleep 1000", "background": true})
	if got := run(map[string]any{"command": "sleep 1000", "timeout_ms": 200}); !strings.Contains(got, "ended: it ran longer than 200ms") {
		t.Errorf("with no place left: %q", got)
	}
	p.jobs(&wire.JobRequest{Op: "kill", JobID: "j3"})
	if got := run(map[string]any{"command": "sleep 999", "timeout_ms": 100}); !strings.Contains(got, "[nothing new was printed]\n[it goes on as the job j4") {
		t.Errorf("got %q", got) // it runs when the daemon ends
	}
}

// Two commands are to go on as jobs, and only one can. The client gets that job, and a notice with the reason for the other; it used
// to get only an error.
func TestNotAllGoOnAsJobs(t *testing.T) {
	r := newRig(t)
	r.set(func(c *config.Config) { c.Limits.Jobs = 1 })
	both := []any{map[string]any{"role": "engineer", "prompt": "dig here"}, map[string]any{"role": "engineer", "prompt": "dig there"}}
	r.play(
		scripted.Script{Match: "^go", Steps: []scripted.Step{step("task", map[string]any{"tasks": both}), {Text: "done"}}},
		scripted.Script{Match: "^dig", Steps: []scripted.Step{step("bash", map[string]any{"command": "echo begun; sleep 1000"}), {Text: "dug"}}},
	)
	p := r.dial(withoutShell, r.there)
	id := p.ask("go")
	for _, agent := range []string{"engineer-1", "engineer-2"} {
		await(p, func(m *wire.AgentStreamChunk) bool { return m.Agent == agent && m.Chunk.Type == wire.ChunkToolOutput })
	}
	list := p.jobs(&wire.JobRequest{Op: "background"}).Jobs
	if len(list) != 1 || list[0].State != "running" {
		t.Fatalf("got %+v", list)
	}
	await(p, func(m *wire.Notice) bool { return m.Level == "warning" && strings.Contains(m.Text, "limits.jobs") })
	p.send(&wire.CancelRequest{RequestID: &id})
	p.ended(id)
	p.jobs(&wire.JobRequest{Op: "kill", JobID: list[0].JobID})
}

// The command of an agent that has no tool for jobs ends at its time: it could neither wait for the job nor end it.
func TestNoJobWithoutItsTool(t *testing.T) {
	call := scripted.Call{Name: "bash", Arguments: json.RawMessage(`{"command":"sleep 1000","timeout_ms":100}`)}
	r := newRig(t, scripted.Script{Match: ".", Steps: []scripted.Step{{ToolCalls: []scripted.Call{call}}, {Text: "done"}}})
	p := r.dial(withoutShell, r.there)
	for _, tools := range [][]string{{"bash"}, {"bash", "jobs"}} {
		id := p.ask("go", func(m *wire.AgentRequest) { m.Options.Tools = tools })
		p.ended(id)
		got := string(await(p, func(m *wire.CommandResult) bool { return m.RequestID == id }).Output)
		if goesOn := strings.Contains(got, "it goes on as the job"); goesOn != (len(tools) == 2) {
			t.Errorf("with %v: %q", tools, got)
		}
	}
}

// A command in the user's shell that goes on as a job is one of that shell. One that cannot runs on, and Ctrl-B is answered with the
// reason; one beyond the limit of jobs stays in the foreground, and is ended at the end of its time. The command of an agent without the
// tool for jobs does not become one.
func TestACommandOfYourShellGoesOnAsAJob(t *testing.T) {
	sleeper := func() int {
		t.Helper()
		cmd := exec.Command("sh", "-c", "trap '' TERM; exec sleep 1000")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { cmd.Wait(); close(ended) }()
		t.Cleanup(func() { cmd.Process.Kill(); <-ended })
		return cmd.Process.Pid
	}
	call := func(tools ...string) func(*wire.AgentRequest) {
		return func(m *wire.AgentRequest) { m.Options.Tools = tools }
	}
	r := newRig(t, scripted.Script{Match: ".", Steps: []scripted.Step{step("bash", map[string]any{"command": "block"}), {Text: "done"}}})
	r.set(func(c *config.Config) { c.Limits.Jobs = 1 })
	p := r.dial(func(env *wire.EnvSnapshot) { env.Capabilities = append(env.Capabilities, wire.CapContinue) })
	began := make(chan *wire.ExecuteLeasedCommand, 3)
	p.shell.onExec = func(m *wire.ExecuteLeasedCommand) { began <- m }
	running := func() *wire.ExecuteLeasedCommand {
		t.Helper()
		select {
		case m := <-began:
			return m
		case <-time.After(patience):
			t.Fatal("no command began")
			return nil
		}
	}
	toBackground := func(nth int) (request wire.RequestID) {
		t.Helper()
		r := &wire.JobRequest{RequestID: requestID(), Op: "background"}
		p.send(r)
		n := 0
		await(p, func(*wire.ContinueLeasedCommand) bool { n++; return n == nth })
		return r.RequestID
	}
	goesOn := func(m *wire.ExecuteLeasedCommand, pid int) {
		p.shell.mu.Lock()
		defer p.shell.mu.Unlock()
		p.shell.running = nil
		p.send(&wire.CommandCompleted{LeaseRef: m.LeaseRef, ExecutionID: m.ExecutionID, Status: wire.StatusOK, Cwd: m.Cwd, Output: []byte("so far\n"), JobPID: pid})
	}
	result := func(id wire.RequestID) string {
		t.Helper()
		p.ended(id)
		return string(await(p, func(m *wire.CommandResult) bool { return m.RequestID == id }).Output)
	}

	id := p.ask("go", call("bash", "jobs"))
	m := running()
	if !m.Continue {
		t.Fatalf("got %+v", m)
	}
	ask := toBackground(1)
	p.send(&wire.CommandStarted{LeaseRef: m.LeaseRef, ExecutionID: m.ExecutionID, Stays: "it does not stop"})
	if e := await(p, func(e *wire.Error) bool { return e.RequestID == ask }); !strings.Contains(e.Message, "it does not stop") {
		t.Errorf("got %q", e.Message)
	}
	ask = toBackground(2)
	goesOn(m, sleeper())
	j := await(p, func(a *wire.JobReply) bool { return a.RequestID == ask }).Jobs
	if len(j) != 1 || j[0].JobID != "j1" || !j[0].Terminal || j[0].State != "running" {
		t.Errorf("got %+v", j)
	}
	if got := result(id); !strings.HasPrefix(got, "so far\n[it goes on as the job j1: ") || !strings.Contains(got, "prints to their terminal") {
		t.Errorf("got %q", got)
	}

	id = p.ask("go", call("bash", "jobs"))
	pid := sleeper()
	m = running()
	full := &wire.JobRequest{RequestID: requestID(), Op: "background"}
	p.send(full)
	if e := await(p, func(e *wire.Error) bool { return e.RequestID == full.RequestID }); !strings.Contains(e.Message, "limits.jobs") {
		t.Errorf("beyond the limit: %q", e.Message)
	}
	goesOn(m, pid)
	if got := result(id); !strings.Contains(got, "limits.jobs") {
		t.Errorf("beyond the limit: %q", got)
	}
	for syscall.Kill(pid, 0) == nil { // until it is reaped
		time.Sleep(time.Millisecond)
	}

	id = p.ask("go", call("bash"))
	if m = running(); m.Continue {
		t.Errorf("without the tool jobs: %+v", m)
	}
	p.shell.finish()
	p.ended(id)
	p.jobs(&wire.JobRequest{Op: "kill", JobID: "j1"})
}
