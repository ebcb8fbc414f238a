package wiretest

import (
	"encoding/json"
	"fmt"
	"reflect"

	"sublet/wire"
)

// object is a JSON object whose members are not decoded yet.
type object map[string]json.RawMessage

// FromJSON reads a message back from its JSON view, as in the vectors and in PROTOCOL.md. Fields that the kind does not have
// are refused, absent ones are zero.
func FromJSON(data []byte) (wire.Message, error) {
	var tree object
	if err := json.Unmarshal(data, &tree); err != nil {
		return nil, err
	}
	var kind string
	_ = json.Unmarshal(tree["kind"], &kind) // without one it is unknown
	m, ok := wire.New(kind)
	if !ok {
		return nil, fmt.Errorf("unknown kind %q", kind)
	}
	delete(tree, "kind")
	if err := structFrom(tree, reflect.ValueOf(m).Elem()); err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	return m, nil
}

func structFrom(tree object, v reflect.Value) error {
	for name, f := range wire.Fields(v) {
		x, ok := tree[name]
		if raw, isRaw := tree[name+"_base64"]; isRaw {
			name += "_base64"
			x, ok = fmt.Appendf(nil, `{"base64":%s}`, raw), true
		}
		if !ok {
			continue
		}
		delete(tree, name)
		if err := valueFrom(x, f); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for name := range tree {
		return fmt.Errorf("%s: no such field", name)
	}
	return nil
}

// valueFrom sets v to what x stands for.
func valueFrom(x json.RawMessage, v reflect.Value) error {
	if string(x) == "null" {
		return nil
	}
	if e, ok := v.Addr().Interface().(*wire.Envelope); ok {
		var err error
		e.Message, err = FromJSON(x)
		return err
	}
	bytes := v.Type() == reflect.TypeFor[[]byte]()
	switch kind := v.Kind(); {
	case kind == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return valueFrom(x, v.Elem())
	case kind == reflect.Struct:
		var tree object
		if err := json.Unmarshal(x, &tree); err != nil {
			return err
		}
		return structFrom(tree, v)
	case kind == reflect.Map:
		var tree object
		if err := json.Unmarshal(x, &tree); err != nil {
			return err
		}
		v.Set(reflect.MakeMap(v.Type()))
		for name, x := range tree {
			e := reflect.New(v.Type().Elem()).Elem()
			if err := valueFrom(x, e); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			v.SetMapIndex(reflect.ValueOf(name).Convert(v.Type().Key()), e)
		}
		return nil
	case kind == reflect.Slice && !bytes:
		var list []json.RawMessage
		if err := json.Unmarshal(x, &list); err != nil {
			return err
		}
		v.Set(reflect.MakeSlice(v.Type(), len(list), len(list)))
		for i, x := range list {
			if err := valueFrom(x, v.Index(i)); err != nil {
				return fmt.Errorf("[%d]: %w", i, err)
			}
		}
		return nil
	case x[0] == '{': // bytes or a text that is not UTF-8
		var raw struct{ Base64 []byte }
		err := json.Unmarshal(x, &raw)
		v.Set(reflect.ValueOf(raw.Base64).Convert(v.Type()))
		return err
	case bytes:
		var text string
		err := json.Unmarshal(x, &text)
		v.SetBytes([]byte(text))
		return err
	}
	return json.Unmarshal(x, v.Addr().Interface())
}
