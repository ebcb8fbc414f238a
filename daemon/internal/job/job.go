// Package job keeps the background jobs of agents: commands that a shell started and nobody waits for. It stores each in a
// folder of its own, watches it, bounds its output, and kills its whole process group. A job outlives its turn, its window
// and the daemon; the next daemon takes it over. Starting jobs, and who may, is left to the hub.
package job

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sublet/lease/procstat"
	"sublet/lease/shell"
	"sublet/lease/shell/procs"
	"sublet/wire"
)

// The states of a job.
const (
	Running = "running"
	Stopped = "stopped" // by a signal, or because it read from the terminal
	Ended   = "ended"
)

const (
	// OutputMost is how many bytes of a job's output are kept, the newest.
	OutputMost = 16 << 20
	// keptEnded is how many jobs that have ended are kept, and keptAge for how long.
	keptEnded = 50
	keptAge   = 7 * 24 * time.Hour
	// pollEvery is how often a running job's output and processes are examined, awaitEvery how often its output while an agent waits
	// for it.
	pollEvery  = 250 * time.Millisecond
	awaitEvery = 20 * time.Millisecond
	// lineMost bounds how many bytes of one line are searched.
	lineMost = 64 << 10
	// killAfter is the time between SIGTERM and SIGKILL, endBound the time until Kill gives up.
	killAfter = 2 * time.Second
	endBound  = 5 * time.Second
)

// WakeEnd is the Wake of a job whose end wakes its agent.
const WakeEnd = "$end"

// Info describes a job: what clients receive, and what only the Manager needs.
type Info struct {
	wire.Job
	Born    int64  // the start of the process PID in clock ticks since boot; 0 = not known
	SID     int    // the session that its process group is in; 0 = not known
	Dropped int64  // bytes of output that are not kept any more, counted in Bytes
	Matched bool   // a line that matches Wake was printed
	Due     string // the report that its agent has not received yet; "" = none
}

// A NotFoundError reports that there is no such job.
type NotFoundError struct{ ID string }

func (e *NotFoundError) Error() string { return fmt.Sprintf("there is no job %q", e.ID) }
func (e *NotFoundError) Hint() string  { return "`sublet job ls` lists the jobs" }

// A LimitError reports that too many jobs run.
type LimitError struct{ Limit int }

func (e *LimitError) Error() string {
	return fmt.Sprintf("limits.jobs is %d, and as many run; end one first", e.Limit)
}

// An AliveError reports that a process of a job runs after SIGKILL.
type AliveError struct {
	ID   string
	PIDs []int
}

func (e *AliveError) Error() string {
	return fmt.Sprintf("job %s was sent SIGKILL and has not ended; still running: %v", e.ID, e.PIDs)
}

// Manager keeps all jobs. It is safe for concurrent use. It owns a goroutine for each running job; Close waits for them.
type Manager struct {
	dir     string
	log     *slog.Logger
	changed func(Info)

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu   sync.Mutex
	jobs map[string]*job // guarded by mu
	last int             // guarded by mu: the newest number
	made int             // guarded by mu: drafts that are not started yet
}

// job is one job. Fields that change are guarded by the Manager's mu.
type job struct {
	info  Info
	seen  int64         // how many bytes of its output its agents have read
	held  *Held         // of a command that this daemon runs; nil: the process is all there is
	ended chan struct{} // closed when it has ended
}

// Open returns a Manager of the jobs in dir, which it creates if necessary. The caller then calls Follow.
func Open(dir string, log *slog.Logger) (*Manager, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder for jobs: %w", err)
	}
	m := &Manager{dir: dir, log: log, changed: func(Info) {}, jobs: map[string]*job{}}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m, nil
}

