package risk

import "strings"

// doRm judges rm, rmdir, unlink and shred.
func (a *analysis) doRm(c *cmdCall) {
	tree := c.has("-r", "-R", "--recursive") || c.name == "rimraf"
	if len(c.operands) == 0 {
		a.note(Medium, Delete, c.span, "deletes files")
		return
	}
	if c.has("--no-preserve-root") {
		a.note(Critical, Delete, c.span, "may delete the root of the machine").cannotUndo()
	}
	if c.name == "rmdir" {
		for i := range c.operands {
			f := &c.operands[i]
			a.touch(Delete, f, c.st, touchOptions{safe: true, verb: "deletes the empty folder"})
		}
		return
	}
	for i := range c.operands {
		f := c.operands[i]
		if tree || !f.known || f.glob {
			a.touch(Delete, &f, c.st, touchOptions{tree: tree})
			continue
		}
		a.touch(Delete, &f, c.st, touchOptions{})
	}
}

// doChmod judges chmod, chown, chgrp and setfacl: wide or recursive changes are hard to undo.
func (a *analysis) doChmod(c *cmdCall) {
	ops := c.operands
	mode := ""
	if !c.has("--reference") {
		if len(ops) == 0 {
			// A mode like -x reads as an option.
			a.note(Medium, Write, c.span, "changes who may do what with files")
			return
		}
		mode = ops[0].s
		ops = ops[1:]
	}
	if len(ops) == 0 && len(c.operands) == 1 {
		ops = c.operands // chmod -x file
	}
	tree := c.has("-R", "-r", "--recursive")
	a.note(Medium, Write, c.span, "changes who may do what with files")
	if c.name == "setcap" {
		a.note(Critical, Privilege, c.span, "lets everybody run a program with rights of root").cannotUndo()
	}
	if strings.Contains(mode, "u+s") || strings.Contains(mode, "+s") || strings.Contains(mode, "g+s") || len(strings.TrimLeft(mode, "0")) == 4 && isDigits(mode) && strings.ContainsAny(strings.TrimLeft(mode, "0")[:1], "4567") {
		a.note(Critical, Privilege, c.span, "lets everybody run a program with its owner's rights").cannotUndo()
	}
	for i := range ops {
		f := &ops[i]
		a.touch(Write, f, c.st, touchOptions{tree: tree, verb: "changes the rights of"})
		p := ""
		if !f.opaque() {
			p = joinPath(c.st.cwd, f.s)
		}
		if p == "" {
			continue
		}
		z := a.zoneOf(p)
		switch {
		case tree && (z == zoneRoot || z == zoneSystem || z == zoneSystemKey || z == zoneHomeTop && (p == a.c.Home || strings.Count(p, "/") <= 2)):
			a.note(Critical, Write, f.span, "changes the rights of everything below "+show(f.s)).cannotUndo()
		case z == zoneCredential && c.name == "chmod":
			if n := len(mode); isDigits(mode) && n >= 3 && (mode[n-1] != '0' || mode[n-2] != '0') {
				a.note(Critical, Secret, f.span, "lets others read "+show(f.s)).cannotUndo()
			}
		case (mode == "777" || mode == "0777" || mode == "666" || mode == "a+rwx" || mode == "o+w" || mode == "a+w") && (z == zoneProject || z == zoneProjectTop):
			a.note(High, Write, f.span, "lets everybody change "+show(f.s))
		}
		if c.name != "chmod" && z != zoneTemp {
			a.note(High, Privilege, f.span, "gives "+show(f.s)+" to another owner")
		}
	}
}

