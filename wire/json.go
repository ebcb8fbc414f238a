package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"unicode/utf8"
)

// ToJSON returns the JSON view of m, one line without its newline: an object with "kind" and every field of the body
// beside it. Bytes and texts of the operating system are text where they are UTF-8; where they are not, a field is named
// NAME_base64 and holds base64, and an element of a list or map is the object {"base64": …}.
func ToJSON(m Message) ([]byte, error) {
	v := reflect.ValueOf(m)
	if m == nil || v.Kind() != reflect.Pointer || v.IsNil() {
		return nil, fmt.Errorf("wire: nil message")
	}
	k := byKind[m.Kind()]
	if k == nil || v.Type().Elem() != k.typ {
		return nil, fmt.Errorf("wire: %T is not a message of the protocol", m)
	}
	dst := appendJSONString([]byte(`{"kind":`), k.name)
	dst = k.plan().appendJSON(dst, v.Elem())
	return append(dst, '}'), nil
}

// appendJSON appends ,"name":value for every field.
func (p *structPlan) appendJSON(dst []byte, v reflect.Value) []byte {
	for i := range p.fields {
		dst = appendJSONField(dst, p.fields[i].name, p.fields[i].of(v))
	}
	return dst
}

func appendJSONField(dst []byte, name string, v reflect.Value) []byte {
	dst = append(dst, ',', '"')
	dst = append(dst, name...)
	if raw, ok := rawBytes(v); ok && !utf8.Valid(raw) {
		dst = append(dst, `_base64":`...)
		return appendBase64(dst, raw)
	}
	return appendJSONValue(append(dst, '"', ':'), v)
}

// rawBytes returns the bytes of a value that travels as bin, or may.
func rawBytes(v reflect.Value) ([]byte, bool) {
	switch {
	case v.Type() == osStringType:
		return []byte(v.String()), true
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		return v.Bytes(), true
	case v.Kind() == reflect.Pointer && v.Type().Elem() == osStringType && !v.IsNil():
		return []byte(v.Elem().String()), true
	}
	return nil, false
}

func appendBase64(dst, raw []byte) []byte {
	return append(base64.StdEncoding.AppendEncode(append(dst, '"'), raw), '"')
}

// appendJSONElement appends a value that has no name of its own.
func appendJSONElement(dst []byte, v reflect.Value) []byte {
	if raw, ok := rawBytes(v); ok && !utf8.Valid(raw) {
		return append(appendBase64(append(dst, `{"base64":`...), raw), '}')
	}
	return appendJSONValue(dst, v)
}

func appendJSONValue(dst []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.String:
		return appendJSONString(dst, v.String())
	case reflect.Bool:
		return strconv.AppendBool(dst, v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.AppendInt(dst, v.Int(), 10)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.AppendUint(dst, v.Uint(), 10)
	case reflect.Float64:
		b, err := json.Marshal(v.Float())
		if err != nil { // not a number, or infinite
			return append(dst, '0')
		}
		return append(dst, b...)
	case reflect.Pointer:
		if v.IsNil() {
			return append(dst, "null"...)
		}
		return appendJSONValue(dst, v.Elem())
	case reflect.Struct:
		return appendJSONStruct(dst, v)
	case reflect.Map:
		if v.IsNil() {
			return append(dst, "null"...)
		}
		dst = append(dst, '{')
		for i, k := range sortedKeys(v) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendJSONString(dst, k.String()), ':')
			dst = appendJSONElement(dst, v.MapIndex(k))
		}
		return append(dst, '}')
	case reflect.Slice:
		if v.IsNil() {
			return append(dst, "null"...)
		}
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return appendJSONString(dst, string(v.Bytes()))
		}
		dst = append(dst, '[')
		for i := range v.Len() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSONElement(dst, v.Index(i))
		}
		return append(dst, ']')
	}
	panic("wire: no JSON for " + v.Type().String())
}

