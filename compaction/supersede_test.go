package compaction

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// called is an answer that makes one call, and its result.
func called(id int, tool, args, content string, exit *int) []Item {
	call := Call{ID: fmt.Sprint(id), Tool: tool, Arguments: args}
	return []Item{{Kind: Answer, Calls: []Call{call}}, {Kind: Results, Results: []Result{{CallID: call.ID, Tool: tool, Content: content, ExitCode: exit}}}}
}

func TestSupersede(t *testing.T) {
	zero := 0
	long := strings.Repeat("some output\n", 1000)
	for _, tc := range []struct {
		name       string
		tool       string
		args       [2]string
		exit       *int
		superseded bool
	}{
		{"a file read again", "read", [2]string{`{"path":"a"}`, `{ "path": "a" }`}, nil, true},
		{"another part of it", "read", [2]string{`{"path":"a"}`, `{"path":"a","offset":9}`}, nil, false},
		{"a command run again", "bash", [2]string{`{"command":"go test","description":"x"}`, `{"command":"go test","timeout_ms":9}`}, &zero, true},
		{"another command", "bash", [2]string{`{"command":"go test"}`, `{"command":"go vet"}`}, &zero, false},
		{"one that never ended", "bash", [2]string{`{"command":"go test"}`, `{"command":"go test"}`}, nil, false},
		{"a change", "write", [2]string{`{"path":"a"}`, `{"path":"a"}`}, nil, false},
		{"no object", "read", [2]string{`x`, `x`}, nil, false},
	} {
		items := append([]Item{{Kind: Request, Text: "do"}}, called(1, tc.tool, tc.args[0], long, tc.exit)...)
		items = append(items, called(2, tc.tool, tc.args[1], long, tc.exit)...)
		got := Supersede(items)
		if short := got[2].Results[0].Content; strings.HasPrefix(short, "[superseded: ") != tc.superseded || got[4].Results[0].Content != long || items[2].Results[0].Content != long {
			t.Errorf("%s: got %.60q", tc.name, short)
		}
	}
	// In another folder it is another command, and a file of that name another file.
	items := append([]Item{{Kind: Request, Text: "do"}}, called(1, "bash", `{"command":"ls"}`, long, &zero)...)
	items = append(items, called(2, "bash", `{"command":"cd x"}`, "", &zero)...)
	items[4].Results[0].Cwd = "/x"
	items = append(items, called(3, "bash", `{"command":"ls"}`, long, &zero)...)
	if got := Supersede(items); got[2].Results[0].Content != long {
		t.Errorf("got %.60q in another folder", got[2].Results[0].Content)
	}
}

// A superseded result is shortened however much follows it, unless that would make it longer.
func TestSupersedeIsShorter(t *testing.T) {
	zero := 0
	for _, tc := range []struct {
		size       int // bytes of the result
		superseded bool
	}{{2000, true}, {200, true}, {60, false}} {
		items := append([]Item{{Kind: Request, Text: "do"}}, called(1, "bash", `{"command":"ls"}`, strings.Repeat("x", tc.size), &zero)...)
		items = append(items, called(2, "bash", `{"command":"make"}`, strings.Repeat("x", 40_000), &zero)...)
		items = append(items, called(3, "bash", `{"command":"ls"}`, "y", &zero)...)
		if short := Supersede(items)[2].Results[0].Content; strings.HasPrefix(short, "[superseded: ") != tc.superseded {
			t.Errorf("%d bytes: got %.60q", tc.size, short)
		}
	}
}

// A conversation that grows is sent again from its beginning, which a provider has in its cache: a shortened result stays as it is.
func TestSupersedeChangesOnce(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		items := []Item{{Kind: Request, Text: "do"}}
		for i := range rapid.IntRange(1, 60).Draw(r, "calls") {
			path := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(r, "path")
			items = append(items, called(i, "read", `{"path":"`+path+`"}`, strings.Repeat("x", rapid.IntRange(0, 9000).Draw(r, "size")), nil)...)
		}
		before := Supersede(items[:1])
		for n := 3; n <= len(items); n += 2 {
			got := Supersede(items[:n])
			if !paired(got) || len(got) != n {
				t.Fatalf("got %d items of %d", len(got), n)
			}
			for i := range before {
				if reflect.DeepEqual(got[i], before[i]) {
					continue
				}
				if !reflect.DeepEqual(before[i], items[i]) {
					t.Errorf("item %d changed again", i)
				}
			}
			before = got
		}
	})
}
