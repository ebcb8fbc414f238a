package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/tailscale/hujson"

	"sublet/wire/visible"
)

// Arguments validates a call's arguments against the schema of its tool and repairs unambiguous mistakes: a code fence, a
// trailing comma, another common name of an argument, "2" for 2, a string for a list of one, a list of one for its value, null for
// an optional value. Any other mistake is an error that describes what the tool takes, with an example; nothing is guessed.
// Arguments of a tool that is not Closed are repaired only: its server validates them.
func Arguments(spec Spec, args json.RawMessage) (json.RawMessage, error) {
	s := schema{new(jsonschema.Schema)}
	if err := json.Unmarshal(spec.Schema, s.Schema); err != nil {
		s.Schema = new(jsonschema.Schema) // one of an MCP server that is not understood here
	}
	if spec.Closed {
		s.close()
	}
	object, err := Object(args)
	if err != nil {
		return nil, fmt.Errorf("%w; got %s%s", err, visible.Clip(string(args), 100), s.usage(spec))
	}
	fixed, err := s.object(object)
	if err == nil && spec.Closed {
		err = s.validate(fixed)
	}
	if err != nil {
		return nil, fmt.Errorf("arguments: %w%s", err, s.usage(spec))
	}
	return fixed, nil
}

// maxRepaired bounds the arguments in which JSON is repaired, in bytes: the library does not bound how deep they nest.
const maxRepaired = 64 << 10

// maxInvalid bounds the error about an invalid value, in bytes.
const maxInvalid = 300

// Object returns args as the text of one JSON object. It removes a code fence and quotes around the object, trailing commas and comments,
// and returns {} for empty args. The error is for the model.
func Object(args []byte) ([]byte, error) {
	text := bytes.TrimSpace(args)
	if rest, ok := bytes.CutPrefix(text, []byte("```")); ok {
		_, rest, _ = bytes.Cut(rest, []byte("\n")) // the fence may name a language
		text = bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte("```")))
	}
	var quoted string
	if len(text) > 0 && text[0] == '"' && json.Unmarshal(text, &quoted) == nil {
		text = bytes.TrimSpace([]byte(quoted))
	}
	if len(text) == 0 {
		return []byte("{}"), nil // some servers send nothing for a call without arguments
	}
	if len(text) <= maxRepaired && !json.Valid(text) {
		if fixed, err := hujson.Standardize(bytes.Clone(text)); err == nil { // removes trailing commas and comments
			text = fixed
		}
	}
	var any json.RawMessage
	if err := json.Unmarshal(text, &any); err != nil {
		if len(text) > maxRepaired {
			err = fmt.Errorf("%w; mistakes are repaired in at most %d KiB, this is %d", err, maxRepaired>>10, len(text)>>10)
		}
		return nil, fmt.Errorf("arguments: not a JSON object: %w", err)
	}
	if text[0] != '{' {
		return nil, errors.New("arguments: not a JSON object")
	}
	return text, nil
}

// schema is that of a tool's arguments, or of a part of them.
type schema struct{ *jsonschema.Schema }

// close adds what all schemas of built-in tools have in common, so that it is not sent with every request.
func (s schema) close() {
	s.AdditionalProperties = nothing()
	if s.Type == "integer" && s.Minimum == nil {
		s.Minimum = new(float64)
	}
	for _, p := range s.Properties {
		schema{p}.close()
	}
	if s.Items != nil {
		schema{s.Items}.close()
	}
}

func (s schema) validate(args json.RawMessage) error {
	resolved, err := s.Resolve(nil)
	if err != nil {
		return err
	}
	var value any
	if err := json.Unmarshal(args, &value); err != nil {
		return err
	}
	if err := resolved.Validate(value); err != nil {
		text, _ := Bound(withPlace(err.Error()), maxInvalid) // it has the whole value
		return errors.New(text)
	}
	return nil
}

// nothing returns the schema false, as the library reads it.
func nothing() *jsonschema.Schema { return &jsonschema.Schema{Not: &jsonschema.Schema{}} }

// withPlace replaces the schemas that the text of a validator's error begins with, the outermost first, by the place of the value in
// the arguments: "validating /properties/a/items/properties/b: " by "a[].b: ".
func withPlace(text string) string {
	place := ""
	for {
		rest, ok := strings.CutPrefix(text, "validating ")
		if !ok {
			break
		}
		place, text, _ = strings.Cut(rest, ": ")
	}
	if place == "root" {
		return text
	}
	return strings.TrimPrefix(strings.NewReplacer("/properties/", ".", "/items", "[]").Replace(place), ".") + ": " + text
}

// closed reports whether the properties are all the names that there may be.
func (s schema) closed() bool { return reflect.DeepEqual(s.AdditionalProperties, nothing()) }

// otherNames are names that models use for an argument because other programs' tools do.
var otherNames = map[string][]string{
	"path":        {"file_path", "file", "filename", "directory", "dir", "folder"},
	"command":     {"cmd"},
	"background":  {"run_in_background", "is_background"},
	"content":     {"contents", "text", "file_text"},
	"old":         {"old_string", "old_str", "old_text"},
	"new":         {"new_string", "new_str", "new_text"},
	"pattern":     {"regex", "regexp", "query", "glob"},
	"include":     {"glob"},
	"url":         {"uri"},
	"offset":      {"start_line"},
	"timeout_ms":  {"timeout"},
	"ignore_case": {"case_insensitive", "-i"},
	"role":        {"agent", "subagent_type"},
	"title":       {"description", "name"},
	"todos":       {"items"},
	"text":        {"content", "task", "step"},
}