// Follow takes over the jobs of earlier daemons. From then on changed is called when a job has ended, also if that was while no daemon
// ran, or has a report for its agent (Info.Due), from one goroutine for each job. changed may call the Manager.
func (m *Manager) Follow(changed func(Info)) error {
	m.changed = changed
	list, err := os.ReadDir(m.dir)
	if err != nil {
		return fmt.Errorf("read the folder for jobs: %w", err)
	}
	for _, entry := range list {
		n, err := strconv.Atoi(strings.TrimPrefix(entry.Name(), "j"))
		if err != nil {
			continue
		}
		m.last = max(m.last, n)
		if err := m.adopt(entry.Name()); err != nil {
			m.log.Warn("a job cannot be read", "job", entry.Name(), "err", err)
		}
	}
	m.sweep()
	return nil
}

// foundAgain is the Note of a job that an earlier daemon started.
const foundAgain = "found again by a new daemon"

// adopt takes over a job of an earlier daemon, which runs or has ended.
func (m *Manager) adopt(id string) error {
	j := &job{ended: make(chan struct{})}
	text, err := os.ReadFile(filepath.Join(m.dir, id, "job.json"))
	var earlier struct { // names in the records of versions that had no wire.Job in them: a job may outlive an update
		Session        wire.SessionID
		Started, Ended time.Time
	}
	if err == nil {
		err = errors.Join(json.Unmarshal(text, &j.info), json.Unmarshal(text, &earlier))
	}
	if err != nil {
		return err
	}
	if !earlier.Started.IsZero() {
		j.info.SessionID, j.info.StartedAtMS = earlier.Session, earlier.Started.UnixMilli()
	}
	if !earlier.Ended.IsZero() {
		j.info.EndedAtMS = earlier.Ended.UnixMilli()
	}
	j.info.JobID, j.info.OutputPath = id, m.output(id) // whatever the file holds: the job's folder may be removed by its id
	m.mu.Lock()
	m.jobs[id] = j
	m.mu.Unlock()
	if j.info.State == Ended {
		close(j.ended)
		return nil
	}
	if j.info.PID == 0 { // the daemon ended while it started the job
		j.info.PID, j.info.Born = shell.ReadJobPID(m.folder(id))
	}
	if j.alive() {
		m.log.Info("job found again", "job", id, "pid", j.info.PID)
		m.mu.Lock()
		j.info.State, j.info.Note = Running, foundAgain
		m.saveLocked(j)
		m.mu.Unlock()
		m.follow(j)
		return nil
	}
	j.info.Note = "ended while no daemon ran"
	if j.info.PID == 0 {
		j.info.Note = "lost: the daemon ended while it became a job; if it runs, jobs in its shell lists it"
	}
	m.log.Info("job not found again", "job", id, "note", j.info.Note)
	m.finish(j)
	return nil
}

// alive reports whether the leader of the job's process group runs, or has ended and others of the group run. It compares
// start time or session, so that another process with the same id does not count.
func (j *job) alive() bool {
	if j.info.PID <= 1 {
		return false
	}
	st, err := procstat.Read(j.info.PID)
	switch {
	case errors.Is(err, fs.ErrNotExist) && j.info.SID != 0: // a group's id is not reused while it has members
		return sessionOf(j.info.PID) == j.info.SID
	case errors.Is(err, fs.ErrNotExist): // without /proc neither is known
		return j.info.Born == 0 && syscall.Kill(-j.info.PID, 0) == nil
	case err != nil || st.Start != j.info.Born:
		return false
	}
	return st.State != 'Z' || len(procs.Group(j.info.PID)) > 0
}

// sessionOf returns the session of a process group, 0 if none of its processes runs.
func sessionOf(pgid int) int {
	for _, pid := range procs.Group(pgid) {
		if sid, err := unix.Getsid(pid); err == nil {
			return sid
		}
	}
	return 0
}

func (m *Manager) folder(id string) string { return filepath.Join(m.dir, id) }

func (m *Manager) output(id string) wire.OSString {
	return wire.OSString(filepath.Join(m.folder(id), shell.JobOutput))
}

// Draft is a job that is about to be started: a shell writes its files into Folder. Started or Discard must follow.
type Draft struct {
	Folder string
	m      *Manager
	info   Info
}

