package risk

import (
	"cmp"
	"slices"
	"strings"

	"sublet/daemon/internal/risk/bashread"
	"sublet/daemon/internal/risk/programs"
)

// helpOnly reports whether a known program is only asked for its help or version.
func helpOnly(c *call) bool {
	n := len(c.fields)
	last := &c.fields[n-1]
	switch {
	case n < 2 || !last.Known || programs.Builtin(c.name):
		return false
	case n == 2 && (last.S == "--help" || last.S == "--version"):
		return true
	case c.wraps() || c.spec.Args[0] == programs.Shell:
		return n == 2 && last.S == "-V" && c.spec.Handler == "remote"
	case last.S == "--help":
		return n <= c.verb+1
	}
	return n == 2 && (c.spec.Subs != nil || c.spec.Handler == "code") && slices.Contains([]string{"-V", "-v", "-VV", "-h", "-version", "help", "version"}, last.S)
}

// options splits argv into sub-command, options and operands by what the table knows of them.
func (a *analysis) options(c *call) {
	args := c.fields[1:]
	c.verb = 1
	for i := 0; i < len(args) && c.tail == 0; i++ {
		straight := i == len(c.subs) // no options and operands so far
		f := &args[i]
		switch {
		case f.S == "--" && f.Known:
			if at := i + 2 + max(0, c.spec.Skip-len(c.operands)); c.wraps() && at < len(c.fields) {
				c.tail = at
			}
			c.operands = append(c.operands, args[i+1:]...)
			i = len(args)
		case c.isOption(f.S) && (c.spec.Subs[f.S] == nil || c.has("-c")): // python -m is a sub-command, but not behind -c CODE
			i = c.option(args, i)
		case len(c.operands) == 0 && f.Known && c.spec.Subs[f.S] != nil:
			c.spec = c.spec.Subs[f.S]
			if c.subs = append(c.subs, f.S); straight {
				c.verb++
			}
		case c.wraps() && len(c.operands) >= c.spec.Skip:
			c.tail = i + 1
		default:
			if straight && c.spec.Subs != nil && f.Known && strings.Trim(f.S, "abcdefghijklmnopqrstuvwxyz-") == "" {
				c.verb++ // a sub-command without a line of its own
			}
			c.operands = append(c.operands, *f)
		}
	}
	c.relearn()
	if len(c.opts) > 0 && len(c.subs) > 0 && c.verb <= len(c.subs) {
		c.optionsLast()
	}
}

// relearn gives options before a sub-command the meaning that it knows for them: npm -g install x, but not git -C d switch x.
func (c *call) relearn() {
	for i := range c.opts {
		old := c.opts[i].spec
		if o := c.spec.Option(c.opts[i].name); o != nil && (old == nil || old.Role != programs.Folder) {
			c.opts[i].spec = o
		}
	}
}

// enter changes to the folders that options name: git -C d. All that is judged then is judged there.
func (c *call) enter() {
	for i := range c.opts {
		if o := &c.opts[i]; o.val != nil && o.spec != nil && o.spec.Role == programs.Folder {
			cwd := bashread.Path(o.val, c.st)
			c.st = c.st.Clone()
			c.st.Cwd, c.st.Alts = cwd, nil
		}
	}
}

// isOption reports whether a word is an option: -x, or +x and x=VALUE where the program's line has them.
func (c *call) isOption(s string) bool {
	name, _, joined := strings.Cut(s, "=")
	return len(s) > 1 && (s[0] == '-' || (joined || s[0] == '+') && c.spec.Opts[name] != nil)
}

// wraps reports whether the operands of a command are a command that it runs.
func (c *call) wraps() bool { return c.spec.Args[0] == programs.Run || c.spec.Args[0] == programs.Join }

