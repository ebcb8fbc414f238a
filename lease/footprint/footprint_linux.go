package footprint

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// releaseText drops the pages of the program's own code and constants that this process has mapped. Most were read once,
// by package initialisation; what is needed again comes back from the page cache, where the file stays.
func releaseText() error {
	list, err := programMappings()
	for _, m := range list {
		if err == nil {
			err = m.advise(unix.MADV_DONTNEED)
		}
	}
	return err
}

// mapping is a range of addresses, not of Go's heap.
type mapping struct{ from, to uintptr }

func (m mapping) advise(what uintptr) error {
	if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, what); errno != 0 {
		return fmt.Errorf("madvise: %w", errno)
	}
	return nil
}

// programMappings are the mappings of the program's file that hold nothing but the file: what was relocated or written
// cannot be read from there again.
func programMappings() ([]mapping, error) {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list []mapping
	var at *mapping // the one whose lines are being read; nil: none of ours
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) >= 6 && !strings.HasSuffix(fields[0], ":"): // 00400000-01681000 r-xp 00000000 08:01 123 /path
			at = nil
			if strings.Join(fields[5:], " ") == exe && (fields[1] == "r-xp" || fields[1] == "r--p") {
				low, high, _ := strings.Cut(fields[0], "-")
				from, err1 := strconv.ParseUint(low, 16, 64)
				to, err2 := strconv.ParseUint(high, 16, 64)
				if err1 != nil || err2 != nil {
					return nil, fmt.Errorf("/proc/self/smaps: %q is not a range of addresses", fields[0])
				}
				at = &mapping{uintptr(from), uintptr(to)}
			}
		case at != nil && len(fields) >= 2 && fields[0] == "Anonymous:" && fields[1] == "0":
			list = append(list, *at)
		}
	}
	return list, lines.Err()
}