// New creates a Draft of a job, of which the caller knows the session, the agent, the command and how it runs. The error is a *LimitError if
// most jobs run already.
func (m *Manager) New(j wire.Job, most int) (*Draft, error) {
	m.sweep()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.runningLocked()+m.made >= most {
		return nil, &LimitError{most}
	}
	m.last++
	j.JobID, j.StartedAtMS, j.State = "j"+strconv.Itoa(m.last), time.Now().UnixMilli(), Running
	j.OutputPath = m.output(j.JobID)
	d := &Draft{Folder: m.folder(j.JobID), m: m, info: Info{Job: j}}
	if err := os.Mkdir(d.Folder, 0o700); err != nil {
		return nil, fmt.Errorf("make the job's folder: %w", err)
	}
	if err := m.write(d.info); err != nil {
		os.RemoveAll(d.Folder)
		return nil, err
	}
	m.made++
	return d, nil
}

// Discard removes a job that was not started.
func (d *Draft) Discard() {
	d.m.mu.Lock()
	d.m.made--
	d.m.mu.Unlock()
	if err := os.RemoveAll(d.Folder); err != nil {
		d.m.log.Warn("cannot remove the folder of a job that was not started", "err", err)
	}
}

// Started records that the shell has started the job. It returns false, and discards the job, if it has not.
func (d *Draft) Started() (Info, bool) {
	d.info.PID, d.info.Born = shell.ReadJobPID(d.Folder)
	if d.info.PID == 0 {
		d.Discard()
		return Info{}, false
	}
	return d.add(nil), true
}

// Continues records that a command of the user's shell goes on as a job in that process group, and what it printed before.
func (d *Draft) Continues(pgid int, output []byte) (Info, error) {
	if err := os.WriteFile(string(d.info.OutputPath), output, 0o600); err != nil {
		d.Discard()
		return Info{}, fmt.Errorf("write the job's output: %w", err)
	}
	d.info.Terminal = true
	d.info.lead(pgid)
	return d.add(nil), nil
}

// Held is a command that began in the foreground of a private shell and continues as a job. Its terminal belongs to the
// daemon and is hung up with it; what ignores that is found again by the process group that ran last.
type Held struct {
	Ended  <-chan string // receives once it has ended and its exit status was written to shell.JobStatus: notes about its end, for people
	Cancel func()        // starts to end it, which takes at most 5 s
	Group  func() int    // the process group that runs; 0 = none
}

// Adopt records a job that runs already and appends its output to shell.JobOutput.
func (d *Draft) Adopt(h Held) Info {
	d.info.lead(h.Group())
	return d.add(&h)
}

// lead records the process group that the job runs in, and reports whether it is another one than before.
func (i *Info) lead(pgid int) bool {
	if pgid <= 1 || pgid == i.PID {
		return false
	}
	i.PID, i.Born, i.SID = pgid, 0, sessionOf(pgid)
	if st, err := procstat.Read(pgid); err == nil { // an error means that there is no /proc
		i.Born = st.Start
	}
	return true
}

// regroup updates the process group of a Held command, whose parts have one each.
func (m *Manager) regroup(j *job) {
	if j.held == nil {
		return
	}
	pgid := j.held.Group()
	m.mu.Lock()
	defer m.mu.Unlock()
	if j.info.State != Ended && j.info.lead(pgid) {
		m.saveLocked(j)
	}
}

func (d *Draft) add(h *Held) Info {
	d.info.SID = sessionOf(d.info.PID)
	m := d.m
	j := &job{info: d.info, ended: make(chan struct{}), held: h}
	m.mu.Lock()
	m.made--
	m.jobs[d.info.JobID] = j
	m.saveLocked(j)
	m.mu.Unlock()
	m.follow(j)
	return d.info
}

// saveLocked writes the job's description to its file. After an error, which is logged, the file has an older one. The
// caller holds mu, so that writes are in order.
func (m *Manager) saveLocked(j *job) {
	if err := m.write(j.info); err != nil {
		m.log.Warn("a job's record is not up to date", "job", j.info.JobID, "err", err)
	}
}

