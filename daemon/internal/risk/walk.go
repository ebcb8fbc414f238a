package risk

import "mvdan.cc/sh/v3/syntax"

// stmts walks a list of statements. ends says that what follows the list does not run.
func (a *analysis) stmts(list []*syntax.Stmt, st *state) (ends bool) {
	for _, s := range list {
		if b, ok := s.Cmd.(*syntax.BinaryCmd); ok && !s.Background && !s.Negated && (b.Op == syntax.AndStmt || b.Op == syntax.OrStmt) {
			r := a.cond(s, st)
			switch {
			case r.ends && r.fail == nil:
				return true
			case r.ends:
				*st = *r.fail
			case r.fail != nil:
				st.join(r.fail)
			}
			continue
		}
		before := st.cwd
		if a.stmt(s, st) {
			return true
		}
		if _, ok := s.Cmd.(*syntax.CallExpr); ok && st.cwd != before && (!st.errexit || s.Negated) {
			st.mayBe(before) // a cd that fails leaves the next command where it was
		}
	}
	return false
}

// outcome of a condition: the state passed in holds if it succeeded (never, if ends), fail if it did not (nil: never).
type outcome struct {
	fail *state
	ends bool
}

// cond walks a statement whose success decides what runs next.
func (a *analysis) cond(s *syntax.Stmt, st *state) outcome {
	b, ok := s.Cmd.(*syntax.BinaryCmd)
	if !ok || s.Background || s.Negated || b.Op != syntax.AndStmt && b.Op != syntax.OrStmt {
		before := st.clone()
		ends := a.stmt(s, st)
		if ends {
			return outcome{ends: true}
		}
		fail := st.clone()
		if st.cwd != before.cwd {
			fail.cwd, fail.alts = before.cwd, before.alts
			if s.Negated {
				st.mayBe(before.cwd)
			}
		}
		return outcome{fail: fail}
	}
	for _, r := range s.Redirs {
		a.redirect(r, st)
	}
	x := a.cond(b.X, st)
	if b.Op == syntax.AndStmt {
		if x.ends {
			return x
		}
		y := a.cond(b.Y, st)
		if x.fail == nil {
			return y
		}
		if y.fail != nil {
			x.fail.join(y.fail)
		}
		return outcome{fail: x.fail, ends: y.ends}
	}
	if x.fail == nil {
		return x
	}
	y := a.cond(b.Y, x.fail)
	switch {
	case x.ends && y.ends:
		return outcome{fail: y.fail, ends: true}
	case x.ends:
		*st = *x.fail
	case !y.ends:
		st.join(x.fail)
	}
	return outcome{fail: y.fail}
}

// condList walks a list of which the last statement is the condition.
func (a *analysis) condList(list []*syntax.Stmt, st *state) outcome {
	if len(list) == 0 {
		return outcome{fail: st.clone()}
	}
	if a.stmts(list[:len(list)-1], st) {
		return outcome{ends: true}
	}
	return a.cond(list[len(list)-1], st)
}

// stmt walks one statement. ends says that what follows it does not run.
func (a *analysis) stmt(s *syntax.Stmt, st *state) (ends bool) {
	a.spend(1)
	if s.Background || s.Coprocess || s.Disown {
		st = st.clone()
	}
	if len(s.Redirs) == 0 {
		if s.Cmd != nil {
			ends = a.command(s.Cmd, st)
		}
		return ends && !s.Background
	}
	keep, seen := st.stdin, a.seen
	a.seen = 0
	var outs []*syntax.Redirect
	for _, r := range s.Redirs {
		a.redirect(r, st)
		switch r.Op {
		case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll, syntax.DplOut:
			outs = append(outs, r)
		}
	}
	from := st.clone()
	a.seen |= st.stdin.flow
	if s.Cmd != nil {
		ends = a.command(s.Cmd, st)
	}
	for _, r := range outs {
		w := written{flow: a.seen}
		if r.Op == syntax.RdrOut && (r.N == nil || r.N.Value == "1") {
			w.text = a.literalOutput(s, from)
		}
		a.facts.wrote(a.knownPath(r, from), w)
	}
	a.seen |= seen
	st.stdin = keep
	return ends && !s.Background
}

