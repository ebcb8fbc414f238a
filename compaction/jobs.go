package compaction

import (
	"slices"
	"strings"
)

var (
	// jobStarted matches the line in the result of a command that goes on as a job.
	jobStarted = lazy(`(?m)^\[job (j\d+) was started in |\[it goes on as the job (j\d+):`)
	// jobListed matches a line of the tool jobs, with the job's id, state and command.
	jobListed = lazy(`(?m)^\[?(j\d+): (running|stopped|ended\b[^\n]*?)(?:, after | since |: it wants )[^\n]*?; \d+ bytes of output; in [^:\n]*: ([^\n]*?)\]?$`)
	// jobReported matches the prompt about a job that has ended.
	jobReported = lazy(`(?s)\bjob (j\d+) \((.*)\) (ended\b.*?)\. Look at it with the jobs tool`)
	// jobRunning matches a job in the list of those that run.
	jobRunning = lazy("(?:^|; )(j\\d+) `")
)

// job sets the state of a job.
func (l *Ledger) job(id, command, state string) {
	l.Jobs = append(slices.DeleteFunc(slices.Clone(l.Jobs), func(j string) bool { return strings.HasPrefix(j, id+" ") }),
		id+" `"+line(command, maxJob)+"` "+state)
}

// jobsOf sets the states of the jobs that a result of the tool jobs, or a prompt about the end of one, reports.
func (l *Ledger) jobsOf(text string) {
	for _, m := range jobListed().FindAllStringSubmatch(text, -1) {
		l.job(m[1], m[3], m[2])
	}
	if m := jobReported().FindStringSubmatch(text); m != nil {
		l.job(m[1], m[2], m[3])
	}
}

// situation sets the branch, and ends the jobs that are not in the list of running ones.
func (l *Ledger) situation(lines []string) {
	for _, s := range lines {
		if git, ok := strings.CutPrefix(s, "Git: "); ok {
			l.Branch, _, _ = strings.Cut(strings.TrimPrefix(git, "branch "), ", ")
		}
		list, ok := strings.CutPrefix(s, "Jobs running: ")
		if !ok {
			continue
		}
		running := map[string]bool{}
		for _, m := range jobRunning().FindAllStringSubmatch(list, -1) {
			running[m[1]] = true
		}
		for i, j := range l.Jobs {
			if id, _, _ := strings.Cut(j, " "); strings.HasSuffix(j, " running") && !running[id] {
				l.Jobs[i] = strings.TrimSuffix(j, "running") + "ended"
			}
		}
	}
}
