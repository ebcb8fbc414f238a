package cli

import (
	"bytes"
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
	leads := map[string][]string{}
	if err := checkSchema("#", text, leads); err != nil {
		return nil, err
	}
	for _, path := range slices.Sorted(maps.Keys(leads)) {
		if err := checkEnd(path, leads, nil); err != nil {
			return nil, err
		}
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
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
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return nil, err
	}
	return &outputSchema{compact.String(), resolved}, nil
}

// schemaTypes are what the keyword type may name.
var schemaTypes = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// sameValue are the keywords whose schemas apply to the same value as the schema they are in.
var sameValue = []string{"allOf", "anyOf", "dependencies", "dependentSchemas", "else", "if", "not", "oneOf", "then"}

// checkEnd returns an error if the schema at path leads back to one of those before it, with which it would apply to the same value without
// end. It removes from leads what it has checked.
func checkEnd(path string, leads map[string][]string, before []string) error {
	if slices.Contains(before, path) {
		return fmt.Errorf("%s: by its $ref it leads back to itself", path)
	}
	for _, next := range leads[path] {
		if err := checkEnd(next, leads, append(before, path)); err != nil {
			return err
		}
	}
	delete(leads, path)
	return nil
}

// checkSchema returns an error for the first invalid schema in text, the innermost first. path is the JSON pointer of text, which the error
// begins with. It adds to leads, by path, the schemas that apply to the same value.
func checkSchema(path string, text json.RawMessage, leads map[string][]string) error {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	if _, ok := value.(bool); ok {
		return nil
	}
	if _, ok := value.(map[string]any); !ok {
		return fmt.Errorf("%s: %s is no schema; a schema is an object, true or false", path, firstLine(string(text), 40))
	}
	var keywords map[string]json.RawMessage
	if err := json.Unmarshal(text, &keywords); err != nil {
		return err
	}
	for _, keyword := range slices.Sorted(maps.Keys(keywords)) {
		inside := subschemas(keyword, keywords[keyword])
		for _, at := range slices.Sorted(maps.Keys(inside)) {
			if err := checkSchema(path+"/"+keyword+at, inside[at], leads); err != nil {
				return err
			}
			if slices.Contains(sameValue, keyword) {
				leads[path] = append(leads[path], path+"/"+keyword+at)
			}
		}
	}
	var s jsonschema.Schema
	err := json.Unmarshal(text, &s)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s/%s: a JSON %s is not allowed; it takes %s", path, strings.ReplaceAll(strings.TrimPrefix(wrong.Field, "schemaWithoutMethods."), ".", "/"), wrong.Value, jsonKind(wrong.Type))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, t := range append(s.Types, s.Type) {
		if t != "" && !slices.Contains(schemaTypes, t) {
			return fmt.Errorf("%s/type: %q is none of %s", path, t, strings.Join(schemaTypes, ", "))
		}
	}
	for _, expr := range append(slices.Sorted(maps.Keys(s.PatternProperties)), s.Pattern) {
		if _, err := regexp.Compile(expr); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	switch plain, err := url.PathUnescape(s.Ref); {
	case err != nil || s.Ref != "" && s.Ref != "#" && !strings.HasPrefix(s.Ref, "#/"):
		return fmt.Errorf("%s/$ref: %q is not supported here, only a JSON pointer into the same schema, such as #/$defs/NAME", path, s.Ref)
	case s.DynamicRef != "", s.ID != "" && path != "#":
		return fmt.Errorf("%s: $dynamicRef, and $id below the top, are not supported here", path)
	case s.Ref != "":
		leads[path] = append(leads[path], plain)
	}
	return nil
}

// subschemas returns the schemas in a keyword's value, by their JSON pointer below it.
func subschemas(keyword string, value json.RawMessage) map[string]json.RawMessage {
	inside := map[string]json.RawMessage{}
	switch keyword {
	case "properties", "patternProperties", "$defs", "definitions", "dependencies", "dependentSchemas":
		var named map[string]json.RawMessage
		_ = json.Unmarshal(value, &named) // what is no object, the caller finds
		for name, schema := range named {
			if keyword != "dependencies" || schema[0] != '[' { // of draft 7, which also has lists of names there
				inside["/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name)] = schema
			}
		}
	case "allOf", "anyOf", "oneOf", "prefixItems":
		var list []json.RawMessage
		_ = json.Unmarshal(value, &list)
		for i, schema := range list {
			inside["/"+strconv.Itoa(i)] = schema
		}
	case "items":
		if value[0] == '[' { // of draft 7
			return subschemas("prefixItems", value)
		}
		inside[""] = value
	case "additionalItems", "additionalProperties", "contains", "else", "if", "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties":
		inside[""] = value
	}
	return inside
}

// jsonKind returns the JSON type that a Go type is decoded from.
func jsonKind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Slice:
		return "an array"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a boolean"
	}
	return "a number"
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
// bounds in req.Options hold for all turns together. end is the end of the first turn. It returns the end of the last one: without an error, too, if its status is not success.
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