// write replaces the job's file in one step, so that a daemon that starts after a crash finds the old or the new one.
func (m *Manager) write(i Info) error {
	text, err := json.Marshal(i)
	if err != nil {
		return err
	}
	path := filepath.Join(m.folder(i.JobID), "job.json")
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return fmt.Errorf("write down the job: %w", err)
	}
	return os.Rename(path+".new", path)
}

// sweep removes the folders of jobs that ended long ago, and of the oldest ended jobs if there are too many.
func (m *Manager) sweep() {
	m.mu.Lock()
	var over []*job
	for _, j := range m.jobs {
		if j.info.State == Ended {
			over = append(over, j)
		}
	}
	slices.SortFunc(over, func(a, b *job) int { return cmp.Compare(b.info.EndedAtMS, a.info.EndedAtMS) })
	for len(over) > 0 && (len(over) > keptEnded || time.Since(time.UnixMilli(over[len(over)-1].info.EndedAtMS)) > keptAge) {
		id := over[len(over)-1].info.JobID
		over = over[:len(over)-1]
		delete(m.jobs, id)
		if err := os.RemoveAll(m.folder(id)); err != nil {
			m.log.Warn("an old job", "job", id, "err", err)
		}
	}
	m.mu.Unlock()
}

// Close stops watching the jobs, which continue to run.
func (m *Manager) Close() {
	m.cancel()
	m.work.Wait()
}

// Running returns how many jobs run.
func (m *Manager) Running() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.runningLocked()
}

func (m *Manager) runningLocked() (n int) {
	for _, j := range m.jobs {
		if j.info.State != Ended {
			n++
		}
	}
	return n
}

// List returns the jobs of a session ("" = all), oldest first.
func (m *Manager) List(session string) (list []Info) {
	m.mu.Lock()
	for _, j := range m.jobs {
		if session == "" || string(j.info.SessionID) == session {
			list = append(list, j.info)
		}
	}
	m.mu.Unlock()
	slices.SortFunc(list, func(a, b Info) int {
		return cmp.Or(cmp.Compare(len(a.JobID), len(b.JobID)), cmp.Compare(a.JobID, b.JobID))
	})
	for i := range list {
		list[i].refresh()
	}
	return list
}

// refresh updates the fields that change while a job runs.
func (i *Info) refresh() {
	if info, err := os.Stat(string(i.OutputPath)); err == nil {
		i.Bytes = i.Dropped + info.Size()
	}
	if i.State != Running {
		return
	}
	for _, pid := range procs.Group(i.PID) {
		if st, err := procstat.Read(pid); err == nil && st.State == 'T' {
			i.State = Stopped
		}
	}
}

func (m *Manager) find(session, id string) (*job, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	j := m.jobs[id]
	if j == nil || session != "" && string(j.info.SessionID) != session {
		return nil, &NotFoundError{id}
	}
	return j, nil
}

// Get returns a job of a session ("" = any). The error is a *NotFoundError.
func (m *Manager) Get(session, id string) (Info, error) {
	j, err := m.find(session, id)
	if err != nil {
		return Info{}, err
	}
	m.mu.Lock()
	i := j.info
	m.mu.Unlock()
	i.refresh()
	return i, nil
}

// ClaimReport records that a job's agent gets the report that was due. It returns true to one caller for each report.
func (m *Manager) ClaimReport(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	j := m.jobs[id]
	if j == nil || j.info.Due == "" { // it was removed, or another caller has it
		return false
	}
	j.info.Due = ""
	m.saveLocked(j)
	return true
}

// pattern returns the expression that the job's output is searched for; nil for none.
func (i *Info) pattern() *regexp.Regexp {
	if i.Wake == "" || i.Wake == WakeEnd || i.Matched {
		return nil
	}
	re, _ := regexp.Compile(i.Wake) // it was validated when the job was made
	return re
}
