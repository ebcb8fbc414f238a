package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"

	"sublet/client/internal/gateway"
)

// Codes of the document's table.
const (
	codeParse      = -32700
	codeRequest    = -32600
	codeMethod     = -32601
	codeParams     = -32602
	codeInternal   = -32603
	codeAgent      = -32000
	codeModel      = -32001
	codeTool       = -32002
	codeTimeout    = -32003
	codeCancelled  = -32004
	codePermission = -32005
)

// failure is an error of the protocol. Message begins with the table's words.
type failure struct {
	Code    int            `json:"code"`
	Message string         `json:"message"`
	Data    map[string]any `json:"data,omitempty"`
}

func failed(code int, format string, args ...any) *failure {
	return &failure{Code: code, Message: titles[code] + ": " + fmt.Sprintf(format, args...)}
}

func (f *failure) with(key string, value any) *failure {
	if f.Data == nil {
		f.Data = map[string]any{}
	}
	f.Data[key] = value
	return f
}

var titles = map[int]string{
	codeParse: "Parse error", codeRequest: "Invalid Request", codeMethod: "Method not found", codeParams: "Invalid params",
	codeInternal: "Internal error", codeAgent: "Agent error", codeModel: "Model error", codeTool: "Tool error",
	codeTimeout: "Timeout", codeCancelled: "Cancelled", codePermission: "Permission denied",
}

// request is a request, or a notification: then ID is nil.
type request struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
}

var null = json.RawMessage("null")

type response struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"` // null if none could be read
	Result  any             `json:"result,omitempty"`
	Error   *failure        `json:"error,omitempty"`
}

func answer(id json.RawMessage, result any, f *failure) *response {
	if id == nil {
		id = null
	}
	return &response{Version: "2.0", ID: id, Result: result, Error: f}
}

type notification struct {
	Version string `json:"jsonrpc"`
	Method  string `json:"method"`
	Params  any    `json:"params"`
}

// values splits a line into its messages: one, or those of a batch.
func values(line []byte) (list []json.RawMessage, batch bool, f *failure) {
	var whole json.RawMessage
	d := json.NewDecoder(bytes.NewReader(line))
	if err := d.Decode(&whole); err != nil {
		return nil, false, failed(codeParse, "%s", gateway.Fault(err))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, false, failed(codeParse, "more than one JSON value on the line")
	}
	if whole[0] != '[' {
		return []json.RawMessage{whole}, false, nil
	}
	var few gateway.Few[json.RawMessage]
	if err := json.Unmarshal(whole, &few); err != nil { // it is JSON, so only the number of elements can be wrong
		return nil, false, failed(codeRequest, "a batch of more than %d messages", gateway.MaxList).with("limit", gateway.MaxList)
	}
	list = few
	if len(list) == 0 {
		return nil, false, failed(codeRequest, "an empty batch")
	}
	return list, true, nil
}

// parse checks the envelope of one message (P4, A15, A16). It returns the id also with an error, if it could be read.
func parse(raw json.RawMessage) (r request, f *failure) {
	var fields map[string]json.RawMessage
	if raw[0] != '{' {
		return r, failed(codeRequest, "a message is an object")
	}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return r, failed(codeRequest, "%s", gateway.Fault(err))
	}
	if id, ok := fields["id"]; ok {
		switch c := id[0]; {
		case c == '"', c == '-', c >= '0' && c <= '9':
			r.ID = id
		default:
			return r, failed(codeRequest, "id: want a number or a string")
		}
	}
	var version string
	if err := json.Unmarshal(fields["jsonrpc"], &version); fields["jsonrpc"] == nil || err != nil || version != "2.0" {
		return r, failed(codeRequest, `jsonrpc: want "2.0"`)
	}
	method, ok := fields["method"]
	if !ok || method[0] != '"' {
		return r, failed(codeRequest, "method: want a string")
	}
	if err := json.Unmarshal(method, &r.Method); err != nil {
		return r, failed(codeRequest, "method: %s", gateway.Fault(err))
	}
	if params, ok := fields["params"]; ok {
		if params[0] != '{' && params[0] != '[' {
			return r, failed(codeRequest, "params: want an object or an array")
		}
		r.Params = params
	}
	return r, nil
}

// decode decodes params into a struct; the elements of an array get the names of its fields in order. The fields in need
// must be there, and neither null nor "".
func (r *request) decode(to any, need ...string) *failure {
	params, object := r.Params, map[string]json.RawMessage{}
	if params == nil {
		params = json.RawMessage("{}")
	}
	var err error
	if params[0] == '[' {
		var list []json.RawMessage
		err = json.Unmarshal(params, &list)
		fields := slices.Collect(reflect.TypeOf(to).Elem().Fields())
		if len(list) > len(fields) {
			return failed(codeParams, "%d of them, want at most %d", len(list), len(fields))
		}
		for i, v := range list {
			object[fields[i].Tag.Get("json")] = v
		}
		params, _ = json.Marshal(object) // cannot fail: the values were decoded from JSON
	} else {
		err = json.Unmarshal(params, &object)
	}
	if err = errors.Join(err, json.Unmarshal(params, to)); err != nil {
		return failed(codeParams, "%s", gateway.Fault(err))
	}
	for _, name := range need {
		if v := string(object[name]); v == "" || v == "null" || v == `""` {
			return failed(codeParams, "%s: is missing", name)
		}
	}
	return nil
}

// repeatsID reports whether a batch has used an id before: its response could not be matched to its request.
func repeatsID(seen []json.RawMessage, id json.RawMessage) bool {
	return slices.ContainsFunc(seen, func(s json.RawMessage) bool { return bytes.Equal(s, id) })
}
