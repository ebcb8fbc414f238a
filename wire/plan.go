package wire

import (
	"fmt"
	"iter"
	"math/bits"
	"reflect"
	"slices"
	"sync"
	"unicode/utf8"
)

// A plan says how the values of one Go type travel. Plans are made once for each type, from the msgpack tags: every
// exported field travels under its tag, fields of embedded structs beside the others, and nothing is ever left out.
//
// msgpack/v5 reads and writes the tokens: heads, numbers, texts. Its decoding by reflection is not used: it wraps integers
// that do not fit, and takes bin for str, duplicate keys and broken UTF-8.
type plan struct {
	enc func(e *encoder, v reflect.Value)
	dec func(d *decoder, v reflect.Value) *fieldError
}

type structPlan struct {
	typ    reflect.Type
	fields []field
	byName map[string]int
	union  map[string]uint64 // which fields travel, a bit each, by the value of the first one; nil = all, always
}

type field struct {
	name  string
	key   []byte // name, as it travels
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
	p := &structPlan{typ: typ, byName: map[string]int{}}
	var add func(t reflect.Type, index []int)
	add = func(t reflect.Type, index []int) {
		for i := range t.NumField() {
			f := t.Field(i)
			at := append(slices.Clone(index), i)
			if f.Anonymous {
				add(f.Type, at)
				continue
			}
			name := f.Tag.Get("msgpack")
			if _, twice := p.byName[name]; twice || name == "" || len(name) > 31 || !f.IsExported() {
				panic(fmt.Sprintf("wire: field %s of %s has no name, or one that is taken or too long", f.Name, typ))
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

// plans keeps the plans that Fields made; the codec holds its own by closure.
var plans sync.Map // reflect.Type → *structPlan

// Fields returns the fields of a message's struct, or of a struct in one, that travel, under their names and in their
// order. Which fields of a union travel is decided when each is reached, so its type may be set on the way.
func Fields(v reflect.Value) iter.Seq2[string, reflect.Value] {
	p, ok := plans.Load(v.Type())
	if !ok {
		p, _ = plans.LoadOrStore(v.Type(), planStruct(v.Type()))
	}
	return func(yield func(string, reflect.Value) bool) {
		for i, f := range p.(*structPlan).fields {
			if p.(*structPlan).travels(v)&(1<<i) != 0 && !yield(f.name, f.of(v)) {
				return
			}
		}
	}
}

func (p *structPlan) write(e *encoder, v reflect.Value) {
	travels := p.travels(v)
	e.mapHead(bits.OnesCount64(travels))
	for i := range p.fields {
		if f := &p.fields[i]; travels&(1<<i) != 0 {
			e.out = append(e.out, f.key...)
			f.enc(e, f.of(v))
		}
	}
}

// travels returns which fields of v travel, a bit each: all but those of a union that do not belong to its type.
func (p *structPlan) travels(v reflect.Value) uint64 {
	if p.union == nil {
		return 1<<len(p.fields) - 1
	}
	return p.union[p.fields[0].of(v).String()] | 1
}

// read fills v. Keys it does not know are skipped, absent ones leave their fields as they are, a repeated one is refused.
// Fields of a union that do not belong to its type are left empty.
func (p *structPlan) read(d *decoder, v reflect.Value) *fieldError {
	n, err := d.mapHead()
	if err != nil {
		return err
	}
	var seen uint64
	i := -1
	for range n {
		key := d.key()
		// Most writers keep to the order of the fields.
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
		for extra := seen &^ p.travels(v); extra != 0; extra &= extra - 1 {
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

func planType(t reflect.Type) plan {
	switch t {
	case osStringType:
		return plan{
			func(e *encoder, v reflect.Value) { e.osString(v.String()) },
			func(d *decoder, v reflect.Value) *fieldError {
				s, err := d.readOSString()
				v.SetString(s)
				return err
			},
		}
	case envelopeType:
		return plan{writeEnvelope, readEnvelope}
	}
	switch t.Kind() {
	case reflect.String:
		return plan{
			func(e *encoder, v reflect.Value) { e.text(v.String()) },
			func(d *decoder, v reflect.Value) *fieldError {
				s, err := d.readStr()
				v.SetString(s)
				return err
			},
		}
	case reflect.Bool:
		return plan{
			func(e *encoder, v reflect.Value) { e.bool(v.Bool()) },
			func(d *decoder, v reflect.Value) *fieldError {
				b, err := d.readBool()
				v.SetBool(b)
				return err
			},
		}
	case reflect.Int, reflect.Int64, reflect.Int32, reflect.Int16, reflect.Int8:
		return plan{
			func(e *encoder, v reflect.Value) { e.int(v.Int()) },
			func(d *decoder, v reflect.Value) *fieldError {
				n, err := d.readInt()
				if err == nil && v.OverflowInt(n) {
					err = wrong(fmt.Sprintf("%d does not fit in %d bits", n, v.Type().Bits()))
				}
				v.SetInt(n)
				return err
			},
		}
	case reflect.Uint, reflect.Uint64, reflect.Uint32, reflect.Uint16, reflect.Uint8:
		return plan{
			func(e *encoder, v reflect.Value) { e.uint(v.Uint()) },
			func(d *decoder, v reflect.Value) *fieldError {
				n, err := d.readUint()
				if err == nil && v.OverflowUint(n) {
					err = wrong(fmt.Sprintf("%d does not fit in %d bits", n, v.Type().Bits()))
				}
				v.SetUint(n)
				return err
			},
		}
	case reflect.Float64:
		return plan{
			func(e *encoder, v reflect.Value) { e.float(v.Float()) },
			func(d *decoder, v reflect.Value) *fieldError {
				f, err := d.readFloat()
				v.SetFloat(f)
				return err
			},
		}
	case reflect.Struct:
		p := planStruct(t)
		return plan{p.write, p.read}
	case reflect.Pointer:
		return planPointer(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return plan{
				func(e *encoder, v reflect.Value) { e.bytes(v.Bytes()) },
				func(d *decoder, v reflect.Value) *fieldError {
					b, err := d.readBin()
					v.SetBytes(b)
					return err
				},
			}
		}
		return planSlice(t)
	case reflect.Map:
		if t.Key().Kind() == reflect.String {
			return planMap(t)
		}
	}
	panic("wire: no way to send " + t.String())
}

// planPointer sends a value that may be unset: nil, or what the pointer points to.
func planPointer(t reflect.Type) plan {
	p := planType(t)
	return plan{
		func(e *encoder, v reflect.Value) {
			if v.IsNil() {
				e.null()
				return
			}
			p.enc(e, v.Elem())
		},
		func(d *decoder, v reflect.Value) *fieldError {
			if d.null() {
				return nil
			}
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

// planSlice sends a list; a nil list is nil, which is not the same as an empty one (RequestOptions.Tools).
func planSlice(t reflect.Type) plan {
	p := planType(t.Elem())
	return plan{
		func(e *encoder, v reflect.Value) {
			if v.IsNil() {
				e.null()
				return
			}
			n := v.Len()
			e.arrayHead(n)
			for i := range n {
				p.enc(e, v.Index(i))
			}
		},
		func(d *decoder, v reflect.Value) *fieldError {
			if d.null() {
				return nil
			}
			n, err := d.arrayHead()
			if err != nil {
				return err
			}
			// Its elements are there: precheck counted them.
			const head = 24 // the slice's own, which reflect allocates
			if err := d.spend(allocated(head + n*int(t.Elem().Size()))); err != nil {
				return err
			}
			list := reflect.MakeSlice(t, n, n)
			for i := range n {
				if err := p.dec(d, list.Index(i)); err != nil {
					return inIndex(i, err)
				}
			}
			v.Set(list)
			return nil
		},
	}
}

// planMap sends a map with its keys sorted, so that equal messages are equal bytes. A key that is not UTF-8 (of an
// environment variable: there are such names) cannot travel and is left out with its value.
func planMap(t reflect.Type) plan {
	p := planType(t.Elem())
	return plan{
		func(e *encoder, v reflect.Value) {
			if v.IsNil() {
				e.null()
				return
			}
			keys := SortedKeys(v)
			e.mapHead(len(keys))
			for _, k := range keys {
				e.text(k.String())
				p.enc(e, v.MapIndex(k))
			}
		},
		func(d *decoder, v reflect.Value) *fieldError {
			if d.null() {
				return nil
			}
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
					return inKey(key, err)
				}
				if m.SetMapIndex(k, e); m.Len() == i {
					return inKey(key, wrong("it is there twice"))
				}
			}
			v.Set(m)
			return nil
		},
	}
}

// mapSize is at least what a map of n entries takes, each of that many bytes: a group of eight, and beyond that tables
// that Go rounds up to powers of two and splits where they fill unevenly (measured up to 100,000 entries).
func mapSize(n, entry int) int {
	const head = 48 + 32 // its own, and the key and the value through which reflect fills it
	switch {
	case n == 0:
		return head
	case n <= 8:
		return head + allocated(8*(entry+1))
	}
	return head + 128 + n*(entry+1)*3
}

// SortedKeys returns the keys of a map of strings that can travel, sorted.
func SortedKeys(v reflect.Value) []reflect.Value {
	keys := slices.DeleteFunc(v.MapKeys(), func(k reflect.Value) bool { return !utf8.ValidString(k.String()) })
	slices.SortFunc(keys, func(a, b reflect.Value) int {
		switch {
		case a.String() < b.String():
			return -1
		case a.String() > b.String():
			return 1
		}
		return 0
	})
	return keys
}

// writeEnvelope sends a whole message as [kind, body]; an empty envelope, or what is no message of the protocol, is nil.
func writeEnvelope(e *encoder, v reflect.Value) {
	m := v.Interface().(Envelope).Message
	if m == nil || e.message(m) != nil {
		e.null()
	}
}

// readEnvelope leaves the envelope of a kind that this build does not know empty: a page of history from a newer daemon
// is worth reading without it.
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
