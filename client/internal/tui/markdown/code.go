package markdown

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/colorprofile"
)

// A syntax describes a language by its words and delimiters, which is enough for the few colours that code has here. The
// lexer libraries such as chroma construct hundreds of languages when the program starts; this table is constant data, and a
// language costs nothing before a block of it is rendered.
type syntax struct {
	names    string // in info strings, lower case
	comment  string // begin a comment up to the end of the line
	block    string // begin and end of a comment over several lines, in pairs
	quotes   string // delimiters of strings that end on their line
	long     string // delimiters of strings over several lines
	letter   bool   // ' delimits one character, and may stand alone
	keys     bool   // what stands before : or = is a key
	tags     bool   // markup: only what is between < and > is code
	fold     bool   // keywords in either case
	keywords string
	builtins string // types, constants, functions
}

const (
	cWords  = "if else for while do switch case default break continue return goto sizeof typedef struct union enum static extern const volatile inline register "
	cTypes  = "void char short int long float double signed unsigned bool size_t true false NULL nullptr uint8_t uint16_t uint32_t uint64_t int8_t int16_t int32_t int64_t "
	jsWords = "async await break case catch class const continue debugger default delete do else export extends finally for from function if import in instanceof let new of return static super switch this throw try typeof var void while with yield "
	jsTypes = "true false null undefined NaN Infinity console document window process require module Promise Array Object String Number Boolean Map Set JSON Math Error "
	shWords = "if then elif else fi for while until do done case esac in function select time return exit break continue local export readonly declare typeset set unset shift source trap end begin switch and or not "
	shTools = "alias bg bind builtin cd command echo eval exec false fg getopts hash jobs kill let printf pushd popd pwd read test true type ulimit umask wait sudo "
)

