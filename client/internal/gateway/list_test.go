package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// P11: a list is decoded up to its bound and no further, and is otherwise what the library makes of it.
func TestFew(t *testing.T) {
	type holder struct {
		List Few[struct{ A int }] `json:"list"`
		Raw  Few[json.RawMessage] `json:"raw"`
	}
	for in, want := range map[string]string{
		`{}`: "<nil> 0 true", `{"list":null}`: "<nil> 0 true", `{"list":[]}`: "<nil> 0 false", `{"list":[{"a":1}, {"a":2}]}`: "<nil> 2 false",
		`{"list":[` + strings.Repeat("{},", MaxList-1) + `{}]}`:       "<nil> 1000 false",
		`{"list":[` + strings.Repeat("{},", MaxList+1) + `{"a":[]}]}`: "list: has a list of more than 1000 elements 0 true",
		`{"raw":[` + strings.Repeat("1,", 1<<16) + `1]}`:              "raw: has a list of more than 1000 elements 0 true",
	} {
		var h holder
		err := json.Unmarshal([]byte(in), &h)
		why := "<nil>"
		if err != nil {
			why = Fault(err)
		}
		if got := fmt.Sprintf("%s %d %v", why, len(h.List), h.List == nil); got != want {
			t.Errorf("%.40s: got %s, want %s", in, got, want)
		}
	}
	for _, in := range []string{`{"list":{}}`, `{"list":"x"}`, `{"list":7}`, `{"list":true}`, `{"list":[{"a":"x"}]}`, `{"list":[1]}`} {
		var wrong *json.UnmarshalTypeError
		if err := json.Unmarshal([]byte(in), &holder{}); !errors.As(err, &wrong) || !strings.HasPrefix(wrong.Field, "list") {
			t.Errorf("%s: got %v", in, err)
		}
	}
}
