package shell

import (
	"bytes"
	"maps"
	"os"
	osuser "os/user"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sublet/lease/procstat"
)

type procStat = procstat.Stat

// eachProcess calls f for every process that of selects, zombies left out.
func eachProcess(of func(pid int) bool, f func(procStat)) {
	dir, err := os.Open("/proc")
	if err != nil {
		return
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil && of(pid) {
			if st, err := procstat.Read(pid); err == nil && st.State != 'Z' {
				f(st)
			}
		}
	}
}

// present is by the clock that the starts of processes are told by (proc_pid_stat(5)).
func present() moment {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) // fails for an unknown clock only
	return moment(t.Nano() / (int64(time.Second) / ticks))
}

// begunSince are the processes in the shell's session that began at from or after it, but for the children of older ones and
// what has joined their groups: a job of the user's begins programs, too, and so does a logger of theirs (`exec 3> >(…)`).
func begunSince(shell int, from moment) (list []procStat) {
	all, older := map[int]procStat{}, map[int]bool{}
	eachProcess(inSession(shell), func(st procStat) {
		all[st.PID] = st
		if group, err := unix.Getpgid(st.PID); err == nil && group != shell && moment(st.Start) < from {
			older[group] = true
		}
	})
	for _, pid := range slices.Sorted(maps.Keys(all)) {
		if group, err := unix.Getpgid(pid); err != nil || pid == shell || older[group] {
			continue
		}
		theirs := false
		for st, ok := all[pid]; ok && st.PID != shell && !theirs; st, ok = all[st.Parent] {
			theirs = moment(st.Start) < from
		}
		if !theirs {
			list = append(list, all[pid])
		}
	}
	return list
}

// waitingForks are the forks of the shell in these groups, of those that began since from, that have a child beside their
// background jobs: those, without job control, begin with SIGINT and SIGQUIT ignored.
func waitingForks(shell int, pgids []int, from moment) (forks []int) {
	waits := map[int]bool{}
	eachProcess(inGroups(pgids), func(st procStat) {
		if st.Parent != shell && moment(st.Start) >= from && !waits[st.Parent] {
			waits[st.Parent] = !ignores(st.PID, syscall.SIGINT) || !ignores(st.PID, syscall.SIGQUIT)
		}
	})
	if len(waits) == 0 {
		return nil
	}
	inside := inGroups(pgids)
	for _, st := range begunSince(shell, from) {
		if waits[st.PID] && inside(st.PID) && isFork(st.PID) {
			forks = append(forks, st.PID)
		}
	}
	return forks
}

// lastDiedOf tells whether the last child of a process that has ended, and that it does not know of yet, died of sig.
func lastDiedOf(parent int, sig syscall.Signal) bool {
	const exitCode = 52 - 2 // the last field but the name's two: proc_pid_stat(5)
	last, died := 0, false
	for _, pid := range children(parent) {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		if err != nil || pid < last || len(f) < exitCode || f[0] != "Z" {
			continue
		}
		status, err := strconv.Atoi(f[exitCode-1])
		last, died = pid, err == nil && syscall.WaitStatus(status).Signal() == sig
	}
	return died
}

func inGroups(pgids []int) func(pid int) bool {
	return func(pid int) bool {
		group, err := unix.Getpgid(pid)
		return err == nil && slices.Contains(pgids, group)
	}
}

// beside are the processes in the shell's own group, younger than from, but for background jobs.
func beside(shell int, from moment) (pids []int) {
	inside := inGroup(shell)
	for _, st := range begunSince(shell, from) {
		if inside(st.PID) && !(ignores(st.PID, syscall.SIGINT) && ignores(st.PID, syscall.SIGQUIT)) {
			pids = append(pids, st.PID)
		}
	}
	return pids
}

// family adds to list what the programs of a group, started by the shell, have started, with when it was started, as far as
// those in between still live. What the system does not tell is left out.
func family(shell, pgid int, list map[int]int64) {
	var follow func(pid int)
	follow = func(pid int) {
		for _, child := range children(pid) {
			if st, err := procstat.Read(child); err == nil {
				list[child] = st.Start
			}
			follow(child)
		}
	}
	for _, pid := range children(shell) {
		if group, err := unix.Getpgid(pid); err == nil && group == pgid {
			follow(pid)
		}
	}
}

