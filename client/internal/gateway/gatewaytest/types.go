package gatewaytest

import (
	"embed"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

//go:embed documents/*.ts
var documents embed.FS

// Types are the declarations of a document, in as much of TypeScript as the documents use: interfaces, type aliases, unions,
// literals, arrays, Record and objects within objects.
type Types map[string]shape

// A shape says what is wrong with a decoded JSON value at a place; nil = nothing.
type shape func(at string, v any) error

// Document reads the declarations of S2, S3, S4 or S5.
func Document(name string) Types {
	raw, err := documents.ReadFile("documents/" + strings.ToLower(name) + ".ts")
	if err != nil {
		panic(err) // a name that a test made up
	}
	p := &declarations{types: Types{}}
	for _, w := range tsWord.FindAllString(tsComment.ReplaceAllString(string(raw), ""), -1) {
		p.words = append(p.words, strings.ReplaceAll(w, "'", `"`))
	}
	for len(p.words) > 0 {
		p.declaration()
	}
	return p.types
}

// Check says where a value is not of the type.
func (t Types) Check(name string, v any) error {
	s := t[name]
	if s == nil {
		return fmt.Errorf("the document has no type %s", name)
	}
	return s(name, v)
}

var (
	tsComment = regexp.MustCompile(`//[^\n]*`)
	tsWord    = regexp.MustCompile(`[A-Za-z_]\w*|"[^"]*"|'[^']*'|[{}:?;,|<>=]|\[\]`)
)

type declarations struct {
	words []string
	types Types
}

func (p *declarations) next() string {
	w := p.words[0]
	p.words = p.words[1:]
	return w
}

// take takes the next word if it is w.
func (p *declarations) take(w string) bool {
	found := len(p.words) > 0 && p.words[0] == w
	if found {
		p.words = p.words[1:]
	}
	return found
}

func (p *declarations) declaration() {
	p.take("export")
	switch what, name := p.next(), p.next(); what {
	case "interface":
		p.types[name] = p.one()
	case "type":
		p.next() // =
		p.types[name] = p.union()
		p.take(";")
	default:
		panic("not a declaration: " + what + " " + name)
	}
}

func (p *declarations) union() shape {
	p.take("|")
	all := []shape{p.one()}
	for p.take("|") {
		all = append(all, p.one())
	}
	if len(all) == 1 {
		return all[0]
	}
	return func(at string, v any) error {
		var errs []string
		for _, s := range all {
			err := s(at, v)
			if err == nil {
				return nil
			}
			errs = append(errs, err.Error())
		}
		return fmt.Errorf("%s is none of its union: %s", at, strings.Join(errs, "; "))
	}
}

// one reads a type that is no union.
func (p *declarations) one() shape {
	var s shape
	switch w := p.next(); {
	case w == "{":
		s = p.object()
	case w == "Record":
		p.next() // <string,any> or unknown
		for !p.take(">") {
			p.next()
		}
		s = is[map[string]any]("an object")
	case w == "string":
		s = is[string]("a string")
	case w == "number":
		s = is[float64]("a number")
	case w == "boolean":
		s = is[bool]("true or false")
	case w == "any", w == "unknown":
		s = func(string, any) error { return nil }
	case w == "null":
		s = constant(nil)
	case w == "true":
		s = constant(true)
	case w[0] == '"':
		s = constant(strings.Trim(w, `"`))
	default:
		s = func(at string, v any) error {
			if p.types[w] == nil {
				return fmt.Errorf("the document has no type %s", w)
			}
			return p.types[w](at, v)
		}
	}
	for p.take("[]") {
		s = array(s)
	}
	return s
}

func is[T any](want string) shape {
	return func(at string, v any) error {
		if _, ok := v.(T); !ok {
			return fmt.Errorf("%s: got %T, want %s", at, v, want)
		}
		return nil
	}
}

func constant(want any) shape {
	return func(at string, v any) error {
		if v != want {
			return fmt.Errorf("%s: got %.100v, want %v", at, v, want)
		}
		return nil
	}
}

func array(of shape) shape {
	return func(at string, v any) error {
		list, ok := v.([]any)
		if !ok {
			return fmt.Errorf("%s: got %T, want a list", at, v)
		}
		for i, e := range list {
			if err := of(fmt.Sprintf("%s[%d]", at, i), e); err != nil {
				return err
			}
		}
		return nil
	}
}

// object reads fields up to the closing brace. A value may have more of them: documents grow (R1).
func (p *declarations) object() shape {
	need, may := map[string]shape{}, map[string]shape{}
	for !p.take("}") {
		name, fields := p.next(), need
		if p.take("?") {
			fields = may
		}
		p.next() // :
		fields[name] = p.union()
		_ = p.take(";") || p.take(",")
	}
	return func(at string, v any) error {
		m, ok := v.(map[string]any)
		if !ok {
			return fmt.Errorf("%s: got %T, want an object", at, v)
		}
		for _, name := range slices.Sorted(maps.Keys(need)) {
			if _, ok := m[name]; !ok {
				return fmt.Errorf("%s.%s is missing", at, name)
			}
		}
		for name, s := range all(need, may) {
			if e, ok := m[name]; ok {
				if err := s(at+"."+name, e); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

func all(a, b map[string]shape) map[string]shape {
	both := maps.Clone(a)
	maps.Copy(both, b)
	return both
}
