package bashread

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"sublet/daemon/internal/risk/programs"
)

// stmts walks a list of statements.
func (r *Reader) stmts(list []*syntax.Stmt, st *State) {
	for _, s := range list {
		before := st.Cwd
		r.stmt(s, st)
		if _, ok := s.Cmd.(*syntax.CallExpr); ok && st.Cwd != before && (!st.Errexit || s.Negated) {
			st.MayBe(before) // a cd that fails leaves the next command where it was
		}
	}
	if len(list) > 1 {
		r.Out = Output{}
	}
}

// exits reports whether nothing follows a list of statements: its last is exit, return, or a block that ends with one.
func exits(list ...*syntax.Stmt) bool {
	if len(list) == 0 || list[len(list)-1].Background {
		return false
	}
	s := list[len(list)-1]
	if b, ok := s.Cmd.(*syntax.Block); ok {
		return exits(b.Stmts...)
	}
	return callee(s) == "exit" || callee(s) == "return"
}

// cond walks a statement whose success decides what runs next. st becomes the state after its success; fail is the one after its
// failure, nil if nothing follows that.
func (r *Reader) cond(s *syntax.Stmt, st *State) (fail *State) {
	b, ok := s.Cmd.(*syntax.BinaryCmd)
	if !ok || s.Background || s.Negated || b.Op != syntax.AndStmt && b.Op != syntax.OrStmt {
		before := st.Clone()
		r.stmt(s, st)
		fail = st.Clone()
		if st.Cwd != before.Cwd {
			fail.Cwd, fail.Alts = before.Cwd, before.Alts
			if s.Negated {
				st.MayBe(before.Cwd)
			}
		}
		return fail
	}
	fail = r.cond(b.X, st)
	defer func() { r.Out = Output{} }()
	if b.Op == syntax.AndStmt {
		other := r.cond(b.Y, st)
		if fail == nil {
			return other
		}
		fail.join(other)
		return fail
	}
	if fail == nil { // b.Y never runs, and is walked all the same
		fail = st.Clone()
	}
	other := r.cond(b.Y, fail)
	if exits(b.Y) {
		return nil
	}
	st.join(fail)
	return other
}

// condList walks a list of which the last statement is the condition.
func (r *Reader) condList(list []*syntax.Stmt, st *State) (fail *State) {
	if len(list) == 0 {
		return st.Clone()
	}
	r.stmts(list[:len(list)-1], st)
	return r.cond(list[len(list)-1], st)
}

// stmt walks one statement, and leaves what it prints in r.Out.
func (r *Reader) stmt(s *syntax.Stmt, st *State) {
	r.Spend(1)
	if s.Background || s.Coprocess || s.Disown {
		r.checkBomb(s, st)
		st = st.Clone()
	}
	keep, seen := st.Stdin, r.Seen
	r.Seen = 0 // of this statement alone, for the files that it writes

	files, stdout := make([]string, len(s.Redirs)), false
	for i, rd := range s.Redirs {
		writes := false
		files[i], writes = r.redirect(rd, st)
		stdout = stdout || writes && (rd.N == nil || rd.N.Value == "1")
	}
	r.Seen |= st.Stdin.Flow
	r.Out = Output{}
	if s.Cmd != nil {
		r.command(s.Cmd, st)
	}
	for i, rd := range s.Redirs {
		r.Wrote(files[i], Output{Flow: r.Seen, Text: r.Out.Plain()}, appends(rd))
	}
	if stdout {
		r.Out = Output{}
	}
	r.Seen |= seen
	st.Stdin = keep
}

// Wrote records what this text wrote into a file, or at its end. key names the file; "" is none, or one that is not known.
func (r *Reader) Wrote(key string, w Output, appends bool) {
	if key == "" {
		return
	}
	before := r.Files[key]
	switch {
	case !appends:
	case before.Text == nil || w.Text == nil:
		w.Text = nil
	default:
		whole := *before.Text + *w.Text
		r.Spend(len(whole) / BytesCopied)
		w.Text = &whole
	}
	w.Flow |= before.Flow
	r.Files[key] = w
}

