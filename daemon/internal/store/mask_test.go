package store

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"sublet/wire"
)

// What is stored of a question holds no secret; what is shown is what would run.
func TestForStore(t *testing.T) {
	secret := wire.OSString("curl -H 'Authorization: Bearer ghp_0123456789abcdefghijklmnopqrstuvwxyz'")
	q := &wire.ConfirmationRequest{Command: secret}
	Mask(q)
	kept := forStore(q).(*wire.ConfirmationRequest)
	if q.Command != secret || strings.Contains(string(kept.Command), "ghp_0123") {
		t.Errorf("shown %q, kept %q", q.Command, kept.Command)
	}
}

// Every text of an event is masked in the store, unless it is here: no model, program or file writes it, or it is a path, or
// never stored.
func TestEveryTextIsMasked(t *testing.T) {
	const secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
	own := strings.Fields(`Agent Model Tool ToolsExecuted Name Status Phase StopReason Decision By Code Hint Level Effect Scope Reach EnforcedBy
		Fingerprint Signature Cwd FilesModified SpoolPath Executable Type Language Data Block.Annotations.Message`)
	for _, kind := range wire.Kinds() {
		m, _ := wire.New(kind)
		e, ok := m.(wire.EventMessage)
		if !ok {
			continue
		}
		texts(reflect.ValueOf(m), kind, func(_ string, v reflect.Value) { v.Set(reflect.ValueOf(secret).Convert(v.Type())) })
		Mask(e)
		texts(reflect.ValueOf(forStore(e)), kind, func(path string, v reflect.Value) {
			known := slices.ContainsFunc(own, func(name string) bool { return strings.HasSuffix(path, "."+name) })
			if v.Convert(reflect.TypeFor[string]()).String() == secret && !known {
				t.Errorf("%s is stored unmasked: Mask and forStore do not know it", path)
			}
		})
	}
}

// texts visits each text below v, ids excepted. It makes what is nil or empty, with one element.
func texts(v reflect.Value, path string, visit func(path string, v reflect.Value)) {
	switch {
	case v.Type() == reflect.TypeFor[string](), v.Type() == reflect.TypeFor[wire.OSString](), v.Type() == reflect.TypeFor[[]byte]():
		visit(path, v)
	case v.Kind() == reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		texts(v.Elem(), path, visit)
	case v.Kind() == reflect.Slice:
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		texts(v.Index(0), path, visit)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			texts(v.Field(i), path+"."+v.Type().Field(i).Name, visit)
		}
	}
}
