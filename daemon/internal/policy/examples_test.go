package policy

import (
	"strings"
	"testing"

	"sublet/wire"
)

// A rule is held to its examples, which are written by the user.
func TestCheckExamples(t *testing.T) {
	for _, tt := range []struct {
		decision string
		pattern  string
		match    []string
		noMatch  []string
		fault    string
	}{
		{Allow, "bash: go test *", []string{"go test ./...", "go test -run X ./a | tail -3", "cd src && go test ."}, []string{"go test ./... && rm -rf ~", "go build ./...", "go test -exec ./x ."}, ""},
		{Allow, "bash: go test *", []string{"go test ./... && go build ./..."}, nil, "something else in it"},
		{Allow, "bash: go test *", []string{"npm test"}, nil, "none of its commands"},
		{Allow, "bash: go *", nil, []string{"go build ./..."}, "not meant to be"},
		{Allow, "bash: git status *", []string{"git status --short"}, []string{"git push"}, ""},
		{Allow, "bash: rm -rf /", []string{"rm -rf /"}, nil, "no rule allows what is critical"},
		{Allow, "bash: rm *", []string{"rm $x"}, nil, "none of its commands"},
		{Deny, "bash: git push *", []string{"git push", "git -C d push -f", "env git push origin x", "ls && git push"}, []string{"git pull", "echo git push"}, ""},
		{Deny, "bash: rm -rf *", []string{"rm -r -f x", "/bin/rm -fr x"}, []string{"rm x"}, ""},
		{Ask, "effect: network", []string{"curl https://x.example"}, []string{"ls"}, ""},
		{Deny, "bash: git push *", []string{"git pull"}, nil, "no command that the rule names"},
		{Allow, "write: src/**", []string{"src/a/b.go"}, []string{"Makefile", "/etc/passwd"}, ""},
		{Deny, "write: ~/.ssh/**", []string{"~/.ssh/config"}, []string{"src/a.go"}, ""},
		{Allow, "read: ~/notes/*", []string{"~/notes/a"}, []string{"~/.ssh/id_rsa"}, ""},
		{Allow, "fetch: *.example.com", []string{"api.example.com"}, []string{"example.org"}, ""},
		{Deny, "tool: mcp__*", []string{"mcp__db__query"}, []string{"bash"}, ""},
		{Allow, "bash[high, in /srv/app]: git push *", []string{"git push origin main"}, []string{"git push --force"}, ""},
		{Allow, "bash go", nil, nil, "has no kind"},
		{Allow, "bash: ls", make([]string, MaxExamples+1), nil, "more than the limit"},
		{Allow, "bash: ls", []string{strings.Repeat("x", maxExampleText+1)}, nil, "longer than"},
	} {
		err := CheckExamples(wire.Rule{Decision: tt.decision, Pattern: tt.pattern, Match: tt.match, NoMatch: tt.noMatch})
		switch {
		case tt.fault == "" && err != nil:
			t.Errorf("%s %s: %v", tt.decision, tt.pattern, err)
		case tt.fault != "" && (err == nil || !strings.Contains(err.Error(), tt.fault)):
			t.Errorf("%s %s: got %v, want %q", tt.decision, tt.pattern, err, tt.fault)
		}
	}
}
