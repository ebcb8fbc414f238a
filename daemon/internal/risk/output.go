package risk

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"path"
	"slices"
	"strings"

	"sublet/daemon/internal/risk/bashread"
	"sublet/daemon/internal/risk/programs"
)

// prints returns what a command that was just judged prints, where that needs no running: the usual parts of commands that
// models write.
func (a *analysis) prints(c *call) (out bashread.Output) {
	args := c.fields[1:]
	in := c.st.Stdin
	known := !slices.ContainsFunc(args, func(f field) bool { return f.Opaque() || f.Glob })
	switch c.name {
	case "date", "whoami", "nproc", "uname", "hostname", "arch", "id", "wc":
		return bashread.Output{Text: ref(tamePart)}
	case "cat", "tee", "head", "tail", "sort", "uniq", "shuf", "grep", "egrep", "fgrep":
		if c.name == "tee" || c.name == "cat" && (len(args) == 0 || len(args) == 1 && args[0].S == "-") {
			return in
		}
		if !c.has("-o", "-n", "-c", "-l", "-H", "-h") || slices.Contains([]string{"head", "tail", "sort"}, c.name) {
			out.List = in.List // whole lines, some of them
		}
	case "pwd":
		if c.st.Cwd != "" && len(c.st.Alts) == 0 {
			out.Text = ref(c.st.Cwd)
		}
	case "base64", "base32", "xxd", "rev", "tr":
		if text := in.Plain(); text != nil && known {
			a.Spend(1 + len(*text)/bashread.BytesParsed)
			out.Text = decoded(c, *text)
		}
	case "git", "find", "fd", "ls", "rg":
		out.List = a.listed(c)
	}
	if known && out.Text == nil {
		out.Text = a.computed(c, args)
	}
	if out.Text != nil {
		a.Spend(len(*out.Text) / bashread.BytesCopied)
	}
	return out
}

// computed returns what a command with known words prints, where that follows from them.
func (a *analysis) computed(c *call, args []field) *string {
	n := len(args)
	switch c.name {
	case "echo":
		return echoed(args)
	case "printf":
		return printfText(args)
	case "mktemp":
		if !c.has("-p", "--tmpdir") && (len(c.operands) == 0 || strings.HasPrefix(c.operands[0].S, "/tmp/")) {
			return ref("/tmp/tmp." + tamePart)
		}
	case "basename":
		if n == 1 && args[0].S != "" {
			return ref(path.Base(args[0].S))
		}
	case "dirname":
		if n == 1 {
			return ref(path.Dir(args[0].S))
		}
	case "realpath", "readlink":
		if len(c.operands) == 1 && (c.name == "realpath" || c.has("-f", "-m")) && bashread.Path(&c.operands[0], c.st) != "" {
			return ref(bashread.Path(&c.operands[0], c.st))
		}
	case "command", "which":
		if n > 0 && programs.Lookup(args[n-1].S) != nil && (c.name == "which" || args[0].S == "-v") {
			return &args[n-1].S
		}
	case "git":
		if bashread.Join(args, c.span).S == "rev-parse --show-toplevel" && under(c.st.Cwd, a.c.ProjectRoot) {
			return ref(a.c.ProjectRoot)
		}
	}
	return nil
}

func ref(s string) *string { return &s }

// listed returns a pattern of the paths that a program lists, "" where that is not known.
func (a *analysis) listed(c *call) string {
	other := slices.ContainsFunc(c.fields[1:], func(f field) bool {
		return !f.Known && !f.Glob || strings.HasPrefix(f.S, "-exec") || strings.HasPrefix(f.S, "-printf")
	})
	switch {
	case c.name == "git" && (c.sub() == "ls-files" || c.has("--name-only")):
		return cmpOr(a.c.ProjectRoot, cmpOr(c.st.Cwd, ".")) + "/*"
	case c.name == "git", other, c.name == "rg" && !c.has("-l", "--files"), c.name == "ls" && c.has("-l", "-a", "-i", "-s"):
		return ""
	}
	root, pick := ".", "*"
	roots := 0
	for i, f := range c.fields[1:] {
		switch {
		case f.S == "-name" && i+2 < len(c.fields):
			pick = strings.ReplaceAll(c.fields[i+2].S, "/", "*")
		case c.name == "find" && (f.S == "" || strings.IndexByte("-(!", f.S[0]) >= 0):
			if roots == 0 {
				roots = 1
			}
		case c.name == "find" && i < 1, c.name == "ls" && !strings.HasPrefix(f.S, "-"):
			root = f.S
			roots++
		}
	}
	if roots > 1 {
		return ""
	}
	return strings.TrimRight(root, "/") + "/" + pick
}

