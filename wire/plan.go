package wire

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"unicode/utf8"
)

// A plan says how the values of one Go type travel. Plans are made once for each type, from the msgpack tags: every
// exported field travels under its tag, fields of embedded structs beside the others, and nothing is ever left out.
//
// msgpack/v5 reads and writes the same bytes (a test holds every kind to it) but is not used here: it wraps integers
// that do not fit, takes bin for str, duplicate keys and broken UTF-8, and needs guarding against hostile lengths.
type plan struct {
	enc func(dst []byte, v reflect.Value) []byte
	dec func(d *decoder, v reflect.Value) *fieldError
}

type structPlan struct {
	typ    reflect.Type
	fields []field
	byName map[string]int
}

type field struct {
	name  string
	index []int // for reflect.Value.FieldByIndex
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
			p.fields = append(p.fields, field{name, at, planType(f.Type)})
		}
	}
	add(typ, nil)
	if len(p.fields) > 64 {
		panic("wire: more than 64 fields in " + typ.String())
	}
	return p
}

// plans keeps the plans of structs inside messages for the JSON view; the codec holds its own by closure.
var plans sync.Map // reflect.Type → *structPlan

func planStructCached(t reflect.Type) *structPlan {
	if p, ok := plans.Load(t); ok {
		return p.(*structPlan)
	}
	p, _ := plans.LoadOrStore(t, planStruct(t))
	return p.(*structPlan)
}

func (p *structPlan) append(dst []byte, v reflect.Value) []byte {
	dst = appendMapHead(dst, len(p.fields))
	for i := range p.fields {
		f := &p.fields[i]
		dst = f.enc(appendKey(dst, f.name), f.of(v))
	}
	return dst
}

// read fills v. Keys it does not know are skipped, absent ones leave their fields as they are, a repeated one is refused.
func (p *structPlan) read(d *decoder, v reflect.Value) *fieldError {
	n, err := d.mapHead()
	if err != nil {
		return err
	}
	var seen uint64
	for range n {
		key := d.key()
		i, ok := p.byName[string(key)]
		if !ok {
			d.skip()
			continue
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
			func(dst []byte, v reflect.Value) []byte { return appendOSString(dst, v.String()) },
			func(d *decoder, v reflect.Value) *fieldError {
				s, err := d.readOSString()
				v.SetString(s)
				return err
			},
		}
	case chunkType:
		return plan{
			func(dst []byte, v reflect.Value) []byte { return appendChunk(dst, v.Addr().Interface().(*Chunk)) },
			func(d *decoder, v reflect.Value) *fieldError { return d.readChunk(v.Addr().Interface().(*Chunk)) },
		}
	case envelopeType:
		return plan{appendEnvelope, readEnvelope}
	}
	switch t.Kind() {
	case reflect.String:
		return plan{
			func(dst []byte, v reflect.Value) []byte { return appendStr(dst, v.String()) },
			func(d *decoder, v reflect.Value) *fieldError {
				s, err := d.readStr()
				v.SetString(s)
				return err
			},
		}
	case reflect.Bool:
		return plan{
			func(dst []byte, v reflect.Value) []byte { return appendBool(dst, v.Bool()) },
			func(d *decoder, v reflect.Value) *fieldError {
				b, err := d.readBool()
				v.SetBool(b)
				return err
			},
		}
	case reflect.Int, reflect.Int64, reflect.Int32, reflect.Int16, reflect.Int8:
		return plan{
			func(dst []byte, v reflect.Value) []byte { return appendInt(dst, v.Int()) },
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
			func(dst []byte, v reflect.Value) []byte { return appendUint(dst, v.Uint()) },
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
			func(dst []byte, v reflect.Value) []byte { return appendFloat(dst, v.Float()) },
			func(d *decoder, v reflect.Value) *fieldError {
				f, err := d.readFloat()
				v.SetFloat(f)
				return err
			},
		}
	case reflect.Struct:
		p := planStruct(t)
		return plan{p.append, p.read}
	case reflect.Pointer:
		return planPointer(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return plan{
				func(dst []byte, v reflect.Value) []byte { return appendBin(dst, v.Bytes()) },
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
		func(dst []byte, v reflect.Value) []byte {
			if v.IsNil() {
				return appendNil(dst)
			}
			return p.enc(dst, v.Elem())
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
		func(dst []byte, v reflect.Value) []byte {
			if v.IsNil() {
				return appendNil(dst)
			}
			n := v.Len()
			dst = appendArrayHead(dst, n)
			for i := range n {
				dst = p.enc(dst, v.Index(i))
			}
			return dst
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
		func(dst []byte, v reflect.Value) []byte {
			if v.IsNil() {
				return appendNil(dst)
			}
			keys := sortedKeys(v)
			dst = appendMapHead(dst, len(keys))
			for _, k := range keys {
				dst = p.enc(appendStr(dst, k.String()), v.MapIndex(k))
			}
			return dst
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

// sortedKeys returns the keys of a map of strings that can travel, sorted.
func sortedKeys(v reflect.Value) []reflect.Value {
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

// appendEnvelope sends a whole message as [kind, body]; an empty envelope is nil.
func appendEnvelope(dst []byte, v reflect.Value) []byte {
	m := v.Interface().(Envelope).Message
	if m == nil {
		return appendNil(dst)
	}
	out, err := appendPayload(dst, m)
	if err != nil {
		return appendNil(dst)
	}
	return out
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