// copyMove judges cp, mv, install and the like: the last operand, or that of -t, is written.
func (a *analysis) copyMove(c *cmdCall, move bool) {
	ops := c.operands
	var to *field
	if o := c.opt("-t", "--target-directory"); o != nil && o.val != nil {
		to = o.val
	} else if len(ops) > 1 {
		to = &ops[len(ops)-1]
		ops = ops[:len(ops)-1]
	}
	var fl flow
	backup := c.has("-n", "--no-clobber", "-b", "--backup", "-i", "--interactive")
	for i := range ops {
		f := &ops[i]
		switch {
		case move:
			a.moveFrom(c, f)
		default:
			a.touch(Read, f, c.st, touchOptions{verb: "copies", tree: c.has("-r", "-R", "-a", "--recursive", "--archive")})
		}
		fl |= a.fileFlow(f, c.st) | f.flow&(flowNet|flowSecret)
		if p := a.pathOf(f, c.st); p != "" && !move && a.zoneOf(p) == zoneCredential {
			fl |= flowSecret
		}
	}
	if to == nil {
		a.note(Medium, Write, c.span, "copies or moves files")
		return
	}
	if move && to.s == "/dev/null" {
		a.note(High, Delete, to.span, "moves files to where they are lost").cannotUndo()
	}
	a.touch(Write, to, c.st, touchOptions{safe: backup, tree: len(ops) > 1})
	if d := a.pathOf(to, c.st); d != "" {
		a.facts.wrote(d, written{flow: fl})
		for i := range ops {
			// Into a folder: the file keeps its name.
			base := ops[i].s[strings.LastIndexByte(ops[i].s, '/')+1:]
			if base == "" || len(ops) > 1 || strings.HasSuffix(to.s, "/") || to.s == "." || to.s == ".." || c.has("-t", "--target-directory") {
				g := *to
				g.s = strings.TrimSuffix(to.s, "/") + "/" + base
				a.touch(Write, &g, c.st, touchOptions{safe: backup})
			}
			if p := a.pathOf(&ops[i], c.st); p != "" {
				if w, ok := a.facts.files[p]; ok {
					a.facts.wrote(d, w)
					a.facts.wrote(d+"/"+base, w)
				} else {
					a.facts.wrote(d+"/"+base, written{flow: fl})
				}
			}
		}
	}
}

// moveFrom judges what a move takes away. Inside the project it is undone by moving back.
func (a *analysis) moveFrom(c *cmdCall, f *field) {
	p := a.pathOf(f, c.st)
	if p == "" || f.opaque() {
		a.touch(Delete, f, c.st, touchOptions{verb: "moves away"})
		return
	}
	switch z := a.zoneOf(p); z {
	case zoneProject, zoneBuild, zoneTemp:
		a.target(Delete, p, true)
		a.note(Medium, Write, f.span, "moves "+show(f.s)).canUndo("move it back")
	case zoneProjectTop, zoneOutside, zoneHomeFile, zoneDot, zoneGuarded:
		a.target(Delete, p, true)
		a.note(High, Delete, f.span, "moves "+show(f.s)+" away, "+grades[z].what)
	default:
		a.touch(Delete, f, c.st, touchOptions{tree: true, verb: "moves away"})
	}
}

func (a *analysis) doLn(c *cmdCall) {
	a.note(Medium, Write, c.span, "makes a link")
	ops := c.operands
	if len(ops) == 0 {
		return
	}
	to := &ops[len(ops)-1]
	if o := c.opt("-t", "--target-directory"); o != nil && o.val != nil {
		to = o.val
	} else if len(ops) == 1 {
		base := ops[0].s[strings.LastIndexByte(ops[0].s, '/')+1:]
		g := ops[0]
		g.s = "./" + base
		to = &g
	}
	a.touch(Write, to, c.st, touchOptions{verb: "links"})
	if len(ops) > 0 {
		src, dst := a.pathOf(&ops[0], c.st), a.pathOf(to, c.st)
		if c.has("-s", "--symbolic") && !strings.HasPrefix(ops[0].s, "/") && dst != "" {
			src = joinPath(dst[:max(1, strings.LastIndexByte(dst, '/'))], ops[0].s)
		}
		if src != "" && dst != "" && src != dst && len(a.facts.links) < 32 {
			a.facts.links = append(a.facts.links, link{from: dst, to: src})
			if z := a.zoneOf(src); z == zoneCredential {
				a.note(High, Secret, ops[0].span, "links to "+show(ops[0].s)+", keys or passwords")
			}
		}
	}
}