// otherWords are words that models use for one of a list, for the same reason.
var otherWords = map[string][]string{"done": {"completed", "complete"}, "in_progress": {"in progress", "active"}}

// object repairs an object.
func (s schema) object(text json.RawMessage) (json.RawMessage, error) {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(text, &given); err != nil {
		return nil, err
	}
	fixed := map[string]json.RawMessage{}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		value, p := given[key], s.Properties[key]
		if p == nil && s.closed() {
			name := s.standsFor(key, func(own string) bool { return given[own] != nil || fixed[own] != nil })
			if name != "" {
				key, p = name, s.Properties[name]
			}
		}
		if p != nil {
			if s.closed() && (string(value) == "null" || string(value) == `""` && len(p.Enum) > 0) {
				continue
			}
			var err error
			if value, err = (schema{p}).value(value); err != nil {
				return nil, err
			}
		}
		fixed[key] = value
	}
	return marshal(fixed)
}

// marshal is json.Marshal without the escapes for HTML.
func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// standsFor returns the argument that is meant by the unknown name: the only one that is not taken and either is spelled so, apart from
// case, _ and -, or has the name among its otherNames. It returns "" if none or more than one is.
func (s schema) standsFor(name string, taken func(own string) bool) (found string) {
	plain := func(s string) string { return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s)) }
	for own := range s.Properties {
		if taken(own) || plain(own) != plain(name) && !slices.ContainsFunc(otherNames[own], func(o string) bool { return o == name || plain(o) == plain(name) }) {
			continue
		}
		if found != "" {
			return ""
		}
		found = own
	}
	return found
}

// standardWord returns the word of the schema's list that v, another word for it, stands for; else v.
func (s schema) standardWord(v json.RawMessage) json.RawMessage {
	var word string
	if json.Unmarshal(v, &word) != nil || slices.Contains(s.Enum, any(word)) {
		return v
	}
	for own, others := range otherWords {
		if slices.Contains(s.Enum, any(own)) && slices.Contains(others, strings.ToLower(word)) {
			return json.RawMessage(`"` + own + `"`)
		}
	}
	return v
}

// jsonType returns the name that JSON Schema has for the type of a value.
func jsonType(v json.RawMessage) string {
	switch v[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

// value repairs one value.
func (s schema) value(v json.RawMessage) (json.RawMessage, error) {
	if s.Type != "string" {
		v = unquoted(v, s.Type)
	}
	if one := []json.RawMessage(nil); s.Type != "" && s.Type != "array" && v[0] == '[' && json.Unmarshal(v, &one) == nil && len(one) == 1 {
		return s.value(one[0])
	}
	switch got := jsonType(v); {
	case s.Type == "array":
		return s.array(v)
	case s.Type == "object" && got == "object":
		return s.object(v)
	case s.Type == "string" && got == "number":
		return json.Marshal(string(v))
	case s.Type == "string":
		return s.standardWord(v), nil
	case s.Type == "integer" && got == "number":
		if _, ok := new(big.Int).SetString(string(v), 10); ok {
			return v, nil // exactly as it is: a float64 would change a long one
		}
		if n, err := strconv.ParseFloat(string(v), 64); err == nil && n == float64(int64(n)) { // 2.0
			return json.RawMessage(strconv.FormatInt(int64(n), 10)), nil
		}
	}
	return v, nil
}

// unquoted returns the value of type want that is the content of a string, or v itself if there is none.
func unquoted(v json.RawMessage, want string) json.RawMessage {
	var text string
	if json.Unmarshal(v, &text) != nil {
		return v
	}
	text = strings.TrimSpace(text)
	if want == "boolean" {
		text = strings.ToLower(text)
	}
	inner := json.RawMessage(text)
	if !json.Valid(inner) || jsonType(inner) != want && (want != "integer" || jsonType(inner) != "number") {
		return v
	}
	return inner
}

func (s schema) array(v json.RawMessage) (json.RawMessage, error) {
	list := []json.RawMessage{v} // a single value for a list
	if v[0] == '[' {
		if err := json.Unmarshal(v, &list); err != nil {
			return nil, err
		}
	}
	for i := range list {
		if s.Items == nil {
			break
		}
		var err error
		if list[i], err = (schema{s.Items}).value(list[i]); err != nil {
			return nil, err
		}
	}
	return marshal(list)
}

// usage describes a tool's arguments for an error; "" where the schema allows others, as an MCP server's may.
func (s schema) usage(spec Spec) string {
	if !s.closed() {
		return ""
	}
	return fmt.Sprintf("\n%s takes %s. For example: %s", spec.Name, s.fields(), spec.Example)
}

// fields describes the properties with their types, the required ones first.
func (s schema) fields() string {
	var list []string
	for _, name := range slices.SortedFunc(maps.Keys(s.Properties), func(a, b string) int {
		if x, y := slices.Contains(s.Required, a), slices.Contains(s.Required, b); x != y {
			if x {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	}) {
		p := s.Properties[name]
		kind := p.Type
		if kind == "array" && p.Items != nil {
			kind = "list of " + p.Items.Type + "s"
			if p.Items.Type == "object" {
				kind = "list of {" + schema{p.Items}.fields() + "}"
			}
		}
		if !slices.Contains(s.Required, name) {
			kind += ", optional"
		}
		list = append(list, name+" ("+kind+")")
	}
	return strings.Join(list, ", ")
}
