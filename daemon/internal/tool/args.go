package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// decode reads a call's arguments into the struct that a points to, as Arguments reads them. Nothing is ever taken for an empty
// argument.
func decode(spec Spec, args json.RawMessage, a any) error {
	args, err := Arguments(spec, args)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(args))
	d.DisallowUnknownFields()
	if err := d.Decode(a); err != nil {
		return fmt.Errorf("arguments: %w", err)
	}
	return nil
}
