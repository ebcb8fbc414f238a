package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// tokenSize returns the size in bytes of the token at the start of p: a whole scalar, str or bin, or the head of an array
// or map, of which children values follow (two for each entry of a map). It fails where p is shorter, and on types that
// the protocol does not use.
func tokenSize(p []byte) (size, children int, err error) {
	if len(p) == 0 {
		return 0, 0, errShort
	}
	c := p[0]
	switch {
	case c < 0x80 || c >= 0xe0: // fixint
		return 1, 0, nil
	case c < 0x90: // fixmap
		return 1, 2 * int(c&0x0f), nil
	case c < 0xa0: // fixarray
		return 1, int(c & 0x0f), nil
	case c < 0xc0: // fixstr
		return sizeOf(p, 1, uint64(c&0x1f))
	}
	switch c {
	case msgpcode.Nil, msgpcode.False, msgpcode.True:
		return 1, 0, nil
	case msgpcode.Uint8, msgpcode.Int8:
		return sizeOf(p, 1, 1)
	case msgpcode.Uint16, msgpcode.Int16:
		return sizeOf(p, 1, 2)
	case msgpcode.Uint32, msgpcode.Int32, msgpcode.Float:
		return sizeOf(p, 1, 4)
	case msgpcode.Uint64, msgpcode.Int64, msgpcode.Double:
		return sizeOf(p, 1, 8)
	case msgpcode.Str8, msgpcode.Bin8:
		n, ok := bigEndian(p[1:], 1)
		return sizeOfLong(ok, p, 2, n)
	case msgpcode.Str16, msgpcode.Bin16:
		n, ok := bigEndian(p[1:], 2)
		return sizeOfLong(ok, p, 3, n)
	case msgpcode.Str32, msgpcode.Bin32:
		n, ok := bigEndian(p[1:], 4)
		return sizeOfLong(ok, p, 5, n)
	case msgpcode.Array16:
		return sizeOfContainer(p, 2, 1)
	case msgpcode.Array32:
		return sizeOfContainer(p, 4, 1)
	case msgpcode.Map16:
		return sizeOfContainer(p, 2, 2)
	case msgpcode.Map32:
		return sizeOfContainer(p, 4, 2)
	case 0xc1:
		return 0, 0, malformed("byte 0xc1, which msgpack does not use")
	default:
		return 0, 0, malformed("an extension type; this protocol has none")
	}
}

// malformed is an error: the reason why bytes are not a payload.
type malformed string

func (m malformed) Error() string { return string(m) }

const errShort = malformed("it ends in the middle of a value")

// bigEndian reads an unsigned integer of width 1, 2 or 4 bytes; it returns false where p is shorter.
func bigEndian(p []byte, width int) (uint64, bool) {
	if len(p) < width {
		return 0, false
	}
	switch width {
	case 1:
		return uint64(p[0]), true
	case 2:
		return uint64(binary.BigEndian.Uint16(p)), true
	default:
		return uint64(binary.BigEndian.Uint32(p)), true
	}
}

// sizeOf returns the size of a token that has head bytes before its n bytes of content, and no children. It fails where p is
// shorter.
func sizeOf(p []byte, head int, n uint64) (int, int, error) {
	if n > uint64(len(p)) || head+int(n) > len(p) {
		return 0, 0, errShort
	}
	return head + int(n), 0, nil
}

func sizeOfLong(ok bool, p []byte, head int, n uint64) (int, int, error) {
	if !ok {
		return 0, 0, errShort
	}
	return sizeOf(p, head, n)
}

// sizeOfContainer returns the size of the head of an array or map whose length has width bytes, and the number of values that
// follow: each per element (1 for an array, 2 for a map). It fails where the rest of p is too short for values of one byte.
func sizeOfContainer(p []byte, width int, each uint64) (int, int, error) {
	n, ok := bigEndian(p[1:], width)
	if !ok || n*each > uint64(len(p)-1-width) {
		return 0, 0, errShort
	}
	return 1 + width, int(n * each), nil
}

// precheck validates a payload without recursion or allocation, because msgpack/v5 allocates what a length announces and
// recurses as deep as values nest. It refuses lengths beyond the end, nesting over MaxDepth, more than MaxElements values,
// maps of more than MaxEntries, keys that are not str, extension types and trailing bytes.
func precheck(p []byte) error {
	type level struct {
		left  int // values that still follow; keys of a map count
		isMap bool
	}
	var stack [MaxDepth]level
	depth, elements := 0, 0
	for {
		size, children, err := tokenSize(p)
		if err != nil {
			return err
		}
		if elements++; elements > MaxElements {
			return malformed(fmt.Sprintf("it holds more than %d values", MaxElements))
		}
		c := p[0]
		if depth > 0 {
			top := &stack[depth-1]
			if top.isMap && top.left&1 == 0 && !msgpcode.IsString(c) {
				return malformed("a map's key is " + typeName(c) + ", not str")
			}
			top.left--
		}
		p = p[size:]
		if children > 2*MaxEntries && isMap(c) {
			return malformed(fmt.Sprintf("one of its maps has more than %d entries", MaxEntries))
		}
		if children > 0 {
			if depth == MaxDepth {
				return malformed(fmt.Sprintf("it nests deeper than %d", MaxDepth))
			}
			stack[depth] = level{children, isMap(c)}
			depth++
		}
		for depth > 0 && stack[depth-1].left == 0 {
			depth--
		}
		if depth == 0 {
			if len(p) > 0 {
				return malformed(fmt.Sprintf("%d bytes follow its end", len(p)))
			}
			return nil
		}
	}
}

func isMap(c byte) bool { return msgpcode.IsFixedMap(c) || c == msgpcode.Map16 || c == msgpcode.Map32 }

func isArray(c byte) bool {
	return msgpcode.IsFixedArray(c) || c == msgpcode.Array16 || c == msgpcode.Array32
}

// typeName names the type of the value that begins with c, for messages to people.
func typeName(c byte) string {
	switch {
	case c < 0x80 || c >= 0xe0 || c >= msgpcode.Uint8 && c <= msgpcode.Int64:
		return "int"
	case isMap(c):
		return "map"
	case isArray(c):
		return "array"
	case msgpcode.IsString(c):
		return "str"
	case msgpcode.IsBin(c):
		return "bin"
	case c == msgpcode.Nil:
		return "nil"
	case c == msgpcode.False || c == msgpcode.True:
		return "bool"
	case c == msgpcode.Float || c == msgpcode.Double:
		return "float"
	default:
		return "ext"
	}
}
