package citest

import "bytes"

var (
	frameBegin = []byte("\x1b[?2026h")
	frameEnd   = []byte("\x1b[?2026l")
)

// Frames holds back a synchronized update (DEC private mode 2026) until all of it was read, as terminals do: a read of a PTY may end
// in the middle of one, and a test must not see a screen that is half drawn.
type Frames struct{ held []byte }

// Whole returns what a terminal shows after it has read p too. The result is valid until the next call.
func (f *Frames) Whole(p []byte) []byte {
	f.held = append(f.held, p...)
	end := len(f.held)
	if begin := bytes.LastIndex(f.held, frameBegin); begin > bytes.LastIndex(f.held, frameEnd) {
		end = begin
	} else {
		for n := len(frameBegin) - 1; n > 0; n-- {
			if bytes.HasSuffix(f.held, frameBegin[:n]) { // one may begin here
				end -= n
				break
			}
		}
	}
	whole := f.held[:end:end]
	f.held = f.held[end:]
	return whole
}
