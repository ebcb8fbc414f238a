package wire

import (
	"encoding/binary"
	"math"
	"strings"
	"unicode/utf8"
)

// The primitives of encoding: each appends one msgpack value in its shortest form.

func appendNil(dst []byte) []byte { return append(dst, mpNil) }

func appendBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, mpTrue)
	}
	return append(dst, mpFalse)
}

func appendUint(dst []byte, n uint64) []byte {
	switch {
	case n < 0x80:
		return append(dst, byte(n))
	case n <= math.MaxUint8:
		return append(dst, mpUint8, byte(n))
	case n <= math.MaxUint16:
		return append(dst, mpUint16, byte(n>>8), byte(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, mpUint32), uint32(n))
	default:
		return binary.BigEndian.AppendUint64(append(dst, mpUint64), n)
	}
}

func appendInt(dst []byte, n int64) []byte {
	switch {
	case n >= 0:
		return appendUint(dst, uint64(n))
	case n >= -32:
		return append(dst, byte(n))
	case n >= math.MinInt8:
		return append(dst, mpInt8, byte(n))
	case n >= math.MinInt16:
		return append(dst, mpInt16, byte(n>>8), byte(n))
	case n >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(dst, mpInt32), uint32(n))
	default:
		return binary.BigEndian.AppendUint64(append(dst, mpInt64), uint64(n))
	}
}

// appendFloat encodes an infinity or not-a-number as 0: neither means anything here, and JSON has no word for them.
func appendFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		f = 0
	}
	return binary.BigEndian.AppendUint64(append(dst, mpFloat64), math.Float64bits(f))
}

// appendStr encodes text. What is not UTF-8 in it, from a model or a program, becomes U+FFFD: readers refuse it otherwise.
func appendStr(dst []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return append(appendStrHead(dst, len(s)), s...)
}

func appendStrHead(dst []byte, n int) []byte {
	switch {
	case n < 32:
		return append(dst, 0xa0|byte(n))
	case n <= math.MaxUint8:
		return append(dst, mpStr8, byte(n))
	case n <= math.MaxUint16:
		return append(dst, mpStr16, byte(n>>8), byte(n))
	default:
		return binary.BigEndian.AppendUint32(append(dst, mpStr32), uint32(n))
	}
}

// appendBin encodes bytes; nil bytes are nil.
func appendBin(dst, b []byte) []byte {
	if b == nil {
		return appendNil(dst)
	}
	return append(appendBinHead(dst, len(b)), b...)
}

func appendBinHead(dst []byte, n int) []byte {
	switch {
	case n <= math.MaxUint8:
		return append(dst, mpBin8, byte(n))
	case n <= math.MaxUint16:
		return append(dst, mpBin16, byte(n>>8), byte(n))
	default:
		return binary.BigEndian.AppendUint32(append(dst, mpBin32), uint32(n))
	}
}

// appendOSString encodes text of the operating system: str where it is UTF-8, bin where it is not.
func appendOSString(dst []byte, s string) []byte {
	if utf8.ValidString(s) {
		return append(appendStrHead(dst, len(s)), s...)
	}
	return append(appendBinHead(dst, len(s)), s...)
}

func appendArrayHead(dst []byte, n int) []byte {
	switch {
	case n < 16:
		return append(dst, 0x90|byte(n))
	case n <= math.MaxUint16:
		return append(dst, mpArray16, byte(n>>8), byte(n))
	default:
		return binary.BigEndian.AppendUint32(append(dst, mpArray32), uint32(n))
	}
}

func appendMapHead(dst []byte, n int) []byte {
	switch {
	case n < 16:
		return append(dst, 0x80|byte(n))
	case n <= math.MaxUint16:
		return append(dst, mpMap16, byte(n>>8), byte(n))
	default:
		return binary.BigEndian.AppendUint32(append(dst, mpMap32), uint32(n))
	}
}

// appendKey appends a field's name, which is ASCII and shorter than 32 bytes (a test holds every tag to it).
func appendKey(dst []byte, name string) []byte {
	return append(append(dst, 0xa0|byte(len(name))), name...)
}
