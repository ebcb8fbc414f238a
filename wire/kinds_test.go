package wire_test

import (
	"encoding/hex"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sublet/wire"
)

// Every struct of the package that calls itself a message is in the table of kinds, under the name of its type.
// B15: client and daemon have one table.
func TestEveryMessageIsRegistered(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var messages []string // the structs of the package that are messages, and no part of others
	embedded := []string{"Event", "LeaseRef", "RequestID"}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			name := ""
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Name.Name == "isMessage" {
					name = n.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name
				}
			case *ast.TypeSpec:
				s, ok := n.Type.(*ast.StructType)
				if ok && len(s.Fields.List) > 0 && s.Fields.List[0].Names == nil {
					name = n.Name.Name
				}
			}
			if ast.IsExported(name) && !slices.Contains(embedded, name) {
				messages = append(messages, name)
			}
			return true
		})
	}
	kinds := wire.Kinds()
	slices.Sort(kinds)
	slices.Sort(messages)
	if !slices.Equal(kinds, messages) {
		t.Errorf("registered: %v\n   in code: %v", kinds, messages)
	}
	for _, k := range kinds {
		m, ok := wire.New(k)
		if !ok || wire.KindOf(m) != k {
			t.Errorf("New(%s): got a %T that calls itself %s", k, m, wire.KindOf(m))
		}
		if wire.Directions(k) == 0 {
			t.Errorf("%s goes in no direction", k)
		}
	}
	if _, ok := wire.New("Future"); ok || wire.Directions("Future") != 0 {
		t.Error("an unknown kind is known")
	}
}

// A14: every field travels always, under a snake_case name; units are in the name.
func TestEveryFieldHasATag(t *testing.T) {
	seen := map[reflect.Type]bool{}
	snake := regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	var look func(t2 reflect.Type)
	look = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			look(typ.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		if seen[typ] || typ == reflect.TypeFor[wire.Chunk]() || typ == reflect.TypeFor[wire.Envelope]() {
			return
		}
		seen[typ] = true
		for i := range typ.NumField() {
			f := typ.Field(i)
			tag := f.Tag.Get("msgpack")
			switch {
			case f.Anonymous && f.Type.Kind() == reflect.Struct:
			case !snake.MatchString(tag):
				t.Errorf("%s.%s: tag %q is not snake_case alone (no omitempty)", typ, f.Name, tag)
			case strings.HasSuffix(tag, "_base64"):
				t.Errorf("%s.%s: %q would clash with the JSON view", typ, f.Name, tag)
			case len(tag) > 31:
				t.Errorf("%s.%s: %q is over 31 bytes", typ, f.Name, tag)
			case strings.HasSuffix(f.Name, "MS") != strings.HasSuffix(tag, "_ms"):
				t.Errorf("%s.%s: name and tag %q differ in their unit", typ, f.Name, tag)
			}
			look(f.Type)
		}
	}
	for _, k := range wire.Kinds() {
		m, _ := wire.New(k)
		look(reflect.TypeOf(m).Elem())
		if slices.Contains(fieldNames(reflect.TypeOf(m).Elem()), "kind") {
			t.Errorf("%s has a field kind, which the JSON view needs", k)
		}
		if _, ok := reflect.TypeOf(m).Elem().FieldByName("RequestID"); wire.IsRequest(k) && !ok {
			t.Errorf("request %s has no request_id", k)
		}
	}
}

