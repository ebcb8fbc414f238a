//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package shell

import (
	"bytes"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type procStat struct {
	PID  int
	age  time.Duration
	Name string
}

// eachProcess asks ps: there is no /proc. It is used in a cancel, after it, and at the end of a private shell only.
func eachProcess(of func(pid int) bool, f func(procStat)) {
	out, err := exec.Command("ps", "-axo", "pid=,stat=,etime=,command=").Output()
	if err != nil {
		return
	}
	for line := range strings.Lines(string(out)) {
		w := strings.Fields(line)
		if len(w) < 4 || strings.HasPrefix(w[1], "Z") {
			continue
		}
		st := procStat{Name: strings.Join(w[3:], " "), age: etime(w[2])}
		st.PID, _ = strconv.Atoi(w[0])
		if of(st.PID) {
			f(st)
		}
	}
}

// etime reads [[days-]hours:]minutes:seconds.
func etime(s string) (d time.Duration) {
	days, rest, ok := strings.Cut(s, "-")
	if !ok {
		days, rest = "0", s
	}
	n, _ := strconv.Atoi(days)
	d = time.Duration(n) * 24 * time.Hour
	unit := time.Second
	parts := strings.Split(rest, ":")
	for i := len(parts) - 1; i >= 0; i-- {
		n, _ := strconv.Atoi(parts[i])
		d += time.Duration(n) * unit
		unit *= 60
	}
	return d
}

func present() moment { return moment(time.Now().UnixMilli() * ticks / 1000) }

// begunSince are the processes in the shell's session that began after from.
func begunSince(shell int, from moment) (list []procStat) {
	limit := time.Duration(present()-from)*time.Second/ticks + time.Second
	eachProcess(inSession(shell), func(st procStat) {
		if st.PID != shell && st.age <= limit {
			list = append(list, st)
		}
	})
	return list
}

// startedSince tells what has started in the shell's session since the call, to two seconds.
func startedSince(shell int) func() []int {
	from := present() + 2*ticks
	return func() (list []int) {
		for _, p := range begunSince(shell, from) {
			list = append(list, p.PID)
		}
		return list
	}
}

// family is not told here: it would take a ps before each signal.
func family(shell, pgid int, list map[int]int64) {}

func away(shell int, list map[int]int64) []Process { return nil }

// isFork is not asked: without diesOf nobody is pressed again.
func isFork(pid int) bool { return false }

// parentOf is not asked, either.
func parentOf(pid int) int { return 0 }

func commandLine(st procStat) string { return st.Name }

// diesOf cannot be told here: SIGTERM follows.
func diesOf(pid int, sig syscall.Signal) bool { return false }

// ignores cannot be told here.
func ignores(pid int, sig syscall.Signal) bool { return false }

// waitingForks and beside are not told here: who is whose child, ps would tell for each look.
func waitingForks(shell int, pgids []int, from moment) []int { return nil }

func lastDiedOf(parent int, sig syscall.Signal) bool { return false }

func beside(shell int, from moment) []int { return nil }

// workingDir is not known here.
func workingDir(pid int) string { return "" }

// imageOf is not asked here.
func imageOf(pid int) string { return "" }

// ownerOf names the user a process belongs to.
func ownerOf(pid int) string {
	name, err := exec.Command("ps", "-o", "user=", "-p", strconv.Itoa(pid)).Output()
	if err != nil || len(bytes.TrimSpace(name)) == 0 {
		return "another user"
	}
	return string(bytes.TrimSpace(name))
}

// libraries are the files whose code a process runs: not told here.
func libraries(int) []string { return nil }

// descriptors are the files that a process has open and hands on: not told here.
func descriptors(int) map[string]string { return nil }

// holder holds nothing: no subshell is found here, either.
type holder struct{}

func newHolder() *holder                  { return &holder{} }
func (*holder) hold(...int) []int         { return nil }
func (*holder) letGo(int, syscall.Signal) {}
func (*holder) end()                      {}

// cpuTime cannot be told without a ps.
func cpuTime(int) time.Duration { return 0 }
