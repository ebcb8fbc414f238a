package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
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
	if err := checkSchema(&s, &s); err != nil {
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

// checkSchema returns an error if s, or a schema in it, names a type that does not exist, since no answer would be valid by it, or is endless.
// root is the whole schema.
func checkSchema(root, s *jsonschema.Schema) error {
	if ref := endless(root, s, map[string]bool{}); ref != "" {
		return fmt.Errorf("$ref: %q refers to itself", ref)
	}
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
			if err := checkSchema(root, in); err != nil {
				return err
			}
		}
	}
	return nil
}

// endless returns a $ref that leads back to itself for the same value, or "": the check of an answer by s would overflow the stack. It
// follows references to root, the whole schema, and to its definitions. open has those on the way to s, and false for those that end.
func endless(root, s *jsonschema.Schema, open map[string]bool) string {
	if s == nil {
		return ""
	}
	same := slices.Concat(s.AllOf, s.AnyOf, s.OneOf, []*jsonschema.Schema{s.Not, s.If, s.Then, s.Else})
	for _, in := range slices.AppendSeq(same, maps.Values(s.DependentSchemas)) {
		if ref := endless(root, in, open); ref != "" {
			return ref
		}
	}
	switch on, known := open[s.Ref]; {
	case on:
		return s.Ref
	case known, s.Ref == "":
		return ""
	}
	to := root
	if s.Ref != "#" {
		_, name, _ := strings.Cut(strings.TrimPrefix(s.Ref, "#/"), "/") // of #/$defs/NAME
		to = cmp.Or(root.Defs[name], root.Definitions[name])
	}
	open[s.Ref] = true
	ref := endless(root, to, open)
	open[s.Ref] = false
	return ref
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
