package risk

// facts is what a text does as a whole, for findings that no single command has.
type facts struct {
	secret  bool // reads secrets
	send    bool // sends over the network
	fetched bool // reads from the network
	netfd   bool // a descriptor is a network connection
	files   map[string]written
	trees   []string // folders that were filled from the network
	links   []link
}

// written is what this text put into a file.
type written struct {
	flow flow    // where the data came from
	text *string // all of it, when that is known
}

// link is a symbolic link that this text makes; both paths are absolute.
type link struct{ from, to string }

// size grows with every fact that a later command may be judged by.
func (f *facts) size() int {
	n := len(f.files) + len(f.trees) + len(f.links)
	for _, w := range f.files {
		n += int(w.flow)
	}
	if f.netfd {
		n++
	}
	return n
}

func (f *facts) fileFlow(p string) flow {
	fl := f.files[p].flow
	for _, dir := range f.trees {
		if under(p, dir) {
			fl |= flowNet
		}
	}
	return fl
}

// fetchedTree notes that any file below a folder may come from the network.
func (f *facts) fetchedTree(dir string) {
	if dir != "" && len(f.trees) < 32 {
		f.trees = append(f.trees, dir)
	}
}

func (f *facts) wrote(p string, w written) {
	if p == "" || w.flow == 0 && w.text == nil || len(f.files) > 256 {
		return
	}
	if f.files == nil {
		f.files = map[string]written{}
	}
	w.flow |= f.files[p].flow
	f.files[p] = w
}

// combine adds what only several commands together mean.
func (a *analysis) combine(whole Span) {
	a.cmd = -1
	if a.facts.secret && (a.facts.send || a.facts.fetched) {
		a.note(Critical, Secret, whole, "reads secrets and talks to the network: they may leave this machine").cannotUndo()
	}
}

// fileFlow is what a file that a field names was written with earlier in this text.
func (a *analysis) fileFlow(f *field, st *state) flow {
	if !f.known {
		return 0
	}
	return a.facts.fileFlow(a.fileKey(f, st))
}

// fileKey names a file for facts.files: its path, or what is known of it where the folder is not.
func (a *analysis) fileKey(f *field, st *state) string {
	switch p := a.pathOf(f, st); {
	case p != "":
		return p
	case f.known && f.s != "":
		return "?/" + cleanPath(f.s)
	}
	return ""
}

// followLinks replaces a leading symbolic link that this text made (ln -s / x; rm -rf x/).
func (a *analysis) followLinks(p string) string {
	a.spend(len(a.facts.links) / entriesMoved)
	for range 4 {
		hit := false
		for _, l := range a.facts.links {
			if under(p, l.from) {
				p, hit = cleanPath(l.to+p[len(l.from):]), true
				break
			}
		}
		if !hit {
			break
		}
	}
	return p
}