func appendJSONStruct(dst []byte, v reflect.Value) []byte {
	start := len(dst)
	switch v.Type() {
	case envelopeType:
		b, err := ToJSON(v.Interface().(Envelope).Message)
		if err != nil {
			return append(dst, "null"...)
		}
		return append(dst, b...)
	case chunkType:
		c := v.Interface().(Chunk)
		dst = appendJSONString(append(dst, `{"type":`...), c.Type)
		has, _ := chunkFields(c.Type)
		for _, f := range chunkJSON {
			if has&f.bit != 0 {
				dst = appendJSONField(dst, f.name, v.FieldByIndex(f.index))
			}
		}
		return append(dst, '}')
	}
	dst = planStructCached(v.Type()).appendJSON(dst, v)
	if len(dst) == start {
		return append(dst, "{}"...)
	}
	dst[start] = '{' // was the first field's comma
	return append(dst, '}')
}

type chunkField struct {
	name  string
	bit   uint8
	index []int
}

// chunkJSON is the union's fields by name.
var chunkJSON = []chunkField{
	chunkJSONField("text", hasText, "Text"),
	chunkJSONField("execution_id", hasExecution, "ExecutionID"),
	chunkJSONField("tool", hasTool, "Tool"),
	chunkJSONField("arguments", hasArguments, "Arguments"),
	chunkJSONField("data", hasData, "Data"),
	chunkJSONField("status", hasStatus, "Status"),
	chunkJSONField("signature", hasSignature, "Signature"),
	chunkJSONField("block", hasBlock, "Block"),
}

func chunkJSONField(name string, bit uint8, goName string) chunkField {
	f, _ := chunkType.FieldByName(goName)
	return chunkField{name, bit, f.Index}
}

// appendJSONString quotes s. Beside what JSON demands, DEL, C1 controls and the bidi controls are escaped, so that a
// line printed on a terminal changes nothing there; what is not UTF-8 becomes U+FFFD.
func appendJSONString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, '\\', 'n')
		case r == '\t':
			dst = append(dst, '\\', 't')
		case r == '\r':
			dst = append(dst, '\\', 'r')
		case r < 0x20, r >= 0x7f && r < 0xa0, r >= 0x200e && r <= 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			dst = append(dst, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}

// FromJSON reads the JSON view back. Fields that the kind does not have are refused, absent ones are zero.
func FromJSON(data []byte) (Message, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		return nil, &InvalidError{Reason: "not JSON: " + err.Error()}
	}
	if d.More() {
		return nil, &InvalidError{Reason: "more than one JSON value"}
	}
	m, ferr := messageFromJSON(tree)
	if ferr != nil {
		kind := ""
		if o, ok := tree.(map[string]any); ok {
			kind, _ = o["kind"].(string)
		}
		if ferr == errUnknownKind {
			return nil, &UnknownKindError{Kind: kind}
		}
		return nil, &InvalidError{Kind: clip(kind), Field: ferr.path, Reason: ferr.reason}
	}
	return m, nil
}

func messageFromJSON(tree any) (Message, *fieldError) {
	o, ok := tree.(map[string]any)
	if !ok {
		return nil, wrong("no JSON object")
	}
	name, ok := o["kind"].(string)
	if !ok {
		return nil, wrong("no kind")
	}
	k := byKind[name]
	if k == nil {
		return nil, errUnknownKind
	}
	m := k.new()
	return m, k.plan().fromJSON(o, reflect.ValueOf(m).Elem(), "kind")
}

func (p *structPlan) fromJSON(o map[string]any, v reflect.Value, except string) *fieldError {
	used := 0
	if _, ok := o[except]; ok && except != "" {
		used++
	}
	for i := range p.fields {
		f := &p.fields[i]
		n, err := fieldFromJSON(o, f.name, f.of(v))
		if err != nil {
			return err
		}
		used += n
	}
	if used < len(o) {
		for name := range o {
			if _, ok := p.byName[name]; !ok && name != except {
				return in(clip(name), wrong("no such field"))
			}
		}
	}
	return nil
}

// fieldFromJSON reads name, or name_base64, and reports how many keys it used.
func fieldFromJSON(o map[string]any, name string, v reflect.Value) (int, *fieldError) {
	if x, ok := o[name]; ok {
		if err := fromJSON(x, v); err != nil {
			return 0, in(name, err)
		}
		return 1, nil
	}
	if x, ok := o[name+"_base64"]; ok {
		if err := fromBase64(x, v); err != nil {
			return 0, in(name+"_base64", err)
		}
		return 1, nil
	}
	return 0, nil
}

