package shell

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Files behind a variable, which stays as it was typed, and behind another user's home; a variable in braces. Nothing else is
// expanded for a completion.
func TestCompleteLeads(t *testing.T) {
	t.Parallel()
	touched := filepath.Join(t.TempDir(), "touched")
	s := start(t, func(o *Options) {
		o.Env = append(o.Env, "TOUCHED="+touched)
		o.RC = rcFile(t, `
V=$PWD/'a folder' W=$PWD
export ZZ_VAR=1
_zz() { mapfile -t COMPREPLY < <(compgen -f -- "$2"); }
complete -o filenames -F _zz zz_files
`)
	})
	for _, name := range []string{"a folder/com mon", "a folder/comp/x", "a folder/other"} {
		path := filepath.Join(s.Dir(), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		line string
		want []string
	}{
		{"cat $V/com", []string{`$V/com\ mon file`, "$V/comp/ directory"}},
		{"cat ${V}/com", []string{`${V}/com\ mon file`, "${V}/comp/ directory"}},
		{`cat "$V/com`, []string{`"$V/com mon file`, `"$V/comp/ directory`}},
		{"cat $W/a", []string{`$W/a\ folder/ directory`}},
		{"cd $V/", []string{"$V/comp/ directory"}},
		{"zz_files $W/", []string{`$W/a\ folder/ directory`}},
		{"cat $NOSUCH/et", []string{"$NOSUCH/etc/ directory"}},
		{"cat '$V/com", nil},
		{`cat \$V/com`, nil},
		{`cat $(touch "$TOUCHED")/com`, nil},
		{"cat ${V:=x}/com", nil},
		{"cat ~roo", []string{"~root/ directory"}},
		{"echo ${ZZ_V", []string{"${ZZ_VAR} variable"}},
		{"echo $ZZ_V", []string{"$ZZ_VAR variable"}},
	} {
		_, cs, err := s.Complete(t.Context(), c.line, len(c.line))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, x := range cs {
			got = append(got, x.Text+" "+x.Description)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: got %q, want %q", c.line, got, c.want)
		}
	}
	if _, err := os.Stat(touched); err == nil {
		t.Error("a completion ran a command")
	}
}