// PROTOCOL.md has a section for every kind with every field of it, and every error code.
func TestProtocolIsComplete(t *testing.T) {
	page, err := os.ReadFile("PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, s := range strings.Split(string(page), "\n### ")[1:] {
		title, body, _ := strings.Cut(s, "\n")
		body, _, _ = strings.Cut(body, "\n## ")
		for name := range strings.SplitSeq(title, ",") {
			name, _, _ = strings.Cut(strings.Trim(name, " `"), " ")
			sections[strings.Trim(name, "`")] = body
		}
	}
	has := func(where, what string) bool { return strings.Contains(sections[where], "`"+what+"`") }
	event, ref := fieldNames(reflect.TypeFor[wire.Event]()), fieldNames(reflect.TypeFor[wire.LeaseRef]())
	for _, n := range event {
		if !has("Event", n) {
			t.Errorf("Event lacks field %s", n)
		}
	}
	for _, n := range ref {
		if !has("LeaseRef", n) {
			t.Errorf("LeaseRef lacks field %s", n)
		}
	}
	checked := map[reflect.Type]bool{}
	var check func(name string, typ reflect.Type)
	check = func(name string, typ reflect.Type) {
		if checked[typ] {
			return
		}
		checked[typ] = true
		if _, ok := sections[name]; !ok {
			t.Errorf("no section for %s", name)
			return
		}
		for i := range typ.NumField() {
			f := typ.Field(i)
			switch {
			case f.Anonymous && f.Type.Kind() == reflect.Struct:
				if !strings.Contains(sections[name], f.Type.Name()) {
					t.Errorf("%s does not say that it carries %s", name, f.Type.Name())
				}
				continue
			case typ == reflect.TypeFor[wire.Chunk]():
			case !has(name, f.Tag.Get("msgpack")):
				t.Errorf("%s lacks field %s", name, f.Tag.Get("msgpack"))
			}
			inner := f.Type
			for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice || inner.Kind() == reflect.Map {
				inner = inner.Elem()
			}
			if inner.Kind() == reflect.Struct && inner != reflect.TypeFor[wire.Envelope]() {
				check(inner.Name(), inner)
			}
		}
	}
	for _, k := range wire.Kinds() {
		m, _ := wire.New(k)
		check(k, reflect.TypeOf(m).Elem())
		arrow := map[wire.Direction]string{wire.ToDaemon: "→", wire.ToClient: "←", wire.Both: "↔"}[wire.Directions(k)]
		if !strings.Contains(string(page), arrow+" | `"+k+"`") && !strings.Contains(string(page), "`"+k+"` | "+arrow) {
			t.Errorf("the table of kinds lacks `%s` | %s", k, arrow)
		}
	}
	for _, code := range wire.Codes() {
		if !strings.Contains(string(page), "| `"+code+"` |") {
			t.Errorf("no row for error code %s", code)
		}
	}
}

// The examples of PROTOCOL.md are what this package writes and what wire/testdata holds.
func TestProtocolExamples(t *testing.T) {
	page, err := os.ReadFile("PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	frame, err := wire.AppendFrame(nil, &wire.Heartbeat{Nonce: 1, AtMS: 2})
	if err != nil {
		t.Fatal(err)
	}
	if squeezed := strings.Join(strings.Fields(string(page)), ""); !strings.Contains(squeezed, hex.EncodeToString(frame)) {
		t.Errorf("the Heartbeat of section 3 should be % x", frame)
	}
	program, err := os.ReadFile(filepath.Join("testdata", "client.py"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```python\n"+string(program)+"```\n") {
		t.Error("section 14 is not testdata/client.py")
	}
}

// The version in force is the newest that both ends speak.
func TestNegotiate(t *testing.T) {
	for _, c := range []struct {
		low, high, ownLow, ownHigh int
		want                       int
		ok                         bool
	}{
		{1, 1, 1, 1, 1, true},
		{1, 5, 1, 1, 1, true},
		{1, 2, 1, 3, 2, true},
		{2, 3, 1, 2, 2, true},
		{2, 3, 1, 1, 0, false},
		{1, 2, 3, 4, 0, false},
		{0, 0, 1, 1, 0, false},
		{3, 2, 1, 4, 0, false}, // no range
	} {
		if got, ok := wire.NegotiateRanges(c.low, c.high, c.ownLow, c.ownHigh); ok != c.ok || ok && got != c.want {
			t.Errorf("%d to %d with %d to %d: got %d, %v, want %d, %v", c.low, c.high, c.ownLow, c.ownHigh, got, ok, c.want, c.ok)
		}
	}
}
