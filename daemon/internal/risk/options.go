package risk

import "strings"

// options splits argv into sub-command, options and operands by what the table knows of them (T3i).
func (a *analysis) options(c *cmdCall) {
	args := c.fields[1:]
	c.verb = 1
	straight := true // no options so far
	var lead []string
	for i := 0; i < len(args); i++ {
		f := &args[i]
		s := f.s
		if s == "--" && f.known {
			before := len(c.operands)
			c.operands = append(c.operands, args[i+1:]...)
			if c.spec.args == roleRun && c.tail == 0 {
				c.tail = a.tailFrom(c, i+2, before)
			}
			break
		}
		if len(s) > 1 && (s[0] == '-' || s[0] == '+' && c.spec.opts[s] != nil) && !f.opaqueAt(0) {
			straight = false
			i = a.option(c, args, i)
			continue
		}
		if c.spec.subs != nil && len(c.operands) == 0 && f.known {
			if sub := c.spec.subs[s]; sub != nil {
				c.spec = sub
				lead = append(lead, s)
				if straight {
					c.verb++
				}
				continue
			}
		}
		if c.spec.args == roleRun {
			if len(c.operands) >= c.spec.skip {
				c.tail = i + 1
				break
			}
		}
		c.operands = append(c.operands, *f)
	}
	for i := range c.opts {
		// Given before the sub-command that knows it: npm -g install x.
		if o := &c.opts[i]; o.spec == nil {
			o.spec = c.spec.option(o.name)
		}
	}
	if !straight && len(lead) > 0 && c.verb <= len(lead) {
		// Options stood before the sub-command: rules that forbid see the command without them, too.
		c.plain = append([]string{c.fields[0].s}, lead...)
		for i := range c.operands {
			c.plain = append(c.plain, c.operands[i].s)
		}
		for i := range c.opts {
			c.plain = append(c.plain, c.opts[i].name)
		}
		c.verb = 0
	}
}

// tailFrom skips the operands that stand before a wrapped command.
func (a *analysis) tailFrom(c *cmdCall, i, before int) int {
	i += max(0, c.spec.skip-before)
	if i >= len(c.fields) {
		return 0
	}
	return i
}

func (f *field) opaqueAt(i int) bool {
	return i < len(f.s) && f.s[i] == unknownPart
}

// option reads the option at args[i] and returns the index of its last word.
func (a *analysis) option(c *cmdCall, args []field, i int) int {
	f := &args[i]
	s := f.s
	at := i
	add := func(name string, o *optSpec, val *field) {
		word := 0
		if i > at {
			word = i + 1
		}
		c.opts = append(c.opts, option{name: name, val: val, word: word, spec: o, span: f.span})
	}
	part := func(text string) *field {
		v := *f
		v.s = text
		return &v
	}
	takes := func(o *optSpec) bool { return o != nil && o.value != roleDefault }
	next := func(o *optSpec) *field {
		if takes(o) && i+1 < len(args) {
			i++
			return &args[i]
		}
		return nil
	}
	if strings.HasPrefix(s, "--") || c.spec.longNames() {
		name, val, ok := strings.Cut(s, "=")
		o := c.spec.option(name)
		if ok {
			add(name, o, part(val))
		} else if o == nil && !strings.HasPrefix(s, "--") && len(s) > 2 {
			// A program with long options that also takes clusters or joined values (-Ipath): look at its first letter.
			if p := c.spec.option(s[:2]); p != nil {
				if takes(p) {
					add(s[:2], p, part(s[2:]))
				} else {
					add(s[:2], p, nil)
					add(s, nil, nil)
				}
			} else {
				add(s, nil, nil)
			}
		} else {
			add(name, o, next(o))
		}
		return i
	}
	if o := c.spec.option(s); o != nil && len(s) > 2 {
		add(s, o, next(o)) // a long name behind one dash that the table lists
		return i
	}
	// A cluster: -rf, -ofile.
	for k := 1; k < len(s); k++ {
		name := string(s[0]) + s[k:k+1]
		o := c.spec.option(name)
		if takes(o) {
			if k+1 < len(s) {
				add(name, o, part(strings.TrimPrefix(s[k+1:], "=")))
			} else {
				add(name, o, next(o))
			}
			return i
		}
		add(name, o, nil)
	}
	return i
}
