package tool

import (
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
)

// umask is the process's file mode mask. Linux tells it in /proc; asking the kernel would mean setting it, for every
// goroutine. Elsewhere the common one is assumed.
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
