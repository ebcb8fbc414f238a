package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"sublet/wire"
)

// schemaTries is how often an invalid answer is asked for again.
const schemaTries = 2

// outputSchema is the JSON Schema of an answer.
type outputSchema struct {
	text     string
	resolved *jsonschema.Resolved
}

// readSchema reads a JSON Schema from a file.
func readSchema(path string) (*outputSchema, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s, err := parseSchema(text)
	if err != nil {
		return nil, fmt.Errorf("%s: not a JSON Schema: %w", path, err)
	}
	return s, nil
}

func parseSchema(text []byte) (*outputSchema, error) {
	var s jsonschema.Schema
	err := json.Unmarshal(text, &s)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		err = fmt.Errorf("%s: a JSON %s is not allowed there", cmp.Or(strings.ReplaceAll(wrong.Field, "schemaWithoutMethods.", ""), "the whole"), wrong.Value)
	}
	if err != nil {
		return nil, err
	}
	// Resolve checks the version only where it validates defaults; those of the schema need not be valid.
	if _, err := (&jsonschema.Schema{Schema: s.Schema}).Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true}); err != nil {
		return nil, err
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, err
	}
	if err := checkTypes(&s); err != nil {
		return nil, err
	}
	if err := checkReferences(text); err != nil {
		return nil, err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return nil, err
	}
	return &outputSchema{compact.String(), resolved}, nil
}

// schemaTypes are what the keyword type may name.
var schemaTypes = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// checkTypes returns an error if s, or a schema in it, names a type that does not exist: no answer would be valid by it.
func checkTypes(s *jsonschema.Schema) error {
	for _, t := range append(s.Types, s.Type) {
		if t != "" && !slices.Contains(schemaTypes, t) {
			return fmt.Errorf("type: %q is none of %s", t, strings.Join(schemaTypes, ", "))
		}
	}
	var inside []*jsonschema.Schema
	for _, field := range reflect.ValueOf(s).Elem().Fields() {
		switch v := field.Interface().(type) {
		case *jsonschema.Schema:
			inside = append(inside, v)
		case []*jsonschema.Schema:
			inside = append(inside, v...)
		case map[string]*jsonschema.Schema:
			inside = slices.AppendSeq(inside, maps.Values(v))
		}
	}
	for _, in := range inside {
		if in != nil {
			if err := checkTypes(in); err != nil {
				return err
			}
		}
	}
	return nil
}

// references are those in a schema to a place in it, such as #/$defs/a. Those by an anchor or another $id are not followed.
type references struct {
	root any
	open map[string]bool // false once a reference is known to end
}

var localRef = regexp.MustCompile(`"\$ref"\s*:\s*"(#[^"]*)"`)

// checkReferences returns an error if a reference leads back to itself for the same value: the check of a value would not end.
func checkReferences(schema []byte) error {
	r := references{open: map[string]bool{}}
	if err := json.Unmarshal(schema, &r.root); err != nil {
		return err
	}
	for _, m := range localRef.FindAllSubmatch(schema, -1) {
		if err := r.follow(string(m[1])); err != nil {
			return err
		}
	}
	return nil
}

func (r references) follow(ref string) error {
	open, known := r.open[ref]
	if open {
		return fmt.Errorf("$ref: %q refers to itself", ref)
	}
	if known {
		return nil
	}
	r.open[ref] = true
	err := r.apply(r.place(ref))
	r.open[ref] = false
	return err
}

// apply follows the references that a check by s follows before it goes into the value.
func (r references) apply(s any) error {
	schema, _ := s.(map[string]any)
	same := []any{schema["not"], schema["if"], schema["then"], schema["else"]}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := schema[keyword].([]any)
		same = append(same, list...)
	}
	for _, keyword := range []string{"dependentSchemas", "dependencies"} {
		byName, _ := schema[keyword].(map[string]any)
		same = slices.AppendSeq(same, maps.Values(byName))
	}
	for _, in := range same {
		if in != nil {
			if err := r.apply(in); err != nil {
				return err
			}
		}
	}
	if ref, ok := schema["$ref"].(string); ok {
		return r.follow(ref)
	}
	return nil
}

