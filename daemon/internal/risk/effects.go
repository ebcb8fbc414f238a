package risk

import (
	"slices"
	"strings"

	"sublet/daemon/internal/risk/bashread"
	"sublet/daemon/internal/risk/programs"
)

// effects notes what the effects in a command's line of the table mean for the rest of the text.
func (a *analysis) effects(c *call) {
	s := c.spec
	for _, e := range s.Effects[1:] { // level has noted the first
		a.taint(e)
		a.effect(e)
	}
	if s.Has(Network) {
		if c.st.Stdin.Flow&flowSecret != 0 {
			a.note(Critical, Secret, c.span, "sends secrets over the network")
		}
		for i := range c.operands[:min(4, len(c.operands))] {
			if o := &c.operands[i]; o.Known && deletes(o.S) {
				a.note(Critical, Delete, o.Span, "deletes what is elsewhere, with "+show(o.S))
			}
		}
	}
	if s.Has(RunCode) {
		a.dropsData(c)
	}
	if s.Has(RunCode) || s.Has(Privilege) {
		for i := range c.operands {
			if o := &c.operands[i]; (o.Flow|a.flowOf(bashread.Key(o, c.st)))&flowNet != 0 {
				a.note(Critical, RunCode, o.Span, "installs or runs what was just fetched from the network")
			}
		}
	}
}

// deletes reports whether a word of a network client is the name of a deletion: delete, apps:destroy.
func deletes(s string) bool {
	verb, what, _ := strings.Cut(s[strings.LastIndexByte(s, ':')+1:], "-")
	return slices.Contains([]string{"delete", "destroy", "drop", "purge", "terminate", "flushall", "undefine", "wipe", "del"}, verb) && what != "tags"
}

// matches judges the words of a command by the expressions that the table has for it and for the commands that it is a subcommand of. An
// expression judges each word by itself, or, if it is Whole, all words joined by spaces. If a word matches one that runs code, what stands
// behind each = in it is judged as a command too.
func (a *analysis) matches(c *call) {
	for s := c.spec; s != nil; s = s.Up {
		for _, m := range s.Match {
			words := c.fields[1:]
			if m.Whole {
				words = []field{bashread.Join(words, c.span)}
			}
			for i := range words {
				if a.Spend(1 + len(words[i].S)/bashread.BytesParsed); a.matched(m, &words[i], c) && m.Effect == RunCode {
					a.values(&words[i], c.st)
				}
			}
		}
	}
}

// values judges what stands behind each = of a word that may be a command in which ssh (%h) or make ($(shell …), $$) replaces parts first.
func (a *analysis) values(f *field, st *state) {
	text := strings.NewReplacer("%h", "_", "%p", "_", "%r", "_", "$(shell ", "$(", "$$", "$").Replace(f.S)
	for _, val, ok := strings.Cut(text, "="); ok; _, val, ok = strings.Cut(val, "=") {
		a.Maybe(val, f.Span, st)
	}
}

// roles judges the operands of a command by the roles that its line in the table gives them.
func (a *analysis) roles(c *call) {
	ops, roles := c.operands, c.spec.Args
	if c.tail > 0 && !c.wraps() { // an option names a command, to which the program adds words of its own: fd -x rm
		a.command().Runs = true
		fs, sp := c.rest()
		a.Command(append(slices.Clip(fs), field{S: unknownPart, Many: true, Span: sp}), c.st, sp)
	}
	given := 0 // roles that are given by options instead
	st := c.st
	if c.wraps() && !programs.Builtin(c.name) {
		st = st.Clone()
	}
	switch roles[0] {
	case programs.Copy, programs.Move:
		a.copies(c, roles[0] == programs.Move)
		return
	case programs.Run:
		if !c.lowered() { // command -v
			a.past = programs.Builtin(c.name) && c.name != "exec" // zsh's exec runs functions
			a.runTail(c, st)
			a.past = false
		}
		return
	case programs.Join:
		fs, sp := c.rest()
		if len(fs) == 0 && c.st.Stdin.Any && !programs.Builtin(c.name) {
			a.fromStdin(c, st)
		}
		f := bashread.Join(fs, sp)
		if c.name == "tmux" { // send-keys names the end of a line so
			f.S = strings.NewReplacer(" Enter", "\n", " C-m", "\n", " C-j", "\n").Replace(f.S)
		}
		a.evalText(f, st)
		return
	case programs.Text: // a pattern, as of grep
		if len(roles) > 1 && c.has("-e", "--regexp", "-f", "--file") {
			given = 1
		}
	}
	for i := range ops {
		role := roles[min(given+i, len(roles)-1)]
		if role == programs.Writes && c.lowered() {
			role = programs.Reads
		}
		if a.role(c, role, &ops[i]); i > 0 && len(roles) > 1 && roles[0] == programs.Writes && c.has("-m") { // zip -m deletes what it packed
			a.touch(Delete, &ops[i], c.st, touching{tree: true})
		}
	}
}