// syntaxes are the languages that models write most. Another one is shown without colours.
var syntaxes = []syntax{
	{names: "go golang", comment: "//", block: "/* */", quotes: `"'`, long: "`", keywords: "break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var", builtins: "any append bool byte cap clear close complex128 complex64 comparable copy delete error false float32 float64 int int16 int32 int64 int8 iota len make max min new nil panic print println recover rune string true uint uint16 uint32 uint64 uint8 uintptr"},
	{names: "python py python3", comment: "#", quotes: `"'`, long: `""" '''`, keywords: "and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return try while with yield", builtins: "True False None self cls abs all any bool bytes dict enumerate filter float format getattr hasattr int isinstance iter len list map max min next object open print range repr reversed set setattr sorted str sum super tuple type zip"},
	{names: "javascript js jsx mjs cjs node", comment: "//", block: "/* */", quotes: `"'`, long: "`", keywords: jsWords, builtins: jsTypes},
	{names: "typescript ts tsx", comment: "//", block: "/* */", quotes: `"'`, long: "`", keywords: jsWords + "abstract as declare enum implements interface is keyof namespace private protected public readonly satisfies type", builtins: jsTypes + "any boolean never number object string symbol unknown bigint Record Partial"},
	{names: "bash sh shell zsh fish ksh console shell-session shellsession", comment: "#", quotes: `"'`, keywords: shWords, builtins: shTools},
	{names: "powershell ps1 pwsh", comment: "#", block: "<# #>", quotes: `"'`, fold: true, keywords: "begin break catch class continue do else elseif end exit filter finally for foreach function if in param process return switch throw trap try until while", builtins: "$true $false $null"},
	{names: "c h", comment: "//", block: "/* */", quotes: `"`, letter: true, keywords: cWords, builtins: cTypes},
	{names: "cpp c++ cc cxx hpp arduino", comment: "//", block: "/* */", quotes: `"`, letter: true, keywords: cWords + "alignas auto catch class concept consteval constexpr co_await co_return co_yield decltype delete explicit final friend mutable namespace new noexcept operator override private protected public requires static_assert template this throw try typename using virtual", builtins: cTypes + "std string vector map set unique_ptr shared_ptr"},
	{names: "rust rs", comment: "//", block: "/* */", quotes: `"`, letter: true, keywords: "as async await break const continue crate dyn else enum extern fn for if impl in let loop match mod move mut pub ref return static struct super trait type unsafe use where while", builtins: "self Self true false bool char str u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64 String Vec Option Some None Result Ok Err Box Rc Arc"},
	{names: "java", comment: "//", block: "/* */", quotes: `"`, long: `"""`, letter: true, keywords: "abstract assert break case catch class continue default do else enum extends final finally for if implements import instanceof interface native new package private protected public record return sealed static super switch synchronized this throw throws transient try var volatile while yield", builtins: "boolean byte char double float int long short void true false null String Object Integer Long List Map Set Optional"},
	{names: "kotlin kt kts", comment: "//", block: "/* */", quotes: `"`, long: `"""`, letter: true, keywords: "abstract as break by catch class companion const continue data do else enum final finally for fun if import in init inline inner interface internal is lateinit object open operator out override package private protected public return sealed super suspend this throw try typealias val var when where while", builtins: "true false null Any Boolean Byte Char Double Float Int Long Short String Unit List Map Set"},
	{names: "csharp cs c#", comment: "//", block: "/* */", quotes: `"`, letter: true, keywords: "abstract as async await base break case catch class const continue default delegate do else enum event explicit extern finally fixed for foreach get if implicit in interface internal is lock namespace new operator out override params private protected public readonly record ref return sealed set static struct switch this throw try typeof unsafe using var virtual volatile when where while yield", builtins: "bool byte char decimal double dynamic float int long object sbyte short string uint ulong ushort void true false null"},
	{names: "swift", comment: "//", block: "/* */", quotes: `"`, long: `"""`, keywords: "actor as associatedtype async await break case catch class continue default defer deinit do else enum extension fileprivate for func guard if import in init inout internal is let mutating open operator override private protocol public repeat rethrows return static struct subscript super switch throw throws try typealias var where while", builtins: "self Self true false nil Any Bool Character Double Float Int String Array Dictionary Set Optional Void"},
	{names: "scala", comment: "//", block: "/* */", quotes: `"`, long: `"""`, letter: true, keywords: "abstract case catch class def do else enum extends final finally for given if implicit import lazy match new object override package private protected return sealed super this throw trait try type using val var while with yield", builtins: "true false null Any Boolean Double Int Long String Unit List Map Option Some None Seq Set"},
	{names: "dart", comment: "//", block: "/* */", quotes: `"'`, long: `""" '''`, keywords: "abstract as assert async await break case catch class const continue default do else enum export extends extension factory final finally for get if implements import in is late library mixin new on operator part required rethrow return set static super switch this throw try typedef var while with yield", builtins: "bool double dynamic int num void true false null String List Map Set Future Stream"},
	{names: "zig", comment: "//", quotes: `"`, letter: true, keywords: "align allowzero and asm async await break catch comptime const continue defer else enum errdefer error export extern fn for if inline noalias or orelse packed pub resume return struct suspend switch test threadlocal try union unreachable usingnamespace var volatile while", builtins: "bool void u8 u16 u32 u64 usize i8 i16 i32 i64 isize f32 f64 anytype anyerror type true false null undefined"},
	{names: "ruby rb", comment: "#", quotes: "\"'`", keywords: "alias and begin break case class def defined? do else elsif end ensure for if in module next not or redo rescue retry return super then undef unless until when while yield", builtins: "true false nil self puts print require require_relative attr_accessor attr_reader attr_writer include extend raise lambda proc"},
	{names: "php", comment: "// #", block: "/* */", quotes: `"'`, fold: true, keywords: "abstract and as break case catch class clone const continue declare default do echo else elseif enum extends final finally fn for foreach function global if implements include include_once instanceof interface match namespace new or print private protected public readonly require require_once return static switch throw trait try use var while xor yield", builtins: "true false null self parent array bool float int iterable mixed object string void isset unset empty"},
	{names: "perl pl", comment: "#", quotes: `"'`, keywords: "and cmp continue do else elsif eq for foreach ge given gt if last le local lt my ne next no not or our package redo require return sub unless until use when while xor", builtins: "chomp close defined delete die each exists join keys map open print printf push pop ref say scalar shift sort split sprintf substr undef unshift values"},
	{names: "lua", comment: "--", block: "--[[ ]]", quotes: `"'`, keywords: "and break do else elseif end for function goto if in local not or repeat return then until while", builtins: "true false nil self ipairs pairs print require setmetatable string table tostring tonumber type"},
	{names: "r", comment: "#", quotes: `"'`, keywords: "break else for function if in next repeat return while library", builtins: "TRUE FALSE NULL NA Inf NaN c data.frame list print"},
	{names: "julia jl", comment: "#", block: "#= =#", quotes: `"`, long: `"""`, letter: true, keywords: "abstract baremodule begin break catch const continue do else elseif end export finally for function global if import in let local macro module mutable quote return struct try using where while", builtins: "true false nothing Int Int64 Float64 String Bool Vector Matrix Array println print"},
	{names: "haskell hs", comment: "--", block: "{- -}", quotes: `"`, letter: true, keywords: "case class data default deriving do else forall foreign if import in infix infixl infixr instance let module newtype of then type where", builtins: "True False Nothing Just Left Right Maybe Either IO Int Integer Double Char String Bool"},
	{names: "ocaml ml fsharp fs f#", comment: "//", block: "(* *)", quotes: `"`, letter: true, keywords: "and as begin class do done downto else end exception external for fun function if in include let match method module mutable new object of open rec sig struct then to try type val when while with", builtins: "true false None Some Ok Error int float string bool unit list option"},
	{names: "elixir ex exs", comment: "#", quotes: `"'`, long: `"""`, keywords: "after alias and case catch cond def defimpl defmacro defmodule defp defprotocol defstruct do else end fn for if import in not or quote raise receive require rescue try unless use when with", builtins: "true false nil"},
	{names: "erlang erl", comment: "%", quotes: `"'`, keywords: "after and andalso begin case catch end fun if let not of or orelse receive try when xor", builtins: "true false undefined ok error"},
	{names: "clojure clj lisp scheme elisp racket", comment: ";", quotes: `"`, keywords: "def defn defmacro defun defvar define lambda fn let let* letrec loop recur if cond when unless do begin progn ns require use import case and or not setq", builtins: "true false nil"},
	{names: "sql postgresql postgres psql mysql sqlite plpgsql", comment: "--", block: "/* */", quotes: `'"`, fold: true, keywords: "add all alter analyze and as asc begin between by cascade case check column commit conflict constraint create cross database default delete desc distinct drop else end exists explain foreign from full function group having if in index inner insert intersect into is join key left like limit not null offset on or order outer primary references returning right rollback select set table then transaction trigger union unique update using values view when where with", builtins: "bigint boolean char date decimal double float int integer json jsonb numeric real serial smallint text time timestamp timestamptz uuid varchar true false count sum avg min max coalesce now"},
	{names: "json json5 jsonc jsonl", comment: "//", block: "/* */", quotes: `"`, keys: true, builtins: "true false null"},
	{names: "yaml yml", comment: "#", quotes: `"'`, keys: true, builtins: "true false null yes no on off"},
	{names: "toml", comment: "#", quotes: `"'`, long: `""" '''`, keys: true, builtins: "true false"},
	{names: "ini conf cfg properties dotenv env systemd editorconfig gitconfig", comment: "# ;", quotes: `"`, keys: true, builtins: "true false yes no on off"},
	{names: "makefile make mk", comment: "#", quotes: `"'`, keys: true, keywords: "include define endef ifdef ifndef ifeq ifneq else endif export unexport override .PHONY"},
	{names: "dockerfile docker containerfile", comment: "#", quotes: `"'`, keywords: "FROM AS RUN CMD LABEL EXPOSE ENV ADD COPY ENTRYPOINT VOLUME USER WORKDIR ARG ONBUILD STOPSIGNAL HEALTHCHECK SHELL"},
	{names: "terraform hcl tf", comment: "# //", block: "/* */", quotes: `"`, keys: true, keywords: "resource data variable output module provider terraform locals for in if", builtins: "true false null string number bool list map set object any"},
	{names: "nix", comment: "#", block: "/* */", quotes: `"`, long: "''", keys: true, keywords: "let in with rec inherit if then else assert import", builtins: "true false null builtins"},
	{names: "nginx", comment: "#", quotes: `"'`, keywords: "http server location upstream listen server_name root index proxy_pass return rewrite include if events", builtins: "on off"},
	{names: "protobuf proto", comment: "//", block: "/* */", quotes: `"'`, keywords: "syntax package import option message enum service rpc returns stream oneof map repeated optional required reserved extend extensions", builtins: "double float int32 int64 uint32 uint64 sint32 sint64 fixed32 fixed64 bool string bytes true false"},
	{names: "graphql gql", comment: "#", quotes: `"`, long: `"""`, keywords: "query mutation subscription fragment on type interface union enum input scalar schema extend implements directive", builtins: "Int Float String Boolean ID true false null"},
	{names: "css scss sass less", comment: "//", block: "/* */", quotes: `"'`, keys: true, builtins: "inherit initial none auto"},
	{names: "html xml svg xhtml vue svelte", block: "<!-- -->", quotes: `"'`, tags: true},
	{names: "vim viml vimscript", quotes: `'`, keywords: "let if else elseif endif for endfor while endwhile function endfunction return call set autocmd augroup map nmap nnoremap inoremap vnoremap command syntax highlight"},
}

