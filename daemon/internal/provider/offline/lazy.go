package offline

import (
	"regexp"
	"sync"
)

// pattern is a regular expression compiled when it is first used: all of them together cost each start of the program
// three milliseconds otherwise, whatever model it then talks to. Safe for concurrent use.
type pattern struct{ compiled func() *regexp.Regexp }

func rx(text string) *pattern {
	return &pattern{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })}
}

func (p *pattern) MatchString(s string) bool            { return p.compiled().MatchString(s) }
func (p *pattern) FindString(s string) string           { return p.compiled().FindString(s) }
func (p *pattern) FindStringSubmatch(s string) []string { return p.compiled().FindStringSubmatch(s) }

func (p *pattern) FindStringSubmatchIndex(s string) []int {
	return p.compiled().FindStringSubmatchIndex(s)
}

func (p *pattern) FindAllString(s string) []string { return p.compiled().FindAllString(s, -1) }

func (p *pattern) FindAll(s string) [][]string { return p.compiled().FindAllStringSubmatch(s, -1) }

func (p *pattern) ReplaceAllString(s, by string) string { return p.compiled().ReplaceAllString(s, by) }
func (p *pattern) Split(s string, n int) []string       { return p.compiled().Split(s, n) }