func (a *analysis) doDd(c *cmdCall) {
	var fl flow
	for i := range c.fields[1:] {
		f := c.fields[i+1]
		k, v, ok := strings.Cut(f.s, "=")
		if !ok {
			continue
		}
		f.s = v
		switch k {
		case "if":
			a.touch(Read, &f, c.st, touchOptions{})
			fl |= a.fileFlow(&f, c.st)
		case "of":
			a.touch(Write, &f, c.st, touchOptions{})
			a.facts.wrote(a.fileKey(&f, c.st), written{flow: fl | c.st.stdin.flow})
		}
	}
	if c.fields[0].known && len(c.fields) > 1 {
		for i := range c.fields[1:] {
			if c.fields[i+1].opaqueAt(0) {
				a.note(High, Write, c.fields[i+1].span, "copies blocks to a place that is not known here")
			}
		}
	}
	a.note(Low, Read, c.span, "copies blocks")
}

// doTar judges tar: what it writes, and options that run programs.
func (a *analysis) doTar(c *cmdCall) {
	args := c.fields[1:]
	mode := byte(0)
	setMode := func(b byte) {
		switch b {
		case 'c', 'x', 't', 'r', 'u', 'A', 'd':
			if mode == 0 {
				mode = b
			}
		}
	}
	var archive, dir *field
	var files []field
	removes := false
	expect := ""
	bundle := func(s string, from int) {
		for k := from; k < len(s); k++ {
			setMode(s[k])
			if s[k] == 'f' || s[k] == 'C' || s[k] == 'I' || s[k] == 'T' || s[k] == 'X' || s[k] == 'F' {
				if from == 1 && k+1 < len(s) { // -fARCHIVE
					a.tarOption(c, s[k], &field{s: s[k+1:], known: true, span: c.span}, &archive, &dir)
					return
				}
				expect += string(s[k])
			}
		}
	}
	for i := 0; i < len(args); i++ {
		f := &args[i]
		s := f.s
		if expect != "" {
			a.tarOption(c, expect[0], f, &archive, &dir)
			expect = expect[1:]
			continue
		}
		if strings.HasPrefix(s, "--") {
			name, val, has := strings.Cut(s, "=")
			v := *f
			v.s = val
			if !has && i+1 < len(args) {
				v = args[i+1]
			}
			switch {
			case name == "--create":
				setMode('c')
			case name == "--extract" || name == "--get":
				setMode('x')
			case name == "--list":
				setMode('t')
			case name == "--append" || name == "--update" || name == "--concatenate":
				setMode('r')
			case name == "--delete":
				setMode('r')
			case name == "--file":
				archive = &v
				if !has {
					i++
				}
			case name == "--directory":
				dir = &v
				if !has {
					i++
				}
			case strings.HasPrefix(name, "--to-c"), strings.HasPrefix(name, "--use-c"), strings.HasPrefix(name, "--checkpoint-a"), strings.HasPrefix(name, "--rsh"), strings.HasPrefix(name, "--info-s"), strings.HasPrefix(name, "--new-v"), strings.HasPrefix(name, "--rmt"):
				a.runs()
				a.note(High, RunCode, f.span, "tar runs a program")
				v.s = strings.TrimPrefix(v.s, "exec=")
				a.shellText(c, &v, c.st)
				if !has {
					i++
				}
			case strings.HasPrefix(name, "--remove-f"):
				removes = true
				a.note(High, Delete, f.span, "deletes the files that it packed").cannotUndo()
			case strings.HasPrefix(name, "--absolute"):
				a.note(High, Write, f.span, "may write anywhere")
			}
			continue
		}
		if strings.HasPrefix(s, "-") && len(s) > 1 {
			if strings.ContainsRune(s, 'P') && !strings.HasPrefix(s, "-f") {
				a.note(High, Write, f.span, "may write anywhere")
			}
			bundle(s, 1)
			continue
		}
		if i == 0 {
			bundle(s, 0)
			continue
		}
		files = append(files, *f)
	}
	switch mode {
	case 't', 'd':
		a.note(Low, Read, c.span, "lists an archive")
		if archive != nil && archive.s != "-" {
			a.touch(Read, archive, c.st, touchOptions{})
		}
	case 'x':
		a.note(Medium, Write, c.span, "unpacks an archive")
		if archive != nil && archive.s != "-" {
			a.touch(Read, archive, c.st, touchOptions{})
		}
		if dir == nil {
			dir = &field{s: ".", known: true, span: c.span}
		}
		if !strings.HasPrefix(dir.s, "-") && !tarToStdout(args) {
			a.unpack(dir, c.st)
		}
	default:
		if archive != nil && archive.s == "-" && archive.known && mode == 'c' {
			a.note(Low, Read, c.span, "packs an archive to its output")
		} else {
			a.note(Medium, Write, c.span, "packs an archive")
		}
		if archive != nil && archive.s != "-" {
			if strings.Contains(archive.s, ":") && !strings.HasPrefix(archive.s, "/") && !strings.HasPrefix(archive.s, ".") {
				a.note(High, Network, archive.span, "writes the archive on another machine")
				a.facts.send = true
			} else {
				a.touch(Write, archive, c.st, touchOptions{})
			}
		}
		for i := range files {
			a.touch(Read, &files[i], c.st, touchOptions{verb: "packs", tree: true})
			if removes {
				a.touch(Delete, &files[i], c.st, touchOptions{tree: true})
			}
		}
	}
}