// command walks the command of a statement. A test checks that each type of the parser has a case.
func (r *Reader) command(cmd syntax.Command, st *State) {
	switch c := cmd.(type) {
	case *syntax.CallExpr:
		r.call(c, st)
	case *syntax.BinaryCmd:
		if c.Op == syntax.AndStmt || c.Op == syntax.OrStmt {
			st.join(r.cond(&syntax.Stmt{Cmd: c}, st))
		} else {
			r.pipe(c, st)
		}
	case *syntax.Block:
		r.stmts(c.Stmts, st)
	case *syntax.Subshell:
		r.stmts(c.Stmts, st.Clone())
	case *syntax.IfClause:
		r.ifClause(c, st)
	case *syntax.WhileClause:
		r.loop(st, func() {
			r.condList(c.Cond, st)
			r.stmts(c.Do, st)
		})
	case *syntax.ForClause:
		r.forClause(c, st)
	case *syntax.CaseClause:
		r.caseClause(c, st)
	case *syntax.FuncDecl:
		r.funcDecl(c, st)
	case *syntax.ArithmCmd:
		r.arithm(c.X, st)
	case *syntax.LetClause:
		for _, x := range c.Exprs {
			r.arithm(x, st)
		}
	case *syntax.TestClause: // [[ a -eq b ]] evaluates its words as numbers
		r.arithm(c.X, st)
	case *syntax.DeclClause:
		r.declare(c, st)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			r.stmt(c.Stmt, st)
		}
	case *syntax.CoprocClause:
		if c.Name != nil {
			r.word(c.Name, st)
		}
		if c.Stmt != nil {
			r.stmt(c.Stmt, st.Clone())
		}
	default:
		r.Judge.Unread(r.span(cmd), "a construct that is not known here")
	}
}

// pipe walks a pipe. a | b | c is ((a | b) | c).
func (r *Reader) pipe(b *syntax.BinaryCmd, st *State) {
	if callee(b.X) == callee(b.Y) {
		r.checkBomb(b.X, st)
	}
	seen := r.Seen
	r.Seen = 0
	r.stmt(b.X, st.Clone())
	right := st.Clone()
	right.Stdin = r.Out
	right.Stdin.Flow, right.Stdin.Any = st.Stdin.Flow|r.Seen|r.Out.Flow, true
	r.stmt(b.Y, right)
	r.Seen |= seen
}

// ifClause walks an if, elif or else. Afterwards st is the state after any of its branches from which something follows.
func (r *Reader) ifClause(c *syntax.IfClause, st *State) {
	if len(c.Cond) == 0 && c.Else == nil { // the last else
		r.stmts(c.Then, st)
		return
	}
	other := r.condList(c.Cond, st) // where the condition fails
	r.stmts(c.Then, st)
	if c.Else != nil && other != nil {
		r.ifClause(c.Else, other)
	}
	if other != nil && exits(c.Then...) {
		*st = *other
	} else {
		st.join(other)
	}
}

// loop walks a loop, which may run no round, and whose later rounds see what the earlier ones left: what they make different is not
// known. It ends when a round makes no other variable unknown, so that x=$y; y=~/.ssh/id_rsa is seen in x too. Of loops in loops only
// the outermost is walked again, so that nesting costs nothing; what those in it change is found then.
func (r *Reader) loop(st *State, round func()) {
	outermost := !r.looping
	r.looping = true
	for n, more := 0, true; n == 0 || outermost && (n < 2 || more); n++ {
		start := st.Clone()
		round()
		more = st.join(start)
	}
	r.looping = !outermost
}

// MaxUnroll bounds the known items for each of which a loop's body is walked.
const MaxUnroll = 16

func (r *Reader) forClause(c *syntax.ForClause, st *State) {
	switch l := c.Loop.(type) {
	case *syntax.CStyleLoop:
		for _, x := range []syntax.ArithmExpr{l.Init, l.Cond, l.Post} {
			r.arithm(x, st)
		}
		r.loop(st, func() { r.stmts(c.Do, st) })
	case *syntax.WordIter:
		items := r.words(l.Items, st)
		if !l.InPos.IsValid() && st.ArgsOK {
			items = st.Args
		}
		all := Join(items, Span{})
		known := all.Known && len(items) > 0 && len(items) <= MaxUnroll && !c.Select
		if !known {
			items = []Field{{S: string(UnknownPart), Flow: all.Flow}}
		}
		rounds := func() {
			for i := range items {
				f := &items[i]
				r.Judge.Assign(l.Name.Value, f, st, Plain, r.span(l))
				st.Set(l.Name.Value, Value{Words: []string{f.S}, Flow: f.Flow, Glob: f.Glob})
				r.stmts(c.Do, st)
			}
		}
		if before := st.Clone(); known {
			rounds()
			st.join(before) // a break may end it anywhere
		} else {
			r.loop(st, rounds)
		}
	default:
		r.Judge.Unread(r.span(c), "a loop that is not known here")
	}
	r.Out = Output{}
}

func (r *Reader) caseClause(c *syntax.CaseClause, st *State) {
	r.word(c.Word, st)
	before := st.Clone()
	for _, item := range c.Items {
		branch := before.Clone()
		for _, p := range item.Patterns {
			r.word(p, branch)
		}
		r.stmts(item.Stmts, branch)
		st.join(branch)
	}
}