// optionRoles judges the values of options by the roles that the command's line gives them.
func (a *analysis) optionRoles(c *call) {
	for i := range c.opts {
		if o := &c.opts[i]; o.val != nil && o.spec != nil {
			a.role(c, o.spec.Role, o.val)
		}
	}
}

// namesSecrets judges each word that names keys or passwords as one that is read: which words are files depends on options.
func (a *analysis) namesSecrets(c *call) {
	for i := range c.fields[1:] {
		f := &c.fields[i+1]
		if strings.HasPrefix(f.S, "-") || c.spec != nil && len(c.spec.Args) > 1 && c.spec.Args[0] == programs.Text && len(c.operands) > 0 && f.Span == c.operands[0].Span {
			continue
		}
		if _, file, ok := strings.Cut(f.S, ":"); ok && c.name == "git" {
			f = f.With(file) // HEAD:.env
		}
		if a.secretWord(f, c.st) {
			a.touch(Read, f, c.st, touching{})
		}
	}
}

// role judges one word.
func (a *analysis) role(c *call, role string, f *field) {
	tree := c.has("-r", "-R", "-a", "--recursive", "--archive") || c.name == "rg" || c.name == "ag"
	switch role {
	case programs.Reads:
		a.touch(Read, f, c.st, touching{tree: tree})
	case programs.Sends:
		a.sends(f, c.st)
	case programs.Writes:
		a.touch(Write, f, c.st, touching{})
		w := bashread.Output{Flow: a.Seen&flowNet | c.st.Stdin.Flow}
		if c.name == "tee" {
			w.Text = c.st.Stdin.Plain()
		}
		a.Wrote(bashread.Key(f, c.st), w, c.has("-a", "--append"))
	case programs.Deletes:
		a.touch(Delete, f, c.st, touching{tree: tree, safe: c.name == "rmdir"})
	case programs.Drops:
		a.note(High, Delete, c.span, "drops changes that were never committed")
	case programs.Script:
		a.runFile(c, f)
	case programs.Shell:
		a.shellText(*f, c.st)
	case programs.Run: // in the word of the option: a command, or options of jobs and the like
		a.command().Runs = true
		if !programs.Builtin(c.name) {
			a.Command([]field{*f, {S: unknownPart, Many: true, Span: f.Span}}, c.st, f.Span)
		}
	case programs.Tool:
		if first, _, _ := strings.Cut(f.S, " "); !slices.Contains([]string{"", "ssh", "gzip", "bzip2", "xz", "zstd", "lz4", "pigz", "unzstd"}, first) {
			a.note(High, RunCode, f.Span, show(c.name)+" runs a program that is named here")
			a.shellText(*f, c.st)
		} else if first == "ssh" {
			a.Maybe(f.S+" _", f.Span, c.st)
		}
	case programs.Code:
		switch c.spec.Handler {
		case "code":
			a.code(c, f)
			return
		case "filter":
			a.program(c, f)
			return
		}
		a.note(High, RunCode, f.Span, "runs code that is given to "+show(c.name))
		a.givenCode(f, c)
	case programs.Name:
		a.fills(f, field{S: unknownPart, Flow: c.st.Stdin.Flow}, c.st)
	case programs.Index:
		a.EvalText(f.S, c.st, f.Span)
	}
}

