package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// decode reads a call's arguments, as Arguments returns them, into the struct that a points to. Missing arguments are an error.
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