// funcDecl records a function, and walks its body with unknown arguments, since a call of it may not be seen: in a trap, or later.
func (r *Reader) funcDecl(c *syntax.FuncDecl, st *State) {
	name := "" // none, or several, in zsh
	if c.Name != nil {
		name = c.Name.Value
	}
	if programs.Known(name) {
		r.Judge.Note(programs.High, programs.ShellState, r.span(c), "a function takes the place of the command "+name)
	}
	fn := Function{body: c.Body, src: r.src}
	st.funcs[name] = fn
	body := st.Clone()
	body.Args, body.ArgsOK = nil, false
	r.Active = append(r.Active, fn.id()) // a call of itself in it is not walked again
	r.stmt(c.Body, body)
	r.Active = r.Active[:len(r.Active)-1]
	r.Out = Output{}
}

// checkBomb notes a call of the function being walked whose children call it too, in the background or in a pipe into itself.
func (r *Reader) checkBomb(s *syntax.Stmt, st *State) {
	if fn, ok := st.funcs[callee(s)]; ok && slices.Contains(r.Active, fn.id()) {
		r.Judge.Note(programs.Critical, programs.RunCode, r.span(s), "a function starts itself again and again (fork bomb)")
	}
}

// callee returns the name in a simple command, "" where that is not literal.
func callee(s *syntax.Stmt) string {
	if c, ok := s.Cmd.(*syntax.CallExpr); ok && len(c.Args) > 0 {
		return c.Args[0].Lit()
	}
	return ""
}

func appends(rd *syntax.Redirect) bool {
	return strings.Contains(rd.Op.String(), ">>")
}

// redirect walks one redirection and sets what a command will read from standard input. It returns a key of the file that is written.
func (r *Reader) redirect(rd *syntax.Redirect, st *State) (file string, writes bool) {
	if strings.HasPrefix(rd.Op.String(), "<<") {
		r.hereText(rd, st)
		return "", false
	}
	duplicates := rd.Op == syntax.DplOut || rd.Op == syntax.DplIn
	fs := r.words([]*syntax.Word{rd.Word}, st)
	for i := range fs {
		f := &fs[i]
		f.Span = r.span(rd)
		flow := f.Flow | r.FileFlow(f, st)
		if strings.HasPrefix(f.S, "/dev/tcp/") || strings.HasPrefix(f.S, "/dev/udp/") {
			r.NetFD = true
			flow |= Net
		}
		switch {
		case duplicates && (f.S == "-" || Digits(strings.TrimSuffix(f.S, "-"))):
			// 0>&1 and <&5: what the descriptor is, a connection or a file, is not followed.
			if toStdin(rd) {
				st.Stdin = Output{Flow: st.Stdin.Flow, Any: true}
				if r.NetFD {
					st.Stdin.Flow |= Net
				}
			}
		case rd.Op == syntax.RdrIn || rd.Op == syntax.DplIn:
			list := r.Out.List // of <(…)
			r.Judge.Redirect(f, st, false, false)
			if toStdin(rd) {
				st.Stdin = Output{Flow: flow, Any: true, List: list}
			}
		default:
			r.Judge.Redirect(f, st, true, appends(rd))
			if file, writes = Key(f, st), true; len(fs) > 1 || f.Glob {
				file = ""
			}
			if toStdin(rd) { // <>
				st.Stdin = Output{Flow: flow, Any: true}
			}
		}
	}
	return file, writes
}

// hereText walks a here-document or here-string.
func (r *Reader) hereText(rd *syntax.Redirect, st *State) {
	var f Field
	switch {
	case rd.Op == syntax.WordHdoc:
		f = r.word(rd.Word, st)
		f.S += "\n"
	case rd.Hdoc == nil:
		return
	default: // no quotes, no tilde: a backslash counts before $ ` \ and a line feed, or nowhere if the delimiter was quoted
		b := builder{r: r, st: st, nosplit: true, quoted: inHereText}
		if slices.ContainsFunc(rd.Word.Parts, func(p syntax.WordPart) bool {
			l, ok := p.(*syntax.Lit)
			return !ok || strings.Contains(l.Value, `\`)
		}) {
			b.quoted = strings.NewReplacer()
		}
		b.parts(rd.Hdoc.Parts, true, false)
		f = b.take()
	}
	if !toStdin(rd) {
		return
	}
	st.Stdin = Output{Flow: f.Flow, Any: true}
	if f.Known {
		st.Stdin.Text = &f.S
	}
}

// toStdin reports whether a redirection replaces standard input.
func toStdin(rd *syntax.Redirect) bool {
	if rd.N != nil {
		return rd.N.Value == "0"
	}
	return rd.Op.String()[0] == '<'
}