// command walks what stands in a statement. Every type of the parser has its case; a test keeps it so.
func (a *analysis) command(cmd syntax.Command, st *state) (ends bool) {
	switch c := cmd.(type) {
	case *syntax.CallExpr:
		return a.call(c, st)
	case *syntax.BinaryCmd:
		return a.binary(c, st)
	case *syntax.Block:
		return a.stmts(c.Stmts, st)
	case *syntax.Subshell:
		a.stmts(c.Stmts, st.clone())
	case *syntax.IfClause:
		return a.ifClause(c, st)
	case *syntax.WhileClause:
		a.loop(st, func(st *state) {
			r := a.condList(c.Cond, st)
			if !r.ends {
				a.stmts(c.Do, st)
			}
		}, c)
	case *syntax.ForClause:
		a.forClause(c, st)
	case *syntax.CaseClause:
		return a.caseClause(c, st)
	case *syntax.FuncDecl:
		a.funcDecl(c, st)
	case *syntax.ArithmCmd:
		a.arithm(c.X, st)
	case *syntax.LetClause:
		for _, x := range c.Exprs {
			a.arithm(x, st)
		}
	case *syntax.TestClause:
		a.test(c.X, st)
	case *syntax.DeclClause:
		a.declare(c, st)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			return a.stmt(c.Stmt, st)
		}
	case *syntax.CoprocClause:
		if c.Name != nil {
			a.word(c.Name, st)
		}
		if c.Stmt != nil {
			a.stmt(c.Stmt, st.clone())
		}
	case *syntax.TestDecl:
		a.note(High, Unknown, a.span(c), "a construct that only test files hold")
		a.stmt(c.Body, st.clone())
	default:
		a.unreadable(a.span(cmd), "a construct that is not known here")
	}
	return false
}

// binary walks pipes, and lists that stand where their success decides nothing.
func (a *analysis) binary(b *syntax.BinaryCmd, st *state) (ends bool) {
	if b.Op == syntax.AndStmt || b.Op == syntax.OrStmt {
		r := a.cond(&syntax.Stmt{Cmd: b}, st)
		switch {
		case r.ends && r.fail == nil:
			return true
		case r.ends:
			*st = *r.fail
		case r.fail != nil:
			st.join(r.fail)
		}
		return false
	}
	// a | b | c is ((a | b) | c): unroll it, so that long pipes cost no stack.
	var parts []*syntax.Stmt
	var left *syntax.Stmt
	for cur := b; ; {
		parts = append(parts, cur.Y)
		left = cur.X
		next, ok := left.Cmd.(*syntax.BinaryCmd)
		if !ok || next.Op == syntax.AndStmt || next.Op == syntax.OrStmt || len(left.Redirs) > 0 || left.Negated || left.Background {
			break
		}
		cur = next
	}
	in := st.stdin
	seen := a.seen
	a.seen = 0
	side := st.clone()
	a.stmt(left, side)
	out := stdin{flow: in.flow | a.seen, text: a.literalOutput(left, st), any: true}
	out.list, _ = a.listing(left, st)
	for i := len(parts) - 1; i >= 0; i-- {
		side := st.clone()
		side.stdin = out
		text := a.literalFilter(parts[i], out)
		a.stmt(parts[i], side)
		list := ""
		if out.list != "" && picksLines(parts[i]) {
			list = out.list
		}
		out = stdin{flow: in.flow | a.seen, text: text, any: true, list: list}
	}
	var printed []field
	if out.text != nil {
		printed = []field{{s: *out.text, known: true}}
	}
	a.keep(b, printed)
	a.seen |= seen
	return false
}

func (a *analysis) ifClause(c *syntax.IfClause, st *state) (ends bool) {
	if len(c.Cond) == 0 && c.Else == nil { // the last else
		return a.stmts(c.Then, st)
	}
	r := a.condList(c.Cond, st)
	thenEnds := r.ends
	if !r.ends {
		thenEnds = a.stmts(c.Then, st)
	}
	other := r.fail
	if other == nil {
		return thenEnds
	}
	elseEnds := false
	if c.Else != nil {
		elseEnds = a.ifClause(c.Else, other)
	}
	switch {
	case thenEnds && elseEnds:
		return true
	case thenEnds:
		*st = *other
	case !elseEnds:
		st.join(other)
	}
	return false
}

// loop walks something that may run any number of times: what it changes is not known in it nor after it.
func (a *analysis) loop(st *state, body func(*state), loop syntax.Node) {
	m := a.mutations(loop)
	st.unknown(m.names)
	if m.moves {
		st.mayBe("")
	}
	before := st.clone()
	body(st)
	st.join(before)
	st.unknown(m.names)
}

