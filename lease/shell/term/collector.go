package term

import (
	"bytes"
	"sync"
)

// A Collector keeps the output of one command in bounded memory: rendered, its beginning and its end; raw, in a spool
// file where it is long. It is safe for concurrent use.
type Collector struct {
	mu     sync.Mutex
	screen *screen
	text   *headTail
	spool  spool
	path   []byte
}

// NewCollector returns a Collector for a terminal of cols columns. head and tail are bytes of rendered output, 0 = 32 KiB;
// folder is for spool files, "" = none. path is the name under which the shell sources the command's text: it is taken out
// of error messages.
func NewCollector(cols, head, tail int, folder, path string) *Collector {
	c := &Collector{text: newHeadTail(head, tail), spool: spool{folder: folder}, path: []byte(path + ": ")}
	c.screen = newScreen(cols, c.text.Write)
	return c
}

// Clean returns p without the name of the sourced file.
func (c *Collector) Clean(p []byte) []byte {
	if bytes.Contains(p, c.path) {
		return bytes.ReplaceAll(p, c.path, nil)
	}
	return p
}

// Add takes output in pieces of any size; p is not kept.
func (c *Collector) Add(p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spool.Write(p)
	c.screen.Write(p)
}

// Asks reports whether the text before the cursor, in its line, looks like a question.
func (c *Collector) Asks() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.screen.lineAsks()
}

// UsesAlternate reports whether the program uses the alternate screen now.
func (c *Collector) UsesAlternate() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.screen.alt
}

// Close ends the output. left is how many rendered bytes were left out of text; path names the spool file, "" = none.
func (c *Collector) Close() (text []byte, left int64, path string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.screen.Flush()
	text, left = c.text.result()
	path, err = c.spool.finish(left > 0)
	return text, left, path, err
}

// A Tail keeps the last Most bytes of what it is given.
type Tail struct {
	Most int
	buf  []byte // up to twice as many
}

// Add takes bytes; p is not kept.
func (t *Tail) Add(p []byte) {
	if len(p) > t.Most {
		p = p[len(p)-t.Most:]
	}
	if len(t.buf)+len(p) > 2*t.Most {
		t.buf = append(t.buf[:0], t.Bytes()...)
	}
	t.buf = append(t.buf, p...)
}

// Bytes returns what is kept.
func (t *Tail) Bytes() []byte { return t.buf[max(0, len(t.buf)-t.Most):] }