// place returns the value at a JSON pointer (RFC 6901), or nil.
func (r references) place(ref string) any {
	at := r.root
	pointer, _ := url.PathUnescape(strings.TrimPrefix(ref, "#"))
	for _, part := range strings.Split(pointer, "/")[1:] {
		switch in := at.(type) {
		case map[string]any:
			at = in[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(in) {
				return nil
			}
			at = in[i]
		}
	}
	return at
}

// instruction returns the part of the system prompt that asks for an answer valid by the schema.
func (s *outputSchema) instruction() string {
	return "Your last message must be exactly one JSON value that is valid by this JSON Schema, without any text or code fence around it:\n" + s.text
}

// value returns the JSON value of an answer, or why it is not valid. It ignores a code fence around it.
func (s *outputSchema) value(answer string) (json.RawMessage, error) {
	text := strings.TrimSpace(answer)
	if body, ok := strings.CutPrefix(text, "```"); ok {
		if _, body, ok = strings.Cut(body, "\n"); ok {
			text = strings.TrimSuffix(strings.TrimSpace(body), "```")
		}
	}
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return nil, fmt.Errorf("it is not one JSON value: %w", err)
	}
	if err := s.resolved.Validate(value); err != nil {
		return nil, err
	}
	return json.RawMessage(strings.TrimSpace(text)), nil
}

// askUntilValid asks again, by turn with a new prompt in req, until the answer is valid, and prints it with q.print; nil = unchanged. The
// bounds in req.Options hold for all turns together. end is the end of the first turn. It returns the end of the last one: without an
// error, too, if its status is not success.
func (s *outputSchema) askUntilValid(a *app, q question, req *wire.AgentRequest, end *wire.AgentComplete, turn func() (*wire.AgentComplete, error)) (*wire.AgentComplete, error) {
	for try := 0; end.Status == wire.StatusSuccess; try++ {
		value, err := s.value(end.Summary)
		if err == nil {
			if q.print != nil {
				return end, q.print(value)
			}
			a.printf("%s\n", value)
			return end, nil
		}
		problem := "the answer is not valid by the schema"
		last := try == schemaTries
		if spent := spend(&req.Options, end); spent != "" {
			problem, last = problem+", and "+spent+" is spent", true
		}
		if last {
			hint := ""
			if !q.ephemeral {
				hint = "see it with `sublet session show " + string(end.SessionID) + "`"
			}
			return end, hinted{problem + ": " + oneLine(err.Error()), hint}
		}
		a.printNotice("the answer is not valid by the schema, and asked for again", err.Error(), "")
		req.RequestID, req.Attachments = "", []wire.Attachment{}
		req.Prompt = "Your answer is not valid: " + err.Error() + ". Give it again: one JSON value that is valid by the schema, and nothing else."
		if end, err = turn(); err != nil {
			return nil, err
		}
	}
	return end, nil
}

// spend takes what a turn used off the bounds of the next one. It returns the flag of a bound of which nothing is left, "" for none.
func spend(o *wire.RequestOptions, end *wire.AgentComplete) (flag string) {
	if o.MaxSteps > 0 {
		if o.MaxSteps -= end.Steps; o.MaxSteps <= 0 {
			flag = "--max-turns"
		}
	}
	if o.TimeoutMS > 0 {
		if o.TimeoutMS -= end.DurationMS; o.TimeoutMS <= 0 {
			flag = "--timeout"
		}
	}
	if cost := end.Usage.CostUSD; o.MaxCostUSD > 0 && cost != nil {
		if o.MaxCostUSD -= *cost; o.MaxCostUSD <= 0 {
			flag = "--max-cost"
		}
	}
	return flag
}