func fromBase64(x any, v reflect.Value) *fieldError {
	s, ok := x.(string)
	if !ok {
		return wrong("no string")
	}
	raw, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return wrong("not base64")
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	switch {
	case v.Type() == osStringType:
		v.SetString(string(raw))
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		v.SetBytes(raw)
	default:
		return wrong("base64 where text is wanted")
	}
	return nil
}

func fromJSON(x any, v reflect.Value) *fieldError {
	switch v.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		if x == nil {
			return nil
		}
	}
	if o, ok := x.(map[string]any); ok && len(o) == 1 && o["base64"] != nil {
		if _, raw := rawBytes(v); raw {
			return fromBase64(o["base64"], v)
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return fromJSON(x, v.Elem())
	case reflect.String:
		s, ok := x.(string)
		if !ok {
			return wrong("no string")
		}
		v.SetString(s)
	case reflect.Bool:
		b, ok := x.(bool)
		if !ok {
			return wrong("no boolean")
		}
		v.SetBool(b)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, _ := x.(json.Number)
		i, err := strconv.ParseInt(string(n), 10, v.Type().Bits())
		if err != nil {
			return wrong("no integer, or one too large")
		}
		v.SetInt(i)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n, _ := x.(json.Number)
		u, err := strconv.ParseUint(string(n), 10, v.Type().Bits())
		if err != nil {
			return wrong("no unsigned integer, or one too large")
		}
		v.SetUint(u)
	case reflect.Float64:
		n, _ := x.(json.Number)
		f, err := strconv.ParseFloat(string(n), 64)
		if err != nil {
			return wrong("no number")
		}
		v.SetFloat(f)
	case reflect.Struct:
		return structFromJSON(x, v)
	case reflect.Map:
		return mapFromJSON(x, v)
	case reflect.Slice:
		return sliceFromJSON(x, v)
	}
	return nil
}

func structFromJSON(x any, v reflect.Value) *fieldError {
	if v.Type() == envelopeType {
		if x == nil {
			return nil
		}
		m, err := messageFromJSON(x)
		if err != nil {
			return err
		}
		v.Set(reflect.ValueOf(Envelope{m}))
		return nil
	}
	o, ok := x.(map[string]any)
	if !ok {
		return wrong("no object")
	}
	if v.Type() != chunkType {
		return planStructCached(v.Type()).fromJSON(o, v, "")
	}
	typ, ok := o["type"].(string)
	if !ok {
		return in("type", wrong("no string"))
	}
	c := v.Addr().Interface().(*Chunk)
	c.Type = typ
	has, _ := chunkFields(typ)
	for _, f := range chunkJSON {
		if has&f.bit != 0 {
			if _, err := fieldFromJSON(o, f.name, v.FieldByIndex(f.index)); err != nil {
				return err
			}
		}
	}
	return nil
}

func mapFromJSON(x any, v reflect.Value) *fieldError {
	o, ok := x.(map[string]any)
	if !ok {
		return wrong("no object")
	}
	m := reflect.MakeMap(v.Type())
	for name, x := range o {
		e := reflect.New(v.Type().Elem()).Elem()
		if err := fromJSON(x, e); err != nil {
			return inKey(name, err)
		}
		m.SetMapIndex(reflect.ValueOf(name).Convert(v.Type().Key()), e)
	}
	v.Set(m)
	return nil
}

func sliceFromJSON(x any, v reflect.Value) *fieldError {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		s, ok := x.(string)
		if !ok {
			return wrong("no string")
		}
		v.SetBytes([]byte(s))
		return nil
	}
	list, ok := x.([]any)
	if !ok {
		return wrong("no list")
	}
	s := reflect.MakeSlice(v.Type(), len(list), len(list))
	for i, x := range list {
		if err := fromJSON(x, s.Index(i)); err != nil {
			return inIndex(i, err)
		}
	}
	v.Set(s)
	return nil
}
