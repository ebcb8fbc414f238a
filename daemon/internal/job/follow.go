package job

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sublet/lease/shell"
	"sublet/lease/shell/procs"
)

// follow watches a job until its end, in a goroutine that Close waits for.
func (m *Manager) follow(j *job) {
	m.work.Go(func() {
		ctx, cancel := context.WithCancel(m.ctx)
		defer cancel()
		gone := make(chan error, 1)
		m.work.Go(func() { gone <- m.awaitExit(ctx, j) }) // ends with the process, or with ctx
		search := &search{re: j.info.pattern(), path: string(j.info.OutputPath)}
		tick := time.NewTicker(pollEvery)
		defer tick.Stop()
		for led := true; ; {
			select {
			case err := <-gone:
				if ctx.Err() != nil {
					return
				}
				if err != nil {
					m.log.Warn("a job's process cannot be watched", "job", j.info.JobID, "err", err)
				}
				led = false // other processes of the group may run for hours
			case <-tick.C:
				m.regroup(j)
			case <-ctx.Done():
				return
			}
			ended := !led && (j.held != nil || len(procs.Group(j.info.PID)) == 0) // checked before the last search, so that all output was written
			if search.re != nil {
				if _, found := search.next(m.dropped(j)); found { // the report does not contain the line, which is untrusted text
					search.re = nil
					m.due(j, "printed a line that matches "+strconv.Quote(j.info.Wake), true)
				}
			}
			m.trim(j) // after it was searched
			if ended {
				m.finish(j)
				return
			}
		}
	})
}

