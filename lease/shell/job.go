package shell

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"sublet/lease/procstat"
	"sublet/lease/shell/dialect"
	"sublet/wire/visible"
)

// The files in the folder of a background job: its output, after its end its exit status in decimal, and its process id. A job
// that was killed leaves no status. The integration scripts use the names, too.
const (
	JobOutput = "output"
	JobStatus = "status"
	jobPID    = "pid"
	jobText   = "text" // of fish
)

// label returns what the shell's own list of jobs shows of a command. Zsh leaves out longer words.
func label(text string) string { return visible.Clip(visible.Line(strings.TrimSpace(text)), 50) }

// background returns the text that starts a command as a background job.
func (s *Shell) background(c Command) (text string, err error) {
	line := c.Text
	switch {
	case c.Confine != nil:
		if line, err = s.launcherLine(c); err != nil {
			return "", err
		}
	case s.d.JobInChild:
		line = s.inChild(c.Text)
	}
	f, err := os.OpenFile(filepath.Join(c.Job, JobOutput), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return "", fmt.Errorf("write the job's output: %w", err)
	}
	f.Close()
	return s.d.Background(dialect.Job{Text: line, Label: label(c.Text), Folder: c.Job, Shell: s.path}), nil
}

// jobStarted returns the process that the shell started for the job in folder, 0 if it started none, and adds its group to
// s.jobs. It adds the process's start time to the file, since a pid can be reused.
func (s *Shell) jobStarted(folder string) int {
	pid, _ := ReadJobPID(folder)
	if pid == 0 {
		return 0
	}
	if st, err := procstat.Read(pid); err == nil { // else there is no /proc, or the job has ended
		text := fmt.Appendf(nil, "%d %d", pid, st.Start)
		if err := os.WriteFile(filepath.Join(folder, jobPID), text, 0o600); err != nil {
			s.log.Warn("a background job will not be found again", "err", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs = append(s.jobs, pid)
	return pid
}

// ReadJobPID returns the leader of a job's process group and when it began, in clock ticks since boot. pid is 0 where no job
// was started in that folder, start is 0 where it is not known.
func ReadJobPID(folder string) (pid int, start int64) {
	b, err := os.ReadFile(filepath.Join(folder, jobPID))
	if err != nil {
		return 0, 0
	}
	first, second, _ := strings.Cut(string(b), " ")
	if pid, err = strconv.Atoi(first); err != nil || pid <= 1 {
		return 0, 0
	}
	start, _ = strconv.ParseInt(second, 10, 64)
	return pid, start
}

// ForgetJob removes the files that only the start of a job needed, since the command's text may hold a secret. The job must have
// ended.
func ForgetJob(folder string) (err error) {
	for _, name := range []string{heldText, heldReach, jobText} {
		err = errors.Join(err, os.RemoveAll(filepath.Join(folder, name)))
	}
	return err
}

// jobGroups returns the process groups of the background jobs that still run.
func (s *Shell) jobGroups() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs = slices.DeleteFunc(s.jobs, func(pgid int) bool { return errors.Is(syscall.Kill(-pgid, 0), syscall.ESRCH) })
	return slices.Clone(s.jobs)
}
