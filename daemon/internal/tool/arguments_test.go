package tool

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// What a model meant is taken where it can mean only one thing. Models of other programs' tools, and small ones, write all of these.
func TestArgumentsWithOneMeaning(t *testing.T) {
	for _, tc := range []struct {
		tool       Tool
		args, want string
	}{
		{Read(), `{"path":"a","limit":2}`, `{"path":"a","limit":2}`},
		{Read(), `{"path":"a","limit":"2","offset":" 3 "}`, `{"path":"a","limit":2,"offset":3}`},
		{Read(), `{"path":"a","limit":2.0}`, `{"path":"a","limit":2}`},
		{Read(), `{"file_path":"a"}`, `{"path":"a"}`},
		{Read(), `{"filePath":"a","limit":null}`, `{"path":"a"}`},
		{Read(), "```json\n{\"path\":\"a,]\",}\n```", `{"path":"a,]"}`},
		{Read(), `"{\"path\":\"a\"}"`, `{"path":"a"}`},
		{Edit(), `{"file_path":"a","old_string":"x","newString":"y","replace_all":"True"}`, `{"path":"a","old":"x","new":"y","replace_all":true}`},
		{Grep(), `{"pattern":404,"glob":"*.go"}`, `{"pattern":"404","include":"*.go"}`},
		{Grep(), `{"glob":"*.go"}`, ``}, // pattern, or include?
		{Read(), `{"path":["a.txt"],"limit":["2"]}`, `{"path":"a.txt","limit":2}`},
		{Read(), `{"path":["a.txt","b.txt"]}`, ``},
		{Bash(1e9, 2e9), `{"command":"make","timeout":500}`, `{"command":"make","timeout_ms":500}`},
		{Bash(1e9, 2e9), `{"command":"make","timeout":500,"timeout_ms":600}`, ``},
		{Grep(), `{"pattern":404,"include":"*.go"}`, `{"pattern":"404","include":"*.go"}`},
		{Grep(), `{"pattern":"x","mode":""}`, `{"pattern":"x"}`}, // of a model that fills in every argument
		{Task("reviewer: reads"), `{"tasks":{"agent":"reviewer","prompt":"look"}}`, `{"tasks":[{"role":"reviewer","prompt":"look"}]}`},
		{Task("reviewer: reads"), `{"tasks":"[{\"role\":\"reviewer\",\"prompt\":\"look\"}]"}`, `{"tasks":[{"role":"reviewer","prompt":"look"}]}`},
		{Task("reviewer: reads"), `{"tasks":[{"role":"reviewer"}]}`, ``},
		{Task("reviewer: reads"), `{"description":"a look","subagent_type":"reviewer","prompt":"look"}`, `{"title":"a look","role":"reviewer","prompt":"look"}`},
		{Bash(1e9, 2e9), `{"command":"make","run_in_background":true}`, `{"command":"make","background":true}`},
		{Todo(), `{"todos":[{"content":"look","status":"completed"}]}`, `{"todos":[{"text":"look","status":"done"}]}`},
		{Todo(), `{"todos":[{"text":"look","status":"perhaps"}]}`, ``},
		{Write(), `{"path":"a","content":"` + "```go\\n{1,}\\n```" + `"}`, `{"path":"a","content":"` + "```go\\n{1,}\\n```" + `"}`},
	} {
		got, err := Arguments(tc.tool.Spec(), json.RawMessage(tc.args))
		if tc.want == "" {
			if err == nil || !strings.Contains(err.Error(), tc.tool.Spec().Name+" takes ") || !strings.Contains(err.Error(), "For example: {") {
				t.Errorf("%s: got %s, %v; want an error that says what is right", tc.args, got, err)
			}
			continue
		}
		if err != nil || !sameJSON(got, tc.want) {
			t.Errorf("%s:\ngot  %s, %v\nwant %s", tc.args, got, err, tc.want)
		}
	}
}