// awaitExit waits for the end of the leader of the job's process group, or of a Held command, whose notes it adds to the job's.
func (m *Manager) awaitExit(ctx context.Context, j *job) error {
	if j.held == nil {
		return procs.AwaitExit(ctx, j.info.PID)
	}
	select {
	case notes := <-j.held.Ended:
		m.mu.Lock()
		j.info.Note = strings.Trim(j.info.Note+"; "+notes, "; ")
		m.mu.Unlock()
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (m *Manager) dropped(j *job) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return j.info.Dropped
}

// finish records that a job has ended.
func (m *Manager) finish(j *job) {
	if err := shell.ForgetJob(m.folder(j.info.JobID)); err != nil {
		m.log.Warn("a finished job cannot be forgotten", "job", j.info.JobID, "err", err)
	}
	m.mu.Lock()
	j.info.State, j.info.EndedAtMS = Ended, time.Now().UnixMilli()
	status := filepath.Join(m.folder(j.info.JobID), shell.JobStatus)
	if b, err := os.ReadFile(status); err == nil {
		if n, err := strconv.Atoi(string(bytes.TrimSpace(b))); err == nil {
			j.info.ExitCode = &n
		}
		if at, err := os.Stat(status); err == nil {
			j.info.EndedAtMS = at.ModTime().UnixMilli()
		}
	}
	m.saveLocked(j)
	i := j.info
	close(j.ended)
	m.mu.Unlock()
	m.log.Info("job ended", "job", i.JobID, "end", i.End())
	if i.Wake != "" && !i.Matched {
		m.due(j, i.End(), false)
		return
	}
	i.Due = "" // in this call, so that it wakes nobody: a match was reported when it was found
	m.changed(i)
}

// End returns how the job ended, for people; "" while it runs.
func (i Info) End() string {
	if i.State != Ended {
		return ""
	}
	end := "ended without an exit status: it was killed"
	switch {
	case i.ExitCode == nil && i.Terminal:
		end = "ended; its exit status is not known"
	case i.ExitCode != nil:
		end = fmt.Sprintf("ended with exit code %d", *i.ExitCode)
	}
	if i.Note != "" && i.Note != foundAgain {
		end += "; " + i.Note
	}
	return end
}

// due records a report for the job's agent.
func (m *Manager) due(j *job, what string, matched bool) {
	m.mu.Lock()
	j.info.Due, j.info.Matched = what, j.info.Matched || matched
	m.saveLocked(j)
	i := j.info
	m.mu.Unlock()
	i.refresh()
	m.changed(i)
}

// trim removes the older half of an output longer than OutputMost. The job appends to the file and so continues after what
// is kept; output that it writes just before the file is emptied may be lost.
func (m *Manager) trim(j *job) {
	f, err := os.OpenFile(string(j.info.OutputPath), os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return // the file was removed
	}
	defer f.Close()
	m.mu.Lock() // Read computes offsets from Dropped and the file
	defer m.mu.Unlock()
	info, err := f.Stat()
	if err != nil || info.Size() <= OutputMost {
		return
	}
	kept, from := make([]byte, OutputMost), info.Size()-OutputMost/2
	n, err := f.ReadAt(kept, from) // also what is written meanwhile
	if err == nil || errors.Is(err, io.EOF) {
		if err = f.Truncate(0); err == nil {
			_, err = f.Write(kept[:n])
		}
	}
	if err != nil {
		m.log.Warn("a job's output cannot be cut", "job", j.info.JobID, "err", err)
		return
	}
	j.info.Dropped += from
	m.saveLocked(j)
}

// search finds a line in an output that grows.
type search struct {
	re   *regexp.Regexp
	path string
	at   int64  // how much was read, from the job's first byte
	line []byte // an incomplete line
}

// next reads new output and returns the first matching line; dropped is how many bytes were removed from the file's
// beginning. It also tests an incomplete last line, since that may be a prompt.
func (s *search) next(dropped int64) (line string, found bool) {
	f, err := os.Open(s.path)
	if err != nil {
		return "", false
	}
	defer f.Close()
	s.at = max(s.at, dropped)
	buf := make([]byte, 32<<10)
	for {
		n, err := f.ReadAt(buf, s.at-dropped)
		s.at += int64(n)
		for chunk := buf[:n]; len(chunk) > 0; {
			end := bytes.IndexByte(chunk, '\n')
			complete := end >= 0
			if !complete {
				end = len(chunk)
			}
			s.line = append(s.line, chunk[:min(end, max(0, lineMost-len(s.line)))]...)
			if text := strings.TrimRight(string(s.line), "\r"); s.re.MatchString(text) {
				return strings.ToValidUTF8(text, "\uFFFD"), true
			}
			if !complete {
				break
			}
			s.line, chunk = s.line[:0], chunk[end+1:]
		}
		if err != nil || n == 0 {
			return "", false
		}
	}
}

// Await waits until a line of the output that the job's agents have not read matches until, and returns that line, or until
// the job has ended, and returns "". A nil until waits for the end. Errors are *NotFoundError and context.Cause(ctx).
func (m *Manager) Await(ctx context.Context, session, id string, until *regexp.Regexp) (line string, err error) {
	j, err := m.find(session, id)
	if err != nil {
		return "", err
	}
	m.mu.Lock()
	s := &search{re: until, path: string(j.info.OutputPath), at: j.seen}
	m.mu.Unlock()
	tick := time.NewTicker(awaitEvery)
	defer tick.Stop()
	for over := false; ; {
		if until != nil {
			if line, found := s.next(m.dropped(j)); found {
				return line, nil
			}
		}
		if over {
			return "", nil
		}
		select {
		case <-j.ended:
			over = true
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// Read returns at most most bytes of a job's output from offset at, counted from its first byte; a negative at means the
// newest. from is the offset of data: greater than at where older output was removed.
func (m *Manager) Read(session, id string, at int64, most int) (data []byte, from int64, err error) {
	j, err := m.find(session, id)
	if err != nil {
		return nil, 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	o, err := j.open()
	if err != nil {
		return nil, 0, err
	}
	defer o.Close()
	if at < 0 {
		at = o.end - int64(most)
	}
	return o.read(at, most)
}

// output is the opened output of a job. The Manager's mu must be held while it is read, since trim moves its content.
type output struct {
	*os.File
	first, end int64 // offsets of the file's beginning and end, counted from the job's first byte
}

func (j *job) open() (o output, err error) {
	if o.File, err = os.Open(string(j.info.OutputPath)); err != nil {
		return o, fmt.Errorf("read the job's output: %w", err)
	}
	info, err := o.Stat()
	if err != nil {
		o.Close()
		return o, fmt.Errorf("read the job's output: %w", err)
	}
	o.first, o.end = j.info.Dropped, j.info.Dropped+info.Size()
	return o, nil
}

// read returns at most most bytes from offset at, or from first if that is greater.
func (o output) read(at int64, most int) (data []byte, from int64, err error) {
	at = max(at, o.first)
	data = make([]byte, most)
	n, err := o.ReadAt(data, at-o.first)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, fmt.Errorf("read the job's output: %w", err)
	}
	return data[:n], at, nil
}

// ReadNew returns the output that the job's agents have not read yet, and marks it as read: at most most bytes, half from each
// end; left is how many were left out between head and tail.
func (m *Manager) ReadNew(session, id string, most int) (head, tail []byte, left int64, err error) {
	j, err := m.find(session, id)
	if err != nil {
		return nil, nil, 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	o, err := j.open()
	if err != nil {
		return nil, nil, 0, err
	}
	defer o.Close()
	seen := j.seen
	fresh := max(0, o.end-seen) // negative if somebody truncated the file
	j.seen = seen + fresh
	if fresh <= int64(most) {
		head, _, err = o.read(seen, int(fresh))
	} else if head, _, err = o.read(seen, most/2); err == nil {
		tail, _, err = o.read(o.end-int64(most/2), most/2)
	}
	return head, tail, fresh - int64(len(head)+len(tail)), err
}

// Kill ends a job with all of its process group: SIGTERM, after 2 s SIGKILL. It returns when no process of it runs, or an
// *AliveError after 5 s. by is who asked for it, as shown to the user.
func (m *Manager) Kill(session, id, by string) (Info, error) {
	j, err := m.find(session, id)
	if err != nil {
		return Info{}, err
	}
	m.mu.Lock()
	over, pgid := j.info.State == Ended, j.info.PID
	if !over {
		j.info.Note = "ended by " + by
	}
	m.mu.Unlock()
	if over {
		return m.Get(session, id)
	}
	send := func(sig syscall.Signal) {
		if j.held != nil { // its private shell ends it, and knows its present process group
			j.held.Cancel()
			return
		}
		procs.SignalGroup(pgid, sig)
		procs.SignalGroup(pgid, syscall.SIGCONT) // a stopped process does not handle SIGTERM
	}
	send(syscall.SIGTERM)
	hard, bound := time.NewTimer(killAfter), time.NewTimer(endBound)
	defer hard.Stop()
	defer bound.Stop()
	for {
		select {
		case <-j.ended:
			return m.Get(session, id)
		case <-hard.C:
			send(syscall.SIGKILL)
		case <-bound.C:
			return Info{}, &AliveError{id, procs.Group(pgid)}
		case <-m.ctx.Done():
			return Info{}, context.Cause(m.ctx)
		}
	}
}