// The colours are the terminal's own, which can be read on light and dark alike.
const (
	inkComment = "90"
	inkKeyword = "1;34"
	inkBuiltin = "36"
	inkString  = "32"
	inkNumber  = "35"
	inkKey     = "34"
	inkMeta    = "35" // variables, decorators, directives of a preprocessor
)

// highlight colours code in a language that the table above has, and returns other code as it is.
func highlight(code, language string) string {
	language = strings.ToLower(language)
	if language == "diff" || language == "patch" {
		return strings.Join((&Renderer{Profile: colorprofile.ANSI}).Diff(strings.Split(code, "\n")), "\n")
	}
	for i := range syntaxes {
		if s := &syntaxes[i]; slices.Contains(strings.Fields(s.names), language) {
			h := highlighter{syntax: s, code: code, tokens: s.tokens(), inks: map[string]string{}}
			for ink, words := range map[string]string{inkKeyword: s.keywords, inkBuiltin: s.builtins} {
				for _, w := range strings.Fields(words) {
					h.inks[w] = ink
				}
			}
			return h.run()
		}
	}
	return code
}

// Groups of the expression that tokens returns.
const (
	groupComment = 1 + iota
	groupString
	groupMeta
	groupWord
	groupTag
)

// tokens returns an expression for what may have a colour, with the groups above in their order. It never
// matches the empty text, at which run would stay for ever.
func (s *syntax) tokens() *regexp.Regexp {
	var comments, quoted []string
	for pair := range slices.Chunk(strings.Fields(s.block), 2) {
		comments = append(comments, between(pair[0], pair[1]))
	}
	for _, start := range strings.Fields(s.comment) {
		comments = append(comments, regexp.QuoteMeta(start)+`[^\n]*`)
	}
	for _, quote := range strings.Fields(s.long) {
		quoted = append(quoted, between(quote, quote))
	}
	if s.letter {
		quoted = append(quoted, `'\\?(?s:.)'`)
	}
	for _, quote := range strings.Split(s.quotes, "") {
		quoted = append(quoted, quote+`(?:\\.|[^\\\n`+quote+`])*`+quote)
	}
	const letter = `[\pL\p{Nd}_]`
	word := `\p{Nd}[\pL\p{Nd}_.]*|` + letter + `+`
	if s.keys || s.tags {
		word = letter + `[\pL\p{Nd}_./-]*`
	}
	if comments == nil {
		comments = []string{`[^\x00-\x{10FFFF}]`} // nothing
	}
	groups := []string{
		strings.Join(comments, "|"), strings.Join(quoted, "|"), `\$\{` + letter + `*\}|[$@#]` + letter + `+`, word, `<[/!?]*(?:` + word + `)?|>`,
	}
	return regexp.MustCompile("(" + strings.Join(groups, ")|(") + ")")
}