func tarToStdout(args []field) bool {
	for i := range args {
		if s := args[i].s; s == "-O" || s == "--to-stdout" || i == 0 && strings.Contains(s, "O") && !strings.Contains(s, "/") {
			return true
		}
	}
	return false
}

func (a *analysis) tarOption(c *cmdCall, o byte, f *field, archive, dir **field) {
	switch o {
	case 'f':
		*archive = f
	case 'C':
		*dir = f
	case 'I', 'F':
		a.runs()
		switch f.s {
		case "gzip", "bzip2", "xz", "zstd", "lz4", "pigz", "pbzip2", "lzip", "zstd -T0", "xz -T0", "zstd -d", "unzstd", "pixz":
		default:
			a.note(High, RunCode, f.span, "tar runs a program")
			a.shellText(c, f, c.st)
		}
	case 'T', 'X':
		a.touch(Read, f, c.st, touchOptions{})
	}
}

// doSort judges sort, less and other readers with an option that writes or runs.
func (a *analysis) doSort(c *cmdCall) {
	if c.name == "less" || c.name == "more" || c.name == "most" {
		files := c.operands[:0:0]
		for i := range c.operands {
			f := c.operands[i]
			if !strings.HasPrefix(f.s, "+") {
				files = append(files, f)
				continue
			}
			// A command for the pager itself: +G, +/text, +!program, +|xprogram
			if k := strings.IndexAny(f.s, "!|"); k >= 0 && !strings.HasPrefix(f.s, "+/") && !strings.HasPrefix(f.s, "+?") {
				a.note(High, RunCode, f.span, show(c.name)+" runs a command")
				f.s = strings.TrimLeft(f.s[k:], "!|")
				a.shellText(c, &f, c.st)
			} else if strings.ContainsAny(f.s, "vso") && !strings.HasPrefix(f.s, "+/") {
				a.note(Medium, Write, f.span, "gives "+show(c.name)+" commands")
			}
		}
		c.operands = files
	}
	a.usual(c)
	for i := range c.opts {
		o := &c.opts[i]
		if o.name == "--compress-program" && o.val != nil || o.name == "--pre" && o.val != nil || o.name == "--hostname-bin" && o.val != nil {
			a.runs()
			switch o.val.s {
			case "gzip", "bzip2", "xz", "zstd", "":
			default:
				a.note(High, RunCode, o.span, show(c.name)+" runs a program for its files")
				a.shellText(c, o.val, c.st)
			}
		}
	}
}

// doInstall judges install: -d makes folders, else it copies.
func (a *analysis) doInstall(c *cmdCall) {
	if o := c.opt("-m", "--mode"); o != nil && o.val != nil {
		if m := strings.TrimLeft(o.val.s, "0"); len(m) == 4 && strings.ContainsAny(m[:1], "4567") || strings.Contains(m, "+s") {
			a.note(Critical, Privilege, o.span, "lets everybody run a program with its owner's rights").cannotUndo()
		}
	}
	if c.has("-d", "--directory") {
		a.note(Medium, Write, c.span, "makes folders")
		for i := range c.operands {
			a.touch(Write, &c.operands[i], c.st, touchOptions{})
		}
		return
	}
	if c.has("--strip-program") {
		a.note(High, RunCode, c.span, "runs a program on what it copies")
	}
	a.copyMove(c, false)
}

