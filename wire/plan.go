package wire

import (
	"fmt"
	"iter"
	"math/bits"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// A plan encodes and decodes the values of one Go type. Each is made once, from the msgpack tags: every exported field is
// encoded under its tag, and fields of an embedded struct as fields of the outer one.
//
// msgpack/v5 reads and writes the tokens: lengths, numbers, strings. Its decoding by reflection is not used because it
// wraps integers that overflow and accepts bin for str, duplicate keys and invalid UTF-8.
type plan struct {
	enc func(e *encoder, v reflect.Value)
	dec func(d *decoder, v reflect.Value) *fieldError
}

type structPlan struct {
	fields []field
	byName map[string]int
	union  map[string]uint64 // of a union: the bit mask of the fields encoded for each value of the first field; else nil
}

type field struct {
	name  string
	key   []byte // name, encoded
	index []int  // for reflect.Value.FieldByIndex
	plan
}

func (f *field) of(v reflect.Value) reflect.Value {
	for _, i := range f.index {
		v = v.Field(i)
	}
	return v
}

func planStruct(typ reflect.Type) *structPlan {
	p := &structPlan{byName: map[string]int{}}
	var add func(t reflect.Type, index []int)
	add = func(t reflect.Type, index []int) {
		for i := range t.NumField() {
			f := t.Field(i)
			at := append(slices.Clone(index), i)
			if f.Anonymous && f.Type.Kind() == reflect.Struct {
				add(f.Type, at)
				continue
			}
			name := f.Tag.Get("msgpack")
			if _, twice := p.byName[name]; twice || name == "" || len(name) > 31 || !f.IsExported() {
				panic(fmt.Sprintf("wire: field %s of %s has no msgpack tag, or one that is a duplicate or longer than 31 bytes", f.Name, typ))
			}
			p.byName[name] = len(p.fields)
			key, _ := encoding(nil, func(e *encoder) error { return e.EncodeString(name) })
			p.fields = append(p.fields, field{name, key, at, planType(f.Type)})
		}
	}
	add(typ, nil)
	if len(p.fields) > 63 {
		panic("wire: more than 63 fields in " + typ.String())
	}
	if typ == chunkType {
		p.union = map[string]uint64{}
		for value, names := range chunkFields {
			for _, name := range names {
				p.union[value] |= 1 << p.byName[name]
			}
		}
	}
	return p
}

var plans sync.Map // reflect.Type → *structPlan

// planOf returns the plan of a struct type, made on first use.
func planOf(typ reflect.Type) *structPlan {
	p, ok := plans.Load(typ)
	if !ok {
		p, _ = plans.LoadOrStore(typ, planStruct(typ))
	}
	return p.(*structPlan)
}

// Fields iterates over the encoded fields of v, a message's struct or a struct inside one: names and values, in order. For a
// union (see structPlan.union) it yields only the fields of v's Type; Type is read again before each field, so the caller may
// set it while iterating.
func Fields(v reflect.Value) iter.Seq2[string, reflect.Value] {
	p := planOf(v.Type())
	return func(yield func(string, reflect.Value) bool) {
		for i, f := range p.fields {
			if p.presentFields(v)&(1<<i) != 0 && !yield(f.name, f.of(v)) {
				return
			}
		}
	}
}

// write encodes v as a map of its present fields, in the order of the struct. Of a union those of its type are present: see presentFields.
func (p *structPlan) write(e *encoder, v reflect.Value) {
	present := p.presentFields(v)
	e.mapHead(bits.OnesCount64(present))
	for i := range p.fields {
		if f := &p.fields[i]; present&(1<<i) != 0 {
			e.out = append(e.out, f.key...)
			f.enc(e, f.of(v))
		}
	}
}

// presentFields returns a bit mask of the fields of v that are encoded: all, or those of the union's type.
func (p *structPlan) presentFields(v reflect.Value) uint64 {
	if p.union == nil {
		return 1<<len(p.fields) - 1
	}
	return p.union[p.fields[0].of(v).String()] | 1
}

// read decodes a map into v. Unknown keys are skipped, absent ones leave their fields unchanged, a repeated one is an
// error. Fields of a union that do not belong to its type are zeroed.
func (p *structPlan) read(d *decoder, v reflect.Value) *fieldError {
	n, err := d.mapHead()
	if err != nil {
		return err
	}
	var seen uint64
	i := -1
	for range n {
		key := d.key()
		// Most writers send the fields in our order, so try the next one before the lookup.
		if i++; i == len(p.fields) || p.fields[i].name != string(key) {
			at, ok := p.byName[string(key)]
			if !ok {
				i--
				d.skip()
				continue
			}
			i = at
		}
		f := &p.fields[i]
		if seen&(1<<i) != 0 {
			return in(f.name, wrong("it is there twice"))
		}
		seen |= 1 << i
		if err := f.dec(d, f.of(v)); err != nil {
			return in(f.name, err)
		}
	}
	if p.union != nil {
		for extra := seen &^ p.presentFields(v); extra != 0; extra &= extra - 1 {
			p.fields[bits.TrailingZeros64(extra)].of(v).SetZero()
		}
	}
	return nil
}

var (
	osStringType = reflect.TypeFor[OSString]()
	chunkType    = reflect.TypeFor[Chunk]()
	envelopeType = reflect.TypeFor[Envelope]()
)

// scalar returns the plan of a type whose values get and set convert from and to T.
func scalar[T any](write func(*encoder, T), get func(reflect.Value) T, read func(*decoder) (T, *fieldError), set func(reflect.Value, T)) plan {
	return plan{
		func(e *encoder, v reflect.Value) { write(e, get(v)) },
		func(d *decoder, v reflect.Value) *fieldError {
			x, err := read(d)
			set(v, x)
			return err
		},
	}
}

// fitting is read for values that must fit in the integer type t.
func fitting[T int64 | uint64](read func(*decoder) (T, *fieldError), overflows func(T) bool, t reflect.Type) func(*decoder) (T, *fieldError) {
	return func(d *decoder) (T, *fieldError) {
		n, err := read(d)
		if err == nil && overflows(n) {
			err = wrong(fmt.Sprintf("%d does not fit in %d bits", n, t.Bits()))
		}
		return n, err
	}
}

func planType(t reflect.Type) plan {
	switch t {
	case osStringType:
		return scalar((*encoder).osString, reflect.Value.String, (*decoder).readOSString, reflect.Value.SetString)
	case envelopeType:
		return plan{writeEnvelope, readEnvelope}
	}
	switch t.Kind() {
	case reflect.String:
		return scalar((*encoder).text, reflect.Value.String, (*decoder).readStr, reflect.Value.SetString)
	case reflect.Bool:
		return scalar((*encoder).bool, reflect.Value.Bool, (*decoder).readBool, reflect.Value.SetBool)
	case reflect.Int, reflect.Int64, reflect.Int32, reflect.Int16, reflect.Int8:
		return scalar((*encoder).int, reflect.Value.Int, fitting((*decoder).readInt, t.OverflowInt, t), reflect.Value.SetInt)
	case reflect.Uint, reflect.Uint64, reflect.Uint32, reflect.Uint16, reflect.Uint8:
		return scalar((*encoder).uint, reflect.Value.Uint, fitting((*decoder).readUint, t.OverflowUint, t), reflect.Value.SetUint)
	case reflect.Float64:
		return scalar((*encoder).float, reflect.Value.Float, (*decoder).readFloat, reflect.Value.SetFloat)
	case reflect.Struct:
		p := planOf(t)
		return plan{p.write, p.read}
	case reflect.Pointer:
		return orNil(planPointer(t.Elem()))
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return orNil(scalar((*encoder).bytes, reflect.Value.Bytes, (*decoder).readBin, reflect.Value.SetBytes))
		}
		return orNil(planSlice(t))
	case reflect.Map:
		if t.Key().Kind() == reflect.String {
			return orNil(planMap(t))
		}
	}
	panic("wire: cannot encode " + t.String())
}

