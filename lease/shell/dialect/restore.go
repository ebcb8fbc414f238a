package dialect

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Statements are the texts with which a shell puts its state back. In each of them {name} and {value} stand for quoted words,
// {bare} and {text} for the same without quotes. A shell that has no statement for a kind has nothing of that kind in its State.
type Statements struct {
	Quote     func(text string) string
	Directory string               // {value}
	Umask     string               // {text}
	Export    string               // makes an exported variable {bare} with {value}
	Unset     string               // removes the variable {bare}
	Alias     map[string][2]string // set the alias {name} to {value}, and unset it; by the kind's prefix in State.Aliases
	Function  [2]string            // define the function {name} by {text}, and remove it
	Hashed    [2]string            // run the file {value} as {name}, and do so no more
	Builtin   [2]string            // switch {name} on, and off
	Option    [2]string            // switch {bare} on, and off
	Fixed     *regexp.Regexp       // matches the statement of a variable that cannot be set again; nil = there is none
	Special   map[string]bool      // variables that are set without being unset first: the shell would not treat them specially afterwards
}

func (s Statements) fill(statement, name, value string) string {
	return strings.NewReplacer("{name}", s.Quote(name), "{value}", s.Quote(value), "{bare}", name, "{text}", value).Replace(statement) + "\n"
}

// Restore returns the shell text that restores what differs between before and after. What differs between after and now is left alone,
// since it was changed later. left has the names of what cannot be restored.
func (s Statements) Restore(before, after, now State) (text string, left []string) {
	var b strings.Builder
	if before.Dir != after.Dir && now.Dir == after.Dir {
		b.WriteString(s.fill(s.Directory, "", before.Dir))
	}
	export := func(name, value string) string { return strings.TrimSuffix(s.fill(s.Export, name, value), "\n") }
	eachToUndo(variables(before, export), variables(after, export), variables(now, export), func(name, statement string) {
		if s.Fixed != nil && s.Fixed.MatchString(after.Local[name]) {
			left = append(left, name)
			return
		}
		local := before.Local[name] != "" || after.Local[name] != ""
		if statement == "" || local && !s.Special[name] { // attributes, as of declare -i, end only with the variable
			b.WriteString(s.fill(s.Unset, name, ""))
		}
		if statement != "" {
			b.WriteString(statement + "\n")
		}
	})
	for _, kind := range slices.Sorted(maps.Keys(s.Alias)) {
		of := func(st State) map[string]string {
			m := make(map[string]string)
			for name, value := range st.Aliases {
				// The names of other kinds than "" begin with a word and a blank, as zsh's "-g ".
				if word, ok := strings.CutPrefix(name, kind); ok && (kind != "" || !strings.Contains(name, " ")) {
					m[word] = value
				}
			}
			return m
		}
		s.putBack(&b, of(before), of(after), of(now), s.Alias[kind])
	}
	s.putBack(&b, before.Functions, after.Functions, now.Functions, s.Function)
	s.putBack(&b, before.Hashed, after.Hashed, now.Hashed, s.Hashed)
	off := [2]string{s.Builtin[1], s.Builtin[0]} // what was in Disabled is switched off
	s.putBack(&b, asMap(before.Disabled), asMap(after.Disabled), asMap(now.Disabled), off)
	if before.Umask != after.Umask && now.Umask == after.Umask {
		b.WriteString(s.fill(s.Umask, "", before.Umask))
	}
	s.putBack(&b, asMap(before.Options), asMap(after.Options), asMap(now.Options), s.Option)
	return b.String(), left
}

// putBack writes, for each name of eachToUndo, the first statement if the name had a value before, else the second.
func (s Statements) putBack(b *strings.Builder, before, after, now map[string]string, statements [2]string) {
	eachToUndo(before, after, now, func(name, value string) {
		statement := statements[0]
		if _, had := before[name]; !had {
			statement = statements[1]
		}
		b.WriteString(s.fill(statement, name, value))
	})
}

// eachToUndo calls put, sorted by name, for each name that differs between before and after and has the same value in after and now.
// Autoloaded functions are left out. value is the one in before, "" if there was none.
func eachToUndo(before, after, now map[string]string, put func(name, value string)) {
	c := Compare(before, after, autoloaded(before, after))
	for _, name := range slices.Sorted(slices.Values(slices.Concat(c.Added, c.Changed, c.Removed))) {
		current, here := now[name]
		if result, had := after[name]; here == had && current == result {
			put(name, before[name])
		}
	}
}

func asMap(list []string) map[string]string {
	m := make(map[string]string, len(list))
	for _, name := range list {
		m[name] = ""
	}
	return m
}

// Fields reads the state that an integration script wrote: fields that end with NUL. Err is set if one is missing.
type Fields struct {
	list []string
	Err  error
}

// NewFields returns a reader of text.
func NewFields(text []byte) *Fields { return &Fields{list: strings.Split(string(text), "\x00")} }

// Next returns the next field. Without one it sets Err and returns "".
func (f *Fields) Next() (field string) {
	if !f.More() {
		f.Err = fmt.Errorf("the shell's state is incomplete")
		return ""
	}
	field, f.list = f.list[0], f.list[1:]
	return field
}

// More reports whether there is a next field. What follows the last NUL is not one.
func (f *Fields) More() bool { return len(f.list) > 1 }

// List reads a list: a field with the count, and as many fields. It sets Err if they are not all there.
func (f *Fields) List() (list []string) {
	var n int
	if _, err := fmt.Sscan(f.Next(), &n); err != nil || n < 0 || n >= len(f.list) {
		f.Err = fmt.Errorf("the shell's state is incomplete")
		return nil
	}
	list, f.list = f.list[:n:n], f.list[n:]
	return list
}

// Map adds a table to m: a count, so many names, and as many values. The names get a prefix.
func (f *Fields) Map(m map[string]string, prefix string) {
	names := f.List()
	for _, name := range names {
		m[prefix+name] = f.Next()
	}
}

// Sorted returns a list in the order of its words.
func (f *Fields) Sorted() []string { return slices.Sorted(slices.Values(f.List())) }

// Hashed returns which names of a shell's hash table run as another file than PATH finds.
func Hashed(table map[string]string, path string) map[string]string {
	maps.DeleteFunc(table, func(name, file string) bool {
		return slices.Contains(filepath.SplitList(path), filepath.Dir(file)) && filepath.Base(file) == name
	})
	return table
}