// maxUnroll bounds the literal items for which a loop's body is judged one by one.
const maxUnroll = 16

func (a *analysis) forClause(c *syntax.ForClause, st *state) {
	switch l := c.Loop.(type) {
	case *syntax.CStyleLoop:
		for _, x := range []syntax.ArithmExpr{l.Init, l.Cond, l.Post} {
			if x != nil {
				a.arithm(x, st)
			}
		}
		a.loop(st, func(st *state) { a.stmts(c.Do, st) }, c)
	case *syntax.WordIter:
		items := a.words(l.Items, st)
		if !l.InPos.IsValid() {
			items = nil
			if st.argsOK {
				items = st.args
			}
		}
		simple := len(items) > 0 && len(items) <= maxUnroll && !c.Select && (l.InPos.IsValid() || st.argsOK)
		var fl flow
		for i := range items {
			fl |= items[i].flow
			simple = simple && items[i].known
		}
		if !simple {
			a.loop(st, func(st *state) {
				a.poison(l.Name.Value, &field{s: "\x00"}, st, assignPlain, a.span(l))
				st.set(l.Name.Value, value{words: []string{"\x00"}, flow: fl})
				a.stmts(c.Do, st)
			}, c)
			return
		}
		m := a.mutations(c)
		if m.moves && len(items) > 1 {
			st.mayBe("")
		}
		before := st.clone()
		for i := range items {
			a.poison(l.Name.Value, &items[i], st, assignPlain, a.span(l))
			st.set(l.Name.Value, value{words: []string{items[i].s}, flow: items[i].flow, glob: items[i].glob})
			if a.stmts(c.Do, st) {
				break
			}
		}
		st.join(before)
		st.unknown(m.names)
	default:
		a.unreadable(a.span(c), "a loop that is not known here")
	}
}

func (a *analysis) caseClause(c *syntax.CaseClause, st *state) (ends bool) {
	a.word(c.Word, st)
	before := st.clone()
	ends, covered := true, false
	var out *state
	for _, item := range c.Items {
		branch := before.clone()
		for _, p := range item.Patterns {
			a.word(p, branch)
			if p.Lit() == "*" {
				covered = true
			}
		}
		if a.stmts(item.Stmts, branch) && item.Op == syntax.Break {
			continue
		}
		ends = false
		if out == nil {
			out = branch
		} else {
			out.join(branch)
		}
	}
	switch {
	case out == nil && covered:
		return ends
	case out == nil:
		*st = *before
	default:
		if !covered {
			out.join(before)
		}
		*st = *out
	}
	return false
}

func (a *analysis) funcDecl(c *syntax.FuncDecl, st *state) {
	var names []string
	if c.Name != nil {
		names = append(names, c.Name.Value)
	}
	for _, n := range c.Names {
		names = append(names, n.Value)
	}
	fn := function{body: c.Body, src: a.src}
	st.own()
	if st.funcs == nil {
		st.funcs = map[string]function{}
	}
	for _, n := range names {
		if known := lookup(n); known != nil || isBuiltin(n) {
			// T3h: later commands of that name would run this instead.
			a.note(High, ShellState, a.span(c), "a function takes the place of the command "+show(n))
		}
		if a.selfCalling(c.Body, n) {
			a.note(Critical, RunCode, a.span(c), "the function "+show(n)+" starts itself again and again (fork bomb)").cannotUndo()
		}
		st.funcs[n] = fn
	}
	body := st.clone()
	body.args, body.argsOK = nil, false
	a.active = append(a.active, names...)
	a.stmt(c.Body, body)
	a.active = a.active[:len(a.active)-len(names)]
}

// selfCalling reports whether a function pipes into itself or starts itself in the background.
func (a *analysis) selfCalling(body *syntax.Stmt, name string) bool {
	bomb, nodes := false, 0
	calls := func(s *syntax.Stmt) bool {
		c, ok := s.Cmd.(*syntax.CallExpr)
		return ok && len(c.Args) > 0 && c.Args[0].Lit() == name
	}
	syntax.Walk(body, func(n syntax.Node) bool {
		nodes++
		switch n := n.(type) {
		case *syntax.BinaryCmd:
			if (n.Op == syntax.Pipe || n.Op == syntax.PipeAll) && calls(n.X) && calls(n.Y) {
				bomb = true
			}
		case *syntax.Stmt:
			if n.Background && calls(n) {
				bomb = true
			}
		}
		return !bomb
	})
	a.spend(nodes / entriesMoved)
	return bomb
}
