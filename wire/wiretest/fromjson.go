package wiretest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"

	"sublet/wire"
)

// FromJSON reads a message back from its JSON view, as in the vectors and in PROTOCOL.md. Fields that the kind does not have
// are refused, absent ones are zero.
func FromJSON(data []byte) (wire.Message, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var tree map[string]any
	if err := d.Decode(&tree); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, errors.New("more than one JSON value")
	}
	return messageFrom(tree)
}

func messageFrom(tree map[string]any) (wire.Message, error) {
	kind, _ := tree["kind"].(string)
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

func structFrom(tree map[string]any, v reflect.Value) error {
	for name, f := range wire.Fields(v) {
		x, ok := tree[name]
		if raw, isRaw := tree[name+"_base64"]; isRaw {
			name += "_base64"
			x, ok = map[string]any{"base64": raw}, true
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

// valueFrom sets v to what x stands for. It panics where their types differ.
func valueFrom(x any, v reflect.Value) (err error) {
	if x == nil {
		return nil
	}
	if o, ok := x.(map[string]any); ok && len(o) == 1 && o["base64"] != nil && v.Kind() != reflect.Map && v.Kind() != reflect.Struct {
		raw, err := base64.StdEncoding.DecodeString(o["base64"].(string))
		if err != nil {
			return err
		}
		x = string(raw)
	}
	if _, ok := v.Interface().(wire.Envelope); ok {
		m, err := messageFrom(x.(map[string]any))
		v.Set(reflect.ValueOf(wire.Envelope{Message: m}))
		return err
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return valueFrom(x, v.Elem())
	case reflect.String:
		v.SetString(x.(string))
	case reflect.Bool:
		v.SetBool(x.(bool))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		var n int64
		n, err = strconv.ParseInt(string(x.(json.Number)), 10, v.Type().Bits())
		v.SetInt(n)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		var n uint64
		n, err = strconv.ParseUint(string(x.(json.Number)), 10, v.Type().Bits())
		v.SetUint(n)
	case reflect.Float64:
		var f float64
		f, err = x.(json.Number).Float64()
		v.SetFloat(f)
	case reflect.Struct:
		return structFrom(x.(map[string]any), v)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for name, x := range x.(map[string]any) {
			e := reflect.New(v.Type().Elem()).Elem()
			if err := valueFrom(x, e); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			v.SetMapIndex(reflect.ValueOf(name).Convert(v.Type().Key()), e)
		}
	case reflect.Slice:
		if text, ok := x.(string); ok {
			v.SetBytes([]byte(text))
			return nil
		}
		list := x.([]any)
		v.Set(reflect.MakeSlice(v.Type(), len(list), len(list)))
		for i, x := range list {
			if err := valueFrom(x, v.Index(i)); err != nil {
				return fmt.Errorf("[%d]: %w", i, err)
			}
		}
	}
	return err
}