// optionsLast sets plain to argv with the options, but not their values, moved to the end, so that a rule that forbids `git push`
// matches `git -C d push` too. verb becomes 0, because argv does not begin with the sub-command.
func (c *call) optionsLast() {
	c.plain = append([]string{c.fields[0].S}, c.subs...)
	for i := range c.operands {
		c.plain = append(c.plain, c.operands[i].S)
	}
	for i := range c.opts {
		c.plain = append(c.plain, c.opts[i].name)
	}
	c.verb = 0
}

// option reads the option at args[i] and returns the index of its last word.
func (c *call) option(args []field, i int) int {
	f, s := &args[i], args[i].S
	add := func(name string, o *programs.Option, val *field) {
		c.opts = append(c.opts, option{name: name, val: val, spec: o, span: f.Span, behind: len(c.operands)})
	}
	next := func(o *programs.Option) *field {
		if o == nil || o.Role == "" || i+1 >= len(args) {
			return nil
		}
		if i++; o.Role == programs.Run {
			c.tail = i + 1
		}
		return &args[i]
	}
	rest := func(o *programs.Option, val string) *field { // of the same word
		if o != nil && o.Role == programs.Run {
			c.tail = i + 2
		}
		return f.With(val)
	}
	name, val, joined := strings.Cut(s, "=")
	o := c.spec.Option(name)
	long := strings.HasPrefix(s, "--")
	if o == nil && long && c.spec.Long {
		o = c.spec.Option(name[1:]) // --out is -out
	}
	switch {
	case (long || c.spec.Long) && joined:
		add(name, o, rest(o, val))
		return i
	case long || c.spec.Long && (o != nil || len(s) == 2), o != nil && len(s) > 2 && !joined:
		add(name, o, next(o))
		return i
	}
	// A cluster, -rf, or a value in the same word, -ofile.
	for k := 1; k < len(s); k++ {
		name := s[:1] + s[k:k+1]
		o := c.spec.Option(name)
		if o != nil && o.Role != "" {
			if k+1 < len(s) {
				add(name, o, rest(o, strings.TrimPrefix(s[k+1:], "=")))
			} else {
				add(name, o, next(o))
			}
			return i
		}
		if add(name, o, nil); c.spec.Long {
			add(s, nil, nil)
			break
		}
	}
	return i
}

// level notes the level of the table's line, as options change it: c.lowered to Low, raises to a higher one.
func (a *analysis) level(c *call) {
	s := c.spec
	level, says := s.Level, s.Says
	if c.lowered() || s.Bare && len(c.operands)+len(c.opts) == 0 {
		level, says = Low, says+" (only shows it)"
	}
	a.note(level, s.Effects[0], c.span, says).undo = s.Undo
	if s.Runs {
		a.command().Runs = true
	}
	if level > Low {
		a.effects(c)
	} else if i := slices.IndexFunc(c.opts, func(o option) bool { return o.spec == nil }); i >= 0 && !s.Plain && !programs.Builtin(c.name) {
		a.note(Medium, Unknown, c.opts[i].span, "with "+show(c.opts[i].name)+", which is not known here")
	}
	a.raises(c)
}

// raises notes what options make of a command.
func (a *analysis) raises(c *call) {
	for i := range c.opts {
		o := &c.opts[i]
		if o.spec != nil && o.spec.Raise > 0 && !(c.dry() && o.spec.Effect != RunCode) {
			a.note(o.spec.Raise, o.spec.Effect, o.span, cmp.Or(o.spec.Says, "with "+o.name))
			if o.spec.Effect == RunCode {
				a.command().Runs = true
			}
		}
	}
}

// lowered reports whether an option was given that makes the command low, and not to say no: --dry-run=none.
func (c *call) lowered() bool {
	return slices.ContainsFunc(c.opts, func(o option) bool {
		off := o.val != nil && (!o.val.Known || slices.Contains([]string{"none", "false", "no", "0", "off"}, o.val.S))
		return o.spec != nil && o.spec.Lower && !off
	})
}

// dry reports whether a command only shows what it would do.
func (c *call) dry() bool {
	o := c.spec.Option("--dry-run")
	return o != nil && o.Lower && c.lowered() && c.has("--dry-run", "-n", "--dryrun")
}