// orNil encodes a nil pointer, slice or map as nil, and any other by p. A nil that is decoded leaves the value unchanged.
func orNil(p plan) plan {
	return plan{
		func(e *encoder, v reflect.Value) {
			if v.IsNil() {
				e.null()
				return
			}
			p.enc(e, v)
		},
		func(d *decoder, v reflect.Value) *fieldError {
			if d.null() {
				return nil
			}
			return p.dec(d, v)
		},
	}
}

// planPointer encodes a pointer to t as the value it points to.
func planPointer(t reflect.Type) plan {
	p := planType(t)
	return plan{
		func(e *encoder, v reflect.Value) { p.enc(e, v.Elem()) },
		func(d *decoder, v reflect.Value) *fieldError {
			if err := d.spend(allocated(int(t.Size()))); err != nil {
				return err
			}
			e := reflect.New(t)
			if err := p.dec(d, e.Elem()); err != nil {
				return err
			}
			v.Set(e)
			return nil
		},
	}
}

// planSlice encodes a slice as an array. RequestOptions.Tools distinguishes an empty one from nil.
func planSlice(t reflect.Type) plan {
	p := planType(t.Elem())
	return plan{
		func(e *encoder, v reflect.Value) {
			n := v.Len()
			e.arrayHead(n)
			for i := range n {
				p.enc(e, v.Index(i))
			}
		},
		func(d *decoder, v reflect.Value) *fieldError {
			n, err := d.arrayHead()
			if err != nil {
				return err
			}
			// precheck has verified that the payload has n elements.
			const head = 24 // bytes of the slice header, which reflect allocates
			if err := d.spend(allocated(head + n*int(t.Elem().Size()))); err != nil {
				return err
			}
			list := reflect.MakeSlice(t, n, n)
			for i := range n {
				if err := p.dec(d, list.Index(i)); err != nil {
					return in(fmt.Sprintf("[%d]", i), err)
				}
			}
			v.Set(list)
			return nil
		},
	}
}

