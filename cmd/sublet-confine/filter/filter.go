//go:build linux

// Package filter has the system calls that a confined command may not make, and assembles from them the program that the launcher
// has the kernel run at each call. The launcher carries the assembled program, as the tables of all architectures that this
// needs would cost it a millisecond at each of its starts.
package filter

import (
	"reflect"
	"slices"
	"unsafe"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// refused are the system calls that no confined command may make: they reach other processes, the kernel or its mounts. What an
// architecture or the library does not have is passed over.
var refused = []string{
	"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "pidfd_getfd", "kcmp", "perf_event_open",
	"io_uring_setup", "io_uring_enter", "io_uring_register", "bpf", "userfaultfd", "fanotify_init", "open_by_handle_at", "lookup_dcookie",
	"mount", "umount2", "umount", "pivot_root", "chroot", "move_mount", "open_tree", "open_tree_attr", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr",
	"setns", "unshare", "keyctl", "add_key", "request_key",
	"init_module", "finit_module", "delete_module", "create_module", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff", "acct", "quotactl", "quotactl_fd",
	"settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "stime", "sethostname", "setdomainname", "iopl", "ioperm", "modify_ldt", "vhangup", "vm86", "vm86old",
	"migrate_pages", "move_pages", "nfsservctl", "syslog",
}

// newNamespaces are the flags of clone that make namespaces.
const newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// Assemble returns the program for an architecture, by Go's name of it.
func Assemble(goarch string) ([]unix.SockFilter, error) {
	info, err := arch.GetInfo(goarch)
	if err != nil {
		return nil, err
	}
	eperm := seccomp.ActionErrno | seccomp.Action(unix.EPERM)
	when := func(name string, conditions ...seccomp.Condition) seccomp.NameWithConditions {
		return seccomp.NameWithConditions{Name: name, Conditions: conditions}
	}
	arg := func(n uint32, op seccomp.Operation, value uint64) seccomp.Condition {
		return seccomp.Condition{Argument: n, Operation: op, Value: value}
	}
	missing := func(name string) bool { _, ok := info.SyscallNames[name]; return !ok }
	deny := seccomp.SyscallGroup{
		Action: eperm,
		Names:  slices.DeleteFunc(slices.Clone(refused), missing),
		NamesWithCondtions: []seccomp.NameWithConditions{
			// Only the two internet families: a unix socket reaches other programs, a netlink or packet socket the kernel.
			when("socket", arg(0, seccomp.NotEqual, unix.AF_INET), arg(0, seccomp.NotEqual, unix.AF_INET6)),
			// SOCK_DGRAM and SOCK_RAW, but not SOCK_STREAM and SOCK_SEQPACKET, have this bit: they send to any unix socket.
			when("socketpair", arg(0, seccomp.NotEqual, unix.AF_UNIX)),
			when("socketpair", arg(1, seccomp.BitsSet, unix.SOCK_DGRAM)),
			when("clone", arg(0, seccomp.BitsSet, newNamespaces)),
			// Only this process's own priority and limits. The other values of the first argument are a process group and a user,
			// who may be 0 for one's own; the launcher is in the command's process group.
			when("setpriority", arg(0, seccomp.NotEqual, unix.PRIO_PROCESS)),
			when("setpriority", arg(1, seccomp.NotEqual, 0)),
			when("prlimit64", arg(0, seccomp.NotEqual, 0), arg(2, seccomp.NotEqual, 0)),
			when("sched_setscheduler", arg(0, seccomp.NotEqual, 0)),
			when("sched_setparam", arg(0, seccomp.NotEqual, 0)),
			when("sched_setattr", arg(0, seccomp.NotEqual, 0)),
			when("sched_setaffinity", arg(0, seccomp.NotEqual, 0)),
			when("ioprio_set", arg(0, seccomp.NotEqual, 1)), // IOPRIO_WHO_PROCESS
			when("ioprio_set", arg(1, seccomp.NotEqual, 0)),
			// No setuid programs, with which other users could act as this one.
			when("chmod", arg(1, seccomp.BitsSet, unix.S_ISUID)),
			when("fchmod", arg(1, seccomp.BitsSet, unix.S_ISUID)),
			when("fchmodat", arg(2, seccomp.BitsSet, unix.S_ISUID)),
			when("fchmodat2", arg(2, seccomp.BitsSet, unix.S_ISUID)),
			when("creat", arg(1, seccomp.BitsSet, unix.S_ISUID)),
			when("mknod", arg(1, seccomp.BitsSet, unix.S_ISUID)),
			when("mknodat", arg(2, seccomp.BitsSet, unix.S_ISUID)),
			when("open", arg(1, seccomp.BitsSet, unix.O_CREAT), arg(2, seccomp.BitsSet, unix.S_ISUID)), // else the mode is undefined
			when("openat", arg(2, seccomp.BitsSet, unix.O_CREAT), arg(3, seccomp.BitsSet, unix.S_ISUID)),
			when("ioctl", arg(1, seccomp.Equal, unix.TIOCSTI)),
			when("ioctl", arg(1, seccomp.Equal, unix.TIOCLINUX)),
			when("ioctl", arg(1, seccomp.Equal, unix.TIOCCONS)),
			when("ioctl", arg(1, seccomp.Equal, unix.TIOCSETD)),
			when("ioctl", arg(1, seccomp.Equal, unix.TIOCEXCL)), // would outlast the command
			when("ioctl", arg(1, seccomp.Equal, unix.TCXONC)),   // would suspend the output of the user's shell
			// The filter compares 64 bits, the kernel takes 32: between them is no request that a program means.
			when("ioctl", arg(1, seccomp.GreaterThan, 1<<32-1), arg(1, seccomp.LessThan, 0xffffffff80000000)),
		},
	}
	deny.NamesWithCondtions = slices.DeleteFunc(deny.NamesWithCondtions, func(c seccomp.NameWithConditions) bool { return missing(c.Name) })
	policy := seccomp.Policy{DefaultAction: seccomp.ActionAllow, Syscalls: []seccomp.SyscallGroup{
		// Their flags and modes are behind a pointer, which no filter follows. C libraries then use clone and openat.
		{Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS), Names: []string{"clone3", "openat2"}},
		deny,
	}}
	// The library takes the architecture that it runs on, unless this field has another.
	field := reflect.ValueOf(&policy).Elem().FieldByName("arch")
	reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem().Set(reflect.ValueOf(info))
	program, err := policy.Assemble()
	if err != nil {
		return nil, err
	}
	// The library allows every call of another architecture, as a 32-bit call of a 64-bit program is.
	program = append([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 4, Size: 4}, // seccomp_data.arch
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(info.ID), SkipTrue: 1},
		bpf.RetConstant{Val: uint32(seccomp.ActionErrno) | uint32(unix.ENOSYS)},
	}, program...)
	raw, err := bpf.Assemble(program)
	if err != nil {
		return nil, err
	}
	list := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		list[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return list, nil
}