// between returns an expression for a text between two delimiters. The second may be missing.
func between(from, to string) string {
	return regexp.QuoteMeta(from) + `(?s:.*?)(?:` + regexp.QuoteMeta(to) + `|\z)`
}

// A highlighter colours one block of code from its start to its end.
type highlighter struct {
	*syntax
	tokens *regexp.Regexp
	inks   map[string]string // of the language's words
	code   string
	at     int  // where the next token begins
	inTag  bool // between < and > of markup
}

func (h *highlighter) run() string {
	var out strings.Builder
	for h.at < len(h.code) {
		found := h.tokens.FindStringSubmatchIndex(h.code[h.at:])
		if found == nil {
			break
		}
		out.WriteString(h.code[h.at : h.at+found[0]])
		h.at += found[0]
		group := 1
		for found[2*group] < 0 {
			group++
		}
		token := h.code[h.at : h.at+found[1]-found[0]]
		ink := h.ink(group, token, h.code[h.at+len(token):])
		if ink == "" && group != groupWord { // what follows its first character may be a token
			_, n := utf8.DecodeRuneInString(token)
			token = token[:n]
		}
		out.WriteString(paint(ink, token))
		h.at += len(token)
	}
	return out.String() + h.code[h.at:]
}

// ink returns the colour of a token; "" = none.
func (h *highlighter) ink(group int, token, rest string) string {
	if h.tags && group != groupComment {
		return h.markup(group, token)
	}
	switch group {
	case groupComment:
		// A # inside a word begins no comment: $#, a#b, a colour in CSS.
		slashes := strings.HasPrefix(token, "//") && !strings.HasSuffix(h.code[:h.at], ":")
		if slashes || h.afterSpace() || h.opensBlock(token) {
			return inkComment
		}
	case groupString:
		if h.keys && beforeValue(rest) {
			return inkKey
		}
		return inkString
	case groupMeta:
		directive := strings.HasPrefix(h.comment, "//") && h.lineStart()
		if token[0] == '$' || token[0] == '@' && h.afterSpace() || token[0] == '#' && directive {
			return inkMeta
		}
	case groupWord:
		return h.wordInk(token, rest)
	}
	return ""
}