// children are those of a process, of all its threads (proc(5), /proc/PID/task/TID/children).
func children(pid int) (pids []int) {
	for _, tid := range threads(pid) {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(tid) + "/children")
		if err != nil {
			continue
		}
		for _, f := range strings.Fields(string(b)) {
			if child, err := strconv.Atoi(f); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// away describes those of list that still run and have left the shell's session (setsid).
func away(shell int, list map[int]int64) (ps []Process) {
	in := inSession(shell)
	for pid, start := range list {
		if st, err := procstat.Read(pid); err == nil && st.Start == start && st.State != 'Z' && !in(pid) {
			ps = append(ps, leftover(pid, commandLine(st)))
		}
	}
	return ps
}

// startedSince tells what the shell has started since the call, with all that descends from it.
func startedSince(shell int) func() []int {
	before := children(shell)
	return func() (list []int) {
		list = slices.DeleteFunc(children(shell), func(pid int) bool { return slices.Contains(before, pid) })
		for i := 0; i < len(list); i++ {
			list = append(list, children(list[i])...)
		}
		return list
	}
}

// parentOf is 0 where it cannot be told.
func parentOf(pid int) int {
	st, err := procstat.Read(pid)
	if err != nil {
		return 0
	}
	return st.Parent
}

// isFork tells whether a process is still a fork of the shell, not a program it started. A zombie is none.
func isFork(pid int) bool {
	st, err := procstat.Read(pid)
	return err == nil && st.State != 'Z' && forked(commandLine(st))
}

func commandLine(st procStat) string {
	if line := imageOf(st.PID); line != "" {
		return line
	}
	return st.Name
}

// diesOf tells whether a process takes sig as the system does: neither caught nor ignored nor blocked.
func diesOf(pid int, sig syscall.Signal) bool {
	is, ok := dispositions(pid)
	return ok && (is["SigBlk"]|is["SigIgn"]|is["SigCgt"])&(1<<(sig-1)) == 0
}

func ignores(pid int, sig syscall.Signal) bool {
	is, _ := dispositions(pid)
	return is["SigIgn"]&(1<<(sig-1)) != 0
}

// dispositions are the masks of a process's signals (proc(5), status).
func dispositions(pid int) (masks map[string]uint64, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return nil, false
	}
	masks = make(map[string]uint64)
	for line := range strings.Lines(string(b)) {
		if name, mask, _ := strings.Cut(line, ":"); len(name) == 6 && strings.HasPrefix(name, "Sig") {
			if masks[name], err = strconv.ParseUint(strings.TrimSpace(mask), 16, 64); err != nil {
				return nil, false
			}
		}
	}
	return masks, len(masks) > 0
}

// ownerOf names the user a process belongs to, by number where it has no name.
func ownerOf(pid int) string {
	fi, err := os.Stat("/proc/" + strconv.Itoa(pid))
	if err != nil {
		return "another user"
	}
	uid := strconv.FormatUint(uint64(fi.Sys().(*syscall.Stat_t).Uid), 10)
	if u, err := osuser.LookupId(uid); err == nil {
		return u.Username
	}
	return "uid " + uid
}

// imageOf is the command line of what a process runs; "" where it cannot be told.
func imageOf(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.ReplaceAll(string(b), "\x00", " "))
}

// workingDir is a process's working directory; "" where it cannot be told.
func workingDir(pid int) string {
	dir, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd")
	if err != nil || strings.HasSuffix(dir, " (deleted)") {
		return ""
	}
	return dir
}

// libraries are the files whose code a process runs, sorted, but those that the C library loads by itself, for users, hosts and
// character sets; nil where that cannot be told.
func libraries(pid int) []string {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/maps")
	if err != nil {
		return nil
	}
	var list []string
	for line := range strings.Lines(string(raw)) {
		i := strings.IndexByte(line, '/')
		if i < 0 || !strings.Contains(line[:i], "x") {
			continue
		}
		if file := strings.TrimSuffix(line[i:], "\n"); !strings.Contains(file, "/libnss_") && !strings.Contains(file, "/gconv/") {
			list = append(list, file)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// descriptors are the files that a process has open beyond its standard ones and hands on to what it starts: "descriptor 7" to
// what tells the file from others; bash has its own closed there (proc(5), fdinfo). nil where that cannot be told.
func descriptors(pid int) map[string]string {
	at := "/proc/" + strconv.Itoa(pid)
	dir, err := os.Open(at + "/fd")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	list := make(map[string]string)
	for _, name := range names {
		n, err := strconv.Atoi(name)
		if err != nil || n <= 2 {
			continue
		}
		info, err := os.ReadFile(at + "/fdinfo/" + name)
		if err != nil {
			continue // closed since
		}
		_, flags, _ := strings.Cut(string(info), "flags:")
		flags, _, _ = strings.Cut(flags, "\n")
		if f, err := strconv.ParseUint(strings.TrimSpace(flags), 8, 64); err != nil || f&unix.O_CLOEXEC != 0 {
			continue
		}
		var st unix.Stat_t
		if unix.Stat(at+"/fd/"+name, &st) == nil {
			list["descriptor "+name] = strconv.FormatUint(st.Dev, 10) + ":" + strconv.FormatUint(st.Ino, 10)
		}
	}
	return list
}

// cpuTime is the processor time that a process has used; 0 where it cannot be told.
func cpuTime(pid int) time.Duration {
	const sched = 2 // CPUCLOCK_SCHED: clock_getcpuclockid(3) makes the number of a process's clock so
	var used unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|sched), &used); err != nil {
		return 0
	}
	return time.Duration(used.Nano())
}