// doUnzip judges unpackers of other archives.
func (a *analysis) doUnzip(c *cmdCall) {
	lists := c.name == "lsar" || c.name == "unzip" && c.has("-l", "-t", "-Z", "-v", "-p", "-c", "-z") || c.name == "unsquashfs" && c.has("-l", "-ll", "-s") ||
		c.name == "cabextract" && c.has("-l", "-t", "-p")
	if packsByWord(c.name) && len(c.operands) > 0 && c.operands[0].s != "" {
		lists = strings.IndexByte("ltvpi", c.operands[0].s[0]) >= 0 && c.operands[0].known
	}
	if lists {
		a.note(Low, Read, c.span, "lists or shows an archive")
		return
	}
	a.note(Medium, Write, c.span, "packs or unpacks an archive")
	dir := field{s: ".", known: true, span: c.span}
	for _, name := range []string{"-d", "-output-directory", "-o"} {
		if o := c.opt(name); o != nil && o.val != nil {
			dir = *o.val
			break
		}
	}
	switch c.name {
	case "7z", "7za", "7zr", "7zz":
		for i := range c.fields {
			if f := c.fields[i]; strings.HasPrefix(f.s, "-o") {
				f.s = f.s[2:]
				dir = f
			}
		}
		a.archives(c, 1)
	case "unrar", "rar":
		if n := len(c.operands); n > 2 && strings.HasSuffix(c.operands[n-1].s, "/") {
			dir = c.operands[n-1]
		}
		a.archives(c, 1)
	default:
		a.archives(c, 0)
	}
	a.unpack(&dir, c.st)
}

// packsByWord tells of archivers whose first word says what they do.
func packsByWord(name string) bool {
	switch name {
	case "7z", "7za", "7zr", "7zz", "unrar", "rar":
		return true
	}
	return false
}

// archives judges the first archive, which stands behind skip words.
func (a *analysis) archives(c *cmdCall, skip int) {
	if len(c.operands) > skip {
		a.touch(Read, &c.operands[skip], c.st, touchOptions{})
	}
}

// unpack judges what an archive may hold: any file below dir.
func (a *analysis) unpack(dir *field, st *state) {
	if (a.seen|st.stdin.flow)&flowNet != 0 {
		a.facts.fetchedTree(a.pathOf(dir, st))
	}
	g := *dir
	if g.s != "/" {
		g.s = strings.TrimSuffix(g.s, "/") + "/_"
	}
	a.touch(Write, &g, st, touchOptions{tree: true, verb: "unpacks into"})
}

func (a *analysis) doMktemp(c *cmdCall) {
	a.note(Medium, Write, c.span, "makes a temporary file").canUndo("delete it")
	if o := c.opt("-p", "--tmpdir"); o != nil && o.val != nil && o.val.s != "" {
		a.touch(Write, o.val, c.st, touchOptions{})
		return
	}
	for i := range c.operands {
		if !c.has("-t") {
			a.touch(Write, &c.operands[i], c.st, touchOptions{})
		}
	}
}

// doTouchOnly judges touch, mkdir and mkfifo: they make what was not there, and change nothing else.
func (a *analysis) doTouchOnly(c *cmdCall) {
	a.note(Medium, Write, c.span, c.spec.says).canUndo("delete what was made")
	for i := range c.operands {
		a.touch(Write, &c.operands[i], c.st, touchOptions{verb: "makes"})
	}
}

// doSysctl judges sysctl: a name is read, name=value is written.
func (a *analysis) doSysctl(c *cmdCall) {
	if c.has("-p", "--load", "--system", "-f") {
		a.note(Critical, Write, c.span, "changes settings of the kernel")
		return
	}
	writes := c.has("-w", "--write")
	for i := range c.operands {
		writes = writes || strings.Contains(c.operands[i].s, "=") || !c.operands[i].known
	}
	if writes {
		a.note(High, Write, c.span, "changes settings of the kernel")
		return
	}
	a.note(Low, Read, c.span, "shows settings of the kernel")
}
