package gatewaytest

import (
	"embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

//go:embed documents/*.json
var documents embed.FS

// Types are the types of a document, by name.
type Types map[string]*jsonschema.Resolved

// Document returns the types of S2, S3, S4 or S5. Objects may have more fields than their type: documents grow (R1).
func Document(name string) Types {
	raw, err := documents.ReadFile("documents/" + strings.ToLower(name) + ".json")
	if err != nil {
		panic(err) // a name that a test made up
	}
	var all jsonschema.Schema
	if err := json.Unmarshal(raw, &all); err != nil {
		panic(err)
	}
	types := Types{}
	for name := range all.Defs {
		var one jsonschema.Schema
		if err := json.Unmarshal(raw, &one); err != nil { // a schema can be resolved only once
			panic(err)
		}
		one.Ref = "#/$defs/" + name
		if types[name], err = one.Resolve(nil); err != nil {
			panic(err)
		}
	}
	return types
}

// Check returns in what a decoded value is not of the type.
func (t Types) Check(name string, v any) error {
	s := t[name]
	if s == nil {
		return fmt.Errorf("the document has no type %s", name)
	}
	return s.Validate(v)
}