// sends judges a file that is sent if the word names one behind an @ or =<: @file, name=@file, name@file, name=<file.
func (a *analysis) sends(f *field, st *state) {
	i := strings.IndexByte(f.S, '@')
	if form := strings.Index(f.S, "=<"); i < 0 && form >= 0 {
		i = form + 1
	}
	if i >= 0 {
		name, _, _ := strings.Cut(f.S[i+1:], ";")
		a.touch(Read, f.With(name), st, touching{verb: "sends"})
	}
}

// runTail judges the command that a wrapper runs in the state st, which it may change, and returns of how many words it is.
func (a *analysis) runTail(c *call, st *state) int {
	a.command().Runs = true
	fs, sp := c.rest()
	for len(fs) > 0 && !programs.Builtin(c.name) { // sudo A=1 cmd; command takes A=1 for a name
		name, val, ok := strings.Cut(fs[0].S, "=")
		if !ok || !bashread.NameLike(name) {
			break
		}
		a.Assign(name, fs[0].With(val), st, bashread.Prefix, fs[0].Span)
		st.Set(name, bashread.Value{Words: []string{val}, Flow: fs[0].Flow, Handed: true}) // a shell below sees it
		fs = fs[1:]
	}
	a.Command(fs, st, sp)
	return len(fs)
}

// shellText judges a word that a command gives to another shell.
func (a *analysis) shellText(f field, st *state) { a.evalText(f, st.Clone()) }

// evalText judges text that runs in the state st, which it may change.
func (a *analysis) evalText(f field, st *state) {
	a.command().Runs = true
	switch {
	case a.runsFlow(f.Flow, f.Span):
	case f.Opaque():
		a.note(High, RunCode, f.Span, "runs text that is not known here")
	}
	if strings.TrimSpace(strings.Trim(f.S, unknownPart+tamePart)) != "" {
		a.Inline(f.S, f.Span, st)
	}
}

// runsFlow notes, and reports, that code runs which nobody could read before, because it was fetched or decoded.
func (a *analysis) runsFlow(fl bashread.Flow, sp Span) bool {
	switch {
	case fl&flowNet != 0:
		a.note(Critical, RunCode, sp, "runs what was just fetched from the network")
	case fl&bashread.Decoded != 0:
		a.note(Critical, RunCode, sp, "runs what was decoded here, so that it cannot be read")
	}
	return fl&(flowNet|bashread.Decoded) != 0
}

// fromStdin judges a program that runs what it reads, in the state st, which that may change.
func (a *analysis) fromStdin(c *call, st *state) {
	in := st.Stdin
	switch text := in.Plain(); {
	case text != nil:
		st.Stdin = bashread.Output{}
		a.evalText(field{S: *text, Known: true, Span: c.span, Flow: in.Flow}, st)
	case a.runsFlow(in.Flow, c.span):
	case in.Any:
		a.command().Opaque = true
		a.note(High, RunCode, c.span, show(c.name)+" runs what it is given, and that is not known here")
	default:
		a.note(High, RunCode, c.span, show(c.name)+" runs what is typed into it")
	}
}

// usesSecret notes secrets that are handed to a program by its words.
func (a *analysis) usesSecret(c *call) {
	name := c.fields[0].Base()
	if name == "test" || name == "[" || name == "unset" {
		return
	}
	spec := programs.Lookup(name)
	for i := range c.fields {
		if f := &c.fields[i]; f.Flow&flowSecret != 0 {
			if spec != nil && spec.Handler == "sql" {
				a.effect(Secret) // which does not leave: Network, and no taint
				a.note(Medium, Network, f.Span, "logs in to a database with a secret")
				return
			}
			a.note(High, Secret, f.Span, "uses a secret: what runs gets it, and may show it")
			return
		}
	}
}
