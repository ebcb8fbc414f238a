package wire

import (
	"fmt"

	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// following is, for each type byte from 0xc0 to 0xdf, how many bytes of a number follow it: the value of a scalar, or the
// length of a str, bin, array or map. It is noType for bytes that msgpack does not use and for extension types.
var following = [...]int8{
	0, noType, 0, 0, // nil, 0xc1, false, true
	1, 2, 4, noType, noType, noType, // bin, ext
	4, 8, 1, 2, 4, 8, 1, 2, 4, 8, // float, uint, int
	noType, noType, noType, noType, noType, // fixext
	1, 2, 4, 2, 4, 2, 4, // str, array, map
}

const noType = -1

// tokenSize returns the size in bytes of the token at the start of p: a whole scalar, str or bin, or the head of an array
// or map, of which children values follow (two for each entry of a map). It fails where p is shorter than the token or has
// less than a byte for each child, and on types that the protocol does not use.
func tokenSize(p []byte) (size, children int, err error) {
	if len(p) == 0 {
		return 0, 0, errShort
	}
	c := p[0]
	size = 1
	content := uint64(0) // bytes of a str or bin
	values := uint64(0)  // elements of an array, or entries of a map
	switch {
	case msgpcode.IsFixedNum(c):
		return 1, 0, nil
	case msgpcode.IsFixedString(c):
		content = uint64(c & msgpcode.FixedStrMask)
	case isMap(c) && c < 0xc0, isArray(c) && c < 0xc0:
		values = uint64(c & 0x0f)
	default:
		width := following[c-0xc0]
		switch {
		case c == 0xc1:
			return 0, 0, malformed("byte 0xc1, which msgpack does not use")
		case width == noType:
			return 0, 0, malformed("an extension type; this protocol has none")
		}
		if size += int(width); size > len(p) {
			return 0, 0, errShort
		}
		switch n := bigEndian(p[1:size]); {
		case msgpcode.IsString(c), msgpcode.IsBin(c):
			content = n
		case isArray(c), isMap(c):
			values = n
		}
	}
	if isMap(c) {
		values *= 2
	}
	if content+values > uint64(len(p)-size) {
		return 0, 0, errShort
	}
	return size + int(content), int(values), nil
}

// malformed is an error: the reason why bytes are not a payload.
type malformed string

func (m malformed) Error() string { return string(m) }

const errShort = malformed("it ends in the middle of a value")

func bigEndian(p []byte) (n uint64) {
	for _, b := range p {
		n = n<<8 | uint64(b)
	}
	return n
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