func echoed(args []field) *string {
	escapes := false
	for len(args) > 0 && slices.Contains([]string{"-n", "-e", "-ne", "-en"}, args[0].S) {
		escapes = escapes || strings.Contains(args[0].S, "e")
		args = args[1:]
	}
	s := bashread.Join(args, Span{}).S
	if escapes {
		s = bashread.AnsiC(s)
	}
	return &s
}

// printfText formats where only %s, %d and the like are used.
func printfText(args []field) *string {
	if len(args) > 0 && args[0].S == "--" {
		args = args[1:]
	}
	if len(args) == 0 || args[0].S == "-v" {
		return nil
	}
	format, rest := bashread.AnsiC(args[0].S), args[1:]
	var b strings.Builder
	for round := 0; round == 0 || len(rest) > 0 && round < 64; round++ {
		used := false
		for i := 0; i < len(format); i++ {
			if format[i] != '%' || i+1 == len(format) {
				b.WriteByte(format[i])
				continue
			}
			switch i++; format[i] {
			case '%':
				b.WriteByte('%')
			case 's', 'd', 'b', 'i':
				if used = true; len(rest) > 0 {
					s := rest[0].S
					if format[i] == 'b' {
						s = bashread.AnsiC(s)
					}
					b.WriteString(s)
					rest = rest[1:]
				}
			default:
				return nil
			}
		}
		if !used {
			break
		}
	}
	return ref(b.String())
}

// decoded undoes what is used to hide a command from a reader: base64 -d, xxd -r -p, rev, tr with two plain sets.
func decoded(c *call, in string) *string {
	compact := strings.Join(strings.Fields(in), "")
	var out []byte
	var err error
	switch {
	case c.name == "base64" && c.has("-d", "-D", "--decode"):
		out, err = base64.StdEncoding.DecodeString(compact)
	case c.name == "base32" && c.has("-d", "--decode"):
		out, err = base32.StdEncoding.DecodeString(compact)
	case c.name == "xxd" && c.has("-r", "-rp"):
		out, err = hex.DecodeString(compact)
	case c.name == "rev":
		for line := range strings.Lines(in) {
			r := []rune(strings.TrimSuffix(line, "\n"))
			slices.Reverse(r)
			out = append(out, string(r)+"\n"...)
		}
	case c.name == "tr" && len(c.operands) == 2 && len(c.opts) == 0:
		from, to := ranges(c.operands[0].S), ranges(c.operands[1].S)
		if from == "" || to == "" {
			return nil
		}
		out = []byte(in)
		for i, b := range out {
			if k := strings.IndexByte(from, b); k >= 0 {
				out[i] = to[min(k, len(to)-1)]
			}
		}
	}
	if err != nil || len(out) == 0 || len(out) > MaxText {
		return nil
	}
	return ref(string(out))
}

// ranges writes out a-z in a set of tr.
func ranges(s string) string {
	var b strings.Builder
	for i := 0; i < len(s) && b.Len() < 512; i++ {
		end := s[i]
		if i+2 < len(s) && s[i+1] == '-' && s[i] < s[i+2] {
			end = s[i+2]
		}
		for c := int(s[i]); c <= int(end); c++ {
			b.WriteByte(byte(c))
		}
		if end != s[i] {
			i += 2
		}
	}
	return b.String()
}
