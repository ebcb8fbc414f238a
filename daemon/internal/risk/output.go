package risk

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"

	"sublet/daemon/internal/risk/bashread"
)

// prints returns what a command that was just judged prints, as far as that follows from its words and its input. It knows the
// programs that models often use inside $(…) and before a pipe. tamePart stands for unknown text without slash and blank.
func (a *analysis) prints(c *call) (out bashread.Output) {
	if c.spec == nil { // a function, or a program that is not known
		return out
	}
	args := c.fields[1:]
	in := c.st.Stdin
	known := !slices.ContainsFunc(args, func(f field) bool { return f.Opaque() || f.Glob })
	switch c.name {
	case "date", "whoami", "nproc", "uname", "hostname", "arch", "id", "wc":
		return bashread.Output{Text: new(tamePart)} // a number or a name, about which no more matters
	case "cat", "tee", "head", "tail", "sort", "uniq", "shuf", "grep", "egrep", "fgrep":
		if c.name == "tee" || c.name == "cat" && (len(args) == 0 || len(args) == 1 && args[0].S == "-") {
			return in
		}
		if !c.has("-o", "-n", "-c", "-l", "-H", "-h") || slices.Contains([]string{"head", "tail", "sort"}, c.name) && !c.has("-c", "--bytes") {
			out.List = in.List // some of its lines: of head, tail and sort these options do not change what a line is
		}
	case "pwd":
		if c.st.Cwd != "" && len(c.st.Alts) == 0 {
			out.Text = new(c.st.Cwd)
		}
	case "base64", "base32", "xxd", "rev", "tr":
		return bashread.Output{Flow: bashread.Decoded}
	case "find":
		out.List = c.list
	case "git", "rg", "ls", "fd":
		names := map[string]bool{"git": c.sub() == "ls-files" || c.has("--name-only"), "rg": c.has("-l", "--files"), "ls": !c.has("-l", "-i", "-s", "-a"), "fd": true}
		if names[c.name] && !c.has("-C") { // it prints nothing else
			roots := slices.DeleteFunc(slices.Clone(c.operands), func(f field) bool { return f.S == "." }) // of fd it is a pattern
			out.List = listed(append(roots, field{S: ".", Known: true}), "")
		}
	}
	if known && out.Text == nil {
		out.Text = a.computed(c, args)
	}
	if out.Text != nil {
		a.Spend(len(*out.Text) / bashread.BytesCopied)
	}
	return out
}

// computed returns what a command prints whose words are all known, or nil if they do not decide it.
func (a *analysis) computed(c *call, args []field) *string {
	switch c.name {
	case "echo":
		return echoed(args)
	case "printf":
		return printfText(args)
	case "mktemp":
		// A template in a folder of /tmp, too, counts as a file directly in it: both are temporary.
		switch _, changed := c.st.Var("TMPDIR"); {
		case c.has("-p", "--tmpdir"):
		case len(c.operands) > 0 && strings.HasPrefix(c.operands[0].S, "/tmp/"):
			return new("/tmp/tmp." + tamePart)
		case len(c.operands) == 0 && !changed:
			return new(path.Join(cmp.Or(a.c.Env["TMPDIR"], "/tmp"), "tmp."+tamePart))
		}
	case "git":
		if bashread.Join(args, c.span).S == "rev-parse --show-toplevel" && a.c.ProjectRoot != "" && c.st.Cwd == a.c.Cwd { // elsewhere it may be a submodule's
			return new(a.c.ProjectRoot)
		}
	}
	return nil
}

// echoed returns what echo prints for args in bash, where a first word such as -ne is an option.
func echoed(args []field) *string {
	escapes, end := false, "\n"
	for len(args) > 0 && slices.Contains([]string{"-n", "-e", "-ne", "-en"}, args[0].S) {
		escapes = escapes || strings.Contains(args[0].S, "e")
		if strings.Contains(args[0].S, "n") {
			end = ""
		}
		args = args[1:]
	}
	s := bashread.Join(args, Span{}).S
	if escapes {
		s = bashread.AnsiC(s)
	}
	return new(s + end)
}

// printfText returns what printf prints, or nil if the format has more than %s, %d and the like. 64 rounds of the format are enough.
func printfText(args []field) *string {
	if len(args) == 0 || strings.HasPrefix(args[0].S, "-") || expr("printf-odd").MatchString(args[0].S) {
		return nil
	}
	words := []string{}
	for _, f := range args[1:] {
		words = append(words, f.S)
	}
	text := ""
	for round := 0; round == 0 || len(words) > 0 && round < 64; round++ {
		s, n, err := expand.Format(&expand.Config{}, strings.NewReplacer("%d", "%s", "%i", "%s").Replace(args[0].S), words)
		if text += s; err != nil || n == 0 {
			break
		}
		words = words[n:]
	}
	return &text
}