// planMap encodes a map with its keys sorted, so that equal messages are equal bytes. An entry whose key is not UTF-8,
// such as the name of an environment variable, is left out.
func planMap(t reflect.Type) plan {
	p := planType(t.Elem())
	return plan{
		func(e *encoder, v reflect.Value) {
			keys := SortedKeys(v)
			e.mapHead(len(keys))
			for _, k := range keys {
				e.text(k.String())
				p.enc(e, v.MapIndex(k))
			}
		},
		func(d *decoder, v reflect.Value) *fieldError {
			n, err := d.mapHead()
			if err != nil {
				return err
			}
			if err := d.spend(mapSize(n, int(t.Key().Size()+t.Elem().Size()))); err != nil {
				return err
			}
			m := reflect.MakeMapWithSize(t, n)
			k, e := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
			for i := range n {
				key, err := d.readStr()
				if err != nil {
					return err
				}
				k.SetString(key)
				e.SetZero()
				if err := p.dec(d, e); err != nil {
					return in("["+quote(key)+"]", err)
				}
				if m.SetMapIndex(k, e); m.Len() == i {
					return in("["+quote(key)+"]", wrong("it is there twice"))
				}
			}
			v.Set(m)
			return nil
		},
	}
}

// mapSize returns an upper bound of the memory in bytes that Go allocates for a map of n entries of entry bytes each. A
// map of more than eight entries is made of tables whose size is a power of two (measured up to 100,000 entries).
func mapSize(n, entry int) int {
	const head = 48 + 32 // the map header, and the key and the value through which reflect fills it
	switch {
	case n == 0:
		return head
	case n <= 8:
		return head + allocated(8*(entry+1))
	}
	return head + 128 + n*(entry+1)*3
}

// SortedKeys returns the keys of a map with string keys that are valid UTF-8, sorted.
func SortedKeys(v reflect.Value) []reflect.Value {
	keys := slices.DeleteFunc(v.MapKeys(), func(k reflect.Value) bool { return !utf8.ValidString(k.String()) })
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	return keys
}

// writeEnvelope encodes the message as [kind, body]; nil for an empty envelope or a type that is not in the table of kinds.
func writeEnvelope(e *encoder, v reflect.Value) {
	m := v.Interface().(Envelope).Message
	if m == nil || e.message(m) != nil {
		e.null()
	}
}

// readEnvelope decodes a message. Where its kind is unknown it leaves the envelope empty, so that the other messages of a
// page of history from a newer daemon can be read.
func readEnvelope(d *decoder, v reflect.Value) *fieldError {
	if d.null() {
		return nil
	}
	start := d.pos
	m, err := d.readMessage()
	if err == errUnknownKind {
		d.pos = start
		d.skip()
		return nil
	}
	if err != nil {
		return err
	}
	v.Addr().Interface().(*Envelope).Message = m
	return nil
}