// opensBlock reports whether a token begins with what opens a block comment.
func (h *highlighter) opensBlock(token string) bool {
	open, _, _ := strings.Cut(h.block, " ")
	return open != "" && strings.HasPrefix(token, open)
}

// wordInk returns the colour of a word or number; rest is the code behind it.
func (h *highlighter) wordInk(word, rest string) string {
	if h.keys && h.lineStart() && beforeValue(rest) {
		return inkKey
	}
	key := word
	if h.fold {
		key = strings.ToLower(word)
	}
	switch {
	case h.inks[key] != "":
		return h.inks[key]
	case word[0] >= '0' && word[0] <= '9':
		return inkNumber
	case strings.HasPrefix(rest, "("):
		return inkBuiltin
	}
	return ""
}

// markup returns the colour of a token in a text with tags.
func (h *highlighter) markup(group int, token string) string {
	switch {
	case group == groupTag && (h.inTag || token != ">"):
		h.inTag = token != ">"
		return inkKey
	case h.inTag && group == groupString:
		return inkString
	case h.inTag && group == groupWord:
		return inkBuiltin
	}
	return ""
}

// beforeValue reports whether rest goes on with : or =.
func beforeValue(rest string) bool {
	rest = strings.TrimLeft(rest, " \t")
	return strings.HasPrefix(rest, ":") || strings.HasPrefix(rest, "=")
}

// lineStart reports whether nothing but space and list markers is before the token on its line.
func (h *highlighter) lineStart() bool {
	before := strings.TrimRight(h.code[:h.at], " \t-")
	return before == "" || strings.HasSuffix(before, "\n")
}

// afterSpace reports whether the token is the first of its line or stands behind space or an opening bracket.
func (h *highlighter) afterSpace() bool {
	return h.at == 0 || strings.IndexByte(" \t\n({[,;", h.code[h.at-1]) >= 0
}

// Diff styles the lines of a unified diff. Only the pair of --- and +++ names files: a removed line may begin with --, too.
func (m *Renderer) Diff(lines []string) []string {
	names := false // the line before is the first of such a pair
	for i, l := range lines {
		second := names && strings.HasPrefix(l, "+++ ")
		names = strings.HasPrefix(l, "--- ") && i+1 < len(lines) && strings.HasPrefix(lines[i+1], "+++ ")
		switch {
		case names, second, strings.HasPrefix(l, "diff "):
			lines[i] = paint(m.sgr("1", ""), l)
		case strings.HasPrefix(l, "@@"):
			lines[i] = paint(m.sgr("", "36"), l)
		case strings.HasPrefix(l, "+"):
			lines[i] = paint(m.sgr("", "32"), l)
		case strings.HasPrefix(l, "-"):
			lines[i] = paint(m.sgr("", "31"), l)
		}
	}
	return lines
}
