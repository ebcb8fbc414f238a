package jsonview_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"sublet/wire"
	"sublet/wire/jsonview"
	"sublet/wire/wiretest"
)

// The JSON view of every message is valid JSON on one line, has every field, and reads back as the message.
func TestJSONRoundTrip(t *testing.T) {
	for _, m := range wiretest.All() {
		view := jsonview.Of(m)
		var o map[string]any
		if err := json.Unmarshal(view, &o); err != nil {
			t.Errorf("%s: %v in %s", wire.KindOf(m), err, view)
			continue
		}
		names := []string{"kind"}
		for name := range wire.Fields(reflect.ValueOf(m).Elem()) {
			names = append(names, name)
		}
		for _, name := range names {
			if _, ok := o[name]; !ok && o[name+"_base64"] == nil {
				t.Errorf("%s: field %s is not in %s", wire.KindOf(m), name, view)
			}
		}
		for _, c := range string(view) {
			if c < 0x20 || c >= 0x7f && c < 0xa0 || c == 0x202e {
				t.Errorf("%s: control character %U in %s", wire.KindOf(m), c, view)
			}
		}
		got, err := wiretest.FromJSON(view)
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", wire.KindOf(m), got, err, m)
		}
	}
}

// Bytes are text where they are UTF-8, and base64 under another name where they are not.
func TestJSONBytes(t *testing.T) {
	m := &wire.CommandCompleted{Output: []byte("a\xff"), Cwd: "/\xff", Leftovers: nil, Notes: []string{}}
	got := jsonview.Of(m)
	for _, want := range []string{`"output_base64":"Yf8="`, `"cwd_base64":"L/8="`, `"leftovers":null`, `"notes":[]`, `"exit_code":null`} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%s not in %s", want, got)
		}
	}
	hidden := jsonview.Of(&wire.CommandCompleted{Cwd: "/\u061c\u200e\u202e\u2069\u2028"})
	if want := `"cwd":"/\u061c\u200e\u202e\u2069\u2028"`; !strings.Contains(string(hidden), want) {
		t.Errorf("%s not in %q", want, hidden)
	}
	env := jsonview.Of(&wire.EnvSnapshot{Env: map[string]wire.OSString{"A": "ok", "B": "\xff"}})
	if want := `"env":{"A":"ok","B":{"base64":"/w=="}}`; !strings.Contains(string(env), want) {
		t.Errorf("%s not in %s", want, env)
	}
}
