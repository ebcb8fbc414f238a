package tool

import (
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
)

// umask is the process's file mode creation mask. It is read from /proc on Linux, since the system call changes it for all
// goroutines. On other systems 022 is assumed.
var umask = sync.OnceValue(func() fs.FileMode {
	status, err := os.ReadFile("/proc/self/status")
	if err == nil {
		for line := range strings.Lines(string(status)) {
			if v, ok := strings.CutPrefix(line, "Umask:"); ok {
				if n, err := strconv.ParseUint(strings.TrimSpace(v), 8, 32); err == nil {
					return fs.FileMode(n) & fs.ModePerm
				}
			}
		}
	}
	return 0o022
})
