package risk

import "path"

// AnalyzeFile judges what a file tool would do. Reading is low unless the file holds secrets; writing is judged by where
// the file is (T3o), as a command that writes it would be. Paths have to be absolute with symbolic links resolved; one
// that is not absolute is High. A call of another program's tool is High: nothing is known of what it does, whatever that
// program says of it. An action without any of these has no effects and is low.
func AnalyzeFile(f FileAction, c Context) Verdict {
	a := newAnalysis(c, 0)
	st := a.start()
	each := func(e Effect, p string) {
		word := field{s: p, known: true}
		if !path.IsAbs(p) {
			a.note(High, Unknown, Span{}, "works on "+show(p)+", which is not a whole path")
			return
		}
		a.touch(e, &word, st, touchOptions{})
	}
	a.bounded(Span{}, func() {
		for _, p := range f.Reads {
			each(Read, p)
		}
		for _, p := range f.Writes {
			each(Write, p)
		}
	})
	if f.Network != "" {
		a.host(f.Network)
		a.facts.fetched = true
		if localHost(f.Network) {
			a.note(Medium, Network, Span{}, "asks a server on this machine")
		} else {
			a.note(Medium, Network, Span{}, "fetches from "+show(f.Network))
		}
		if h := hostOf(f.Network); h == "169.254.169.254" || h == "metadata.google.internal" || h == "100.100.100.200" {
			a.facts.secret = true
			a.note(High, Secret, Span{}, "asks the cloud's service for credentials of this machine")
		}
	}
	if f.Server != "" {
		a.note(High, Unknown, Span{}, "calls a tool of the MCP server "+show(f.Server)+": what it does is not known here").cannotUndo()
	}
	v := a.finish(0)
	for i := range v.Reasons {
		v.Reasons[i].Span = nil
	}
	v.Reach = needsFiles(v, f)
	return v
}
