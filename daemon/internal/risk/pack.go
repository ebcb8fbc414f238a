package risk

import "strings"

// doPack judges programs that pack a file in place, unless they are told to write to their output, to list or to test.
func (a *analysis) doPack(c *cmdCall) {
	for i := range c.opts {
		if o := c.opts[i].spec; o != nil && o.lower {
			a.note(Low, Read, c.span, "looks into packed files, or writes to its output")
			for i := range c.operands {
				a.role(c, roleRead, &c.operands[i])
			}
			for i := range c.opts {
				if o := &c.opts[i]; o.val != nil && (o.name == "-o" || o.name == "--output") {
					a.role(c, roleWrite, o.val)
				}
			}
			return
		}
	}
	a.usual(c)
	end := packEnds[c.name]
	for i := range c.operands {
		// Beside the file: x becomes x.gz, and x.gz becomes x.
		f := &c.operands[i]
		if p := a.pathOf(f, c.st); p != "" {
			if short := strings.TrimSuffix(p, p[strings.LastIndexByte(p, '.')+1:]); c.has("-d", "--decompress") || end == "" {
				a.target(Write, strings.TrimSuffix(short, "."), false)
			} else {
				a.target(Write, p+end, false)
			}
		}
	}
}

// packEnds are the endings that programs which pack a file in place give it; those that unpack have none.
var packEnds = map[string]string{
	"gzip": ".gz", "pigz": ".gz", "bzip2": ".bz2", "xz": ".xz", "lzma": ".lzma", "zstd": ".zst", "lz4": ".lz4", "compress": ".Z", "brotli": ".br",
}

// doSplit judges split and csplit, which write files that begin with a prefix.
func (a *analysis) doSplit(c *cmdCall) {
	a.base(c)
	a.optionRoles(c)
	prefix := field{s: "x", known: true, span: c.span}
	if c.name == "csplit" {
		prefix.s = "xx"
	}
	if o := c.opt("-f", "--prefix"); o != nil && o.val != nil {
		prefix = *o.val
	}
	for i := range c.operands {
		switch {
		case i == 0 && c.operands[i].s != "-":
			a.touch(Read, &c.operands[i], c.st, touchOptions{})
		case i == 1 && c.name == "split":
			prefix = c.operands[i]
		}
	}
	prefix.s, prefix.glob = prefix.s+"*", true
	a.touch(Write, &prefix, c.st, touchOptions{})
}

// doSSHKey judges ssh-keygen: showing a fingerprint or looking for a host only reads.
func (a *analysis) doSSHKey(c *cmdCall) {
	if c.has("-l", "-B", "-F") && !c.has("-R", "-p", "-y", "-e") {
		a.note(Low, Read, c.span, "shows the fingerprint of a key")
		for i := range c.opts {
			if o := &c.opts[i]; o.val != nil && o.name == "-f" && !strings.HasSuffix(o.val.s, ".pub") && !o.val.opaque() {
				a.note(Low, Read, o.span, "reads the public part of "+show(o.val.s))
			}
		}
		return
	}
	a.usual(c)
}

// doDebugger judges gdb and lldb: commands given to them can be the shell's.
func (a *analysis) doDebugger(c *cmdCall) {
	for i := range c.opts {
		o := &c.opts[i]
		if o.val == nil || o.name != "-ex" && o.name != "-iex" && o.name != "-eval-command" && o.name != "-o" {
			continue
		}
		text, ok := strings.CutPrefix(strings.TrimSpace(o.val.s), "!")
		for _, word := range []string{"shell ", "platform shell ", "make "} {
			if rest, found := strings.CutPrefix(o.val.s, word); found {
				text, ok = rest, true
			}
		}
		if ok {
			v := *o.val
			v.s = text
			a.shellText(c, &v, c.st)
		}
	}
	a.doCode(c)
}
