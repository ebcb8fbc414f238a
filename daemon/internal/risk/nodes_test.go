package risk

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// nodeCases says where each node type of the parser is handled. A type that is new there has to be decided here.
var nodeCases = map[string]string{
	"File": "program", "Comment": "program", "Stmt": "stmt", "Assign": "assign", "Redirect": "redirect",
	"CallExpr": "command", "Subshell": "command", "Block": "command", "IfClause": "command", "WhileClause": "command", "ForClause": "command",
	"BinaryCmd": "command", "FuncDecl": "command", "ArithmCmd": "command", "TestClause": "command", "DeclClause": "command", "CaseClause": "command",
	"LetClause": "command", "TimeClause": "command", "CoprocClause": "command", "TestDecl": "an error of the parser",
	"WordIter": "forClause", "CStyleLoop": "forClause", "CaseItem": "caseClause",
	"Word": "word", "Lit": "part", "SglQuoted": "part", "DblQuoted": "part", "CmdSubst": "part", "ParamExp": "part", "ArithmExp": "part", "ProcSubst": "part",
	"ExtGlob": "part", "BraceExp": "part",
	"BinaryArithm": "arithm", "UnaryArithm": "arithm", "ParenArithm": "arithm", "FlagsArithm": "arithm",
	"BinaryTest": "test", "UnaryTest": "test", "ParenTest": "test",
	"ArrayExpr": "assign", "ArrayElem": "assign",
}

// TestEveryNodeType reads the parser's source for types that are nodes, and this package's for a case of each: a
// construct that nobody walks would hide what runs in it.
func TestEveryNodeType(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "mvdan.cc/sh/v3/syntax").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, filepath.Join(strings.TrimSpace(string(out)), "nodes.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv == nil || fn.Name.Name != "End" {
			continue
		}
		star, ok := fn.Recv.List[0].Type.(*ast.StarExpr)
		if !ok {
			continue
		}
		found++
		if name := star.X.(*ast.Ident).Name; nodeCases[name] == "" {
			t.Errorf("the parser has a node type %s that is handled nowhere: add a case, and name it here", name)
		}
	}
	if found < len(nodeCases) {
		t.Errorf("got %d node types, want %d: one that is named here is gone", found, len(nodeCases))
	}
	files, err := filepath.Glob("bashread/*.go")
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "syntax" {
					cases[sel.Sel.Name] = true
				}
			}
			return true
		})
	}
	for name, where := range nodeCases {
		switch name {
		case "File", "CaseItem", "ArrayExpr", "ArrayElem", "FlagsArithm", "TestDecl", "BinaryTest", "UnaryTest", "ParenTest", "ParenArithm": // parts of others, walked there
		default:
			if !cases[name] {
				t.Errorf("node type %s should be handled in %s, but this package does not name it", name, where)
			}
		}
	}
}

// TestLeaf keeps this package one that imports no package of ours but leaves and its own parts.
func TestLeaf(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for _, p := range strings.Fields(string(out)) {
		if strings.HasPrefix(p, "sublet/") && !strings.HasPrefix(p, "sublet/daemon/internal/risk") && !strings.HasPrefix(p, "sublet/wire/") {
			t.Errorf("risk imports %s", p)
		}
	}
}