// The answer to a wrong object of a list described neither the object's fields nor showed one, and named its place by the schema's.
func TestMistakeInAnObjectOfAList(t *testing.T) {
	for _, tc := range []struct {
		tool        Tool
		args, where string
		usage       string
	}{
		{Read(), `{"path":"a","ranges":[{"limit":3}]}`, `arguments: ranges[]: required: missing properties: ["offset"]`, "ranges (list of {offset (integer), limit (integer, optional)}, optional)"},
		{Read(), `{"path":"a","ranges":[{"offset":1,"limit":"x"}]}`, "arguments: ranges[].limit: type: ", `"ranges":[{"offset":`},
		{Read(), `{"path":"a","limit":"x"}`, "arguments: limit: type: ", "limit (integer, optional)"},
		{Edit(), `{"path":"a","edits":[{"old":"x"}]}`, "arguments: edits[]: ", "edits (list of {new (string), old (string), replace_all (boolean, optional)}, optional)"},
		{Todo(), `{"todos":[{"text":"x","status":"validating /a: b"}]}`, "arguments: todos[].status: enum: validating /a: b does", "todos (list of {status (string), text (string)}, optional)"},
		{Task("reviewer: reads"), `{"tasks":[{"role":"reviewer"}]}`, "arguments: tasks[]: ", `For example: {"tasks":[{"role":"reviewer",`},
		{Plan(), `{"items":[{"a":1}]}`, "arguments: items[]: type: ", "items (list of strings)"},
	} {
		_, err := Arguments(tc.tool.Spec(), json.RawMessage(tc.args))
		if err == nil || !strings.HasPrefix(err.Error(), tc.where) || !strings.Contains(err.Error(), tc.usage) {
			t.Errorf("%s: got %v, want %q, and %q", tc.args, err, tc.where, tc.usage)
		}
	}
}

// sameJSON reports whether two texts are the same JSON, whatever the order of names; numbers are compared as they are written.
func sameJSON(got json.RawMessage, want string) bool {
	var values [2]any
	for i, text := range []string{string(got), want} {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if d.Decode(&values[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}

// A model that sends the same again needs to know why what was repaired in a short call is not in a long one.
func TestLongArgumentsAreNotRepaired(t *testing.T) {
	_, err := Arguments(Write().Spec(), json.RawMessage(`{"path":"a","content":"`+strings.Repeat("x", maxRepaired)+`",}`))
	wantErr(t, err, "mistakes are repaired in at most 64 KiB, this is 64")
}

// A schema that lets other arguments in is its server's to judge: nothing is renamed, dropped or asked for.
func TestArgumentsOfAnOpenSchema(t *testing.T) {
	spec := Spec{Name: "mcp", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"n":{"type":"integer"},"any":{"type":["string","null"]},` +
		`"state":{"type":"string","enum":["active","in_progress","done","completed"]}},"required":["path"]}`)}
	open := Spec{Name: "mcp", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"additionalProperties":true}`)}
	if got, err := Arguments(open, json.RawMessage(`{"file":"a","path":null}`)); err != nil || !sameJSON(got, `{"file":"a","path":null}`) {
		t.Errorf("additionalProperties true: got %s, %v", got, err)
	}
	for args, want := range map[string]string{
		`{"file_path":"a","any":null}`: `{"file_path":"a","any":null}`,
		`{"path":"a","n":"4",}`:        `{"path":"a","n":4}`,
		`{"n":1234567890123456789}`:    `{"n":1234567890123456789}`,
		`{"n":"-1234567890123456789"}`: `{"n":-1234567890123456789}`,
		`{"n":18446744073709551615}`:   `{"n":18446744073709551615}`,
		`{"state":"completed"}`:        `{"state":"completed"}`, // not done, which is another of its words
		`{"state":"active"}`:           `{"state":"active"}`,
	} {
		if got, err := Arguments(spec, json.RawMessage(args)); err != nil || !sameJSON(got, want) {
			t.Errorf("%s: got %s, %v; want %s", args, got, err, want)
		}
	}
}

// The example that a tool gives is right.
func TestExamples(t *testing.T) {
	for _, tl := range []Tool{Bash(1e9, 2e9), Read(), Write(), Edit(), Glob(), Grep(), Fetch(), Task("reviewer: reads"), Todo()} {
		spec := tl.Spec()
		if got, err := Arguments(spec, json.RawMessage(spec.Example)); err != nil || !sameJSON(got, spec.Example) {
			t.Errorf("%s: got %s, %v", spec.Name, got, err)
		}
	}
}

func FuzzArguments(f *testing.F) {
	f.Add(`{"path":"a","limit":"2",}`)
	f.Add("```\n{\"edits\":[{}]}```")
	f.Fuzz(func(t *testing.T, args string) {
		for _, tl := range []Tool{Read(), Task("a: b"), Grep()} {
			got, err := Arguments(tl.Spec(), json.RawMessage(args))
			if err != nil {
				continue
			}
			again, err := Arguments(tl.Spec(), got)
			if err != nil || string(again) != string(got) {
				t.Errorf("%q became %s, and that %s, %v", args, got, again, err)
			}
		}
	})
}
