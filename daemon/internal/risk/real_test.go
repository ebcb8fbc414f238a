package risk

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// What is predicted is compared with what real bash does. Everything here is harmless by construction: the commands are
// these, their files are relative and lie in a folder of the test's own, which holds home as well; nothing else is run.

// changing are commands that touch files of the folder.
var changing = []string{
	"touch new.txt", "touch a.txt", "touch {1..3}.num", "echo hi > out.txt", "echo hi >> a.txt", ": > b.txt", "echo hi >| a.txt", "echo hi &> out.txt",
	"printf '%s\\n' x > out.txt", "cat a.txt b.txt > all.txt", "{ echo x; echo y; } > out.txt", "( echo x ) > out.txt", "wc -l < a.txt > n",
	"cp a.txt copy.txt", "cp a.txt 'b c.txt'", "cp -r d d2", "cp a.txt b.txt e", "cp --target-directory=e a.txt", "cp -t e a.txt", "mv a.txt moved.txt",
	"mv a.txt b.txt e", "mv -t e a.txt", "rm a.txt", "rm -f a.txt none.txt", "rm -- a.txt", "rm -r d", "rm -rf d e", "rm *.log", "rm d/*.txt", "rm {a,b}.txt",
	"rm ./d/../a.txt", "unlink a.txt", "rmdir e", "mkdir new", "mkdir -p p/q/r", "ln -s a.txt link", "ln a.txt hard", "ln -sf b.txt a.txt",
	"sed -i s/a/b/ a.txt", "sed -i.bak s/a/b/ a.txt", "sed -n 'w out.txt' a.txt", "sed --in-place=.o s/a/b/ a.txt", "tee out.txt < a.txt", "tee -a a.txt < b.txt",
	"sort -o b.txt a.txt", "sort a.txt > a.sorted", "uniq a.txt out.txt", "truncate -s 0 a.txt", "dd if=a.txt of=out.txt", "install -m 600 a.txt inst.txt",
	"chmod 600 a.txt", "chmod u+x a.txt b.txt", "gzip -c a.txt > a.gz", "tar -cf out.tar d", "tar -czf out.tgz d a.txt", "sed -i'd/*' s/a/b/ a.txt", "sed -ni.o s/a/b/p d/x.txt",
	"awk '{print > \"out.txt\"}' a.txt", "find . -name '*.log' -delete", "find d -type f -exec rm {} +", "find d -name 'x*' -exec cp {} out.txt \\;",
	"find . -name '*.txt' -fprint out.lst", "ls *.txt | xargs rm", "printf 'a.txt\\n' | xargs rm", "echo a.txt b.txt | xargs -n1 rm", "find d -type f -print0 | xargs -0 rm",
	"(cd d && rm x.txt)", "cd d && touch z", "cd d; rm x.txt", "cd e || exit; touch z", "pushd d > /dev/null; rm x.txt; popd > /dev/null",
	"for f in a b; do echo $f > \"$f.new\"; done", "for f in *.log; do rm \"$f\"; done", "while read -r l; do echo \"$l\" >> out.txt; done < a.txt",
	"if [ -f a.txt ]; then rm a.txt; fi", "[ -f a.txt ] && rm a.txt", "x=a.txt; rm \"$x\"", "x=a; y=txt; rm $x.$y", "set -- a.txt b.txt; rm \"$@\"",
	"f() { rm \"$1\"; }; f a.txt", "cat <<E > out.txt\nhi\nE", "cat > out.txt <<< hi", "exec 3>out.txt; echo hi >&3", "echo hi | tee out.txt | cat > out2.txt",
	"names=(a.txt b.txt); rm \"${names[@]}\"", "rm ${none:-a.txt}", "rm $(echo a.txt)", "rm \"$(printf a.txt)\"", "echo x > $(echo out.txt)", "mv a.txt $(basename d)/",
	"cp a.txt b.txt; rm a.txt", "rm a.t?t", "rm [ab].txt", "mkdir w && cd w && touch v", "echo hi > d/out.txt", "cat a.txt | tr a b > d/tr.txt",
}

// reading are commands that touch nothing.
var reading = []string{
	"ls -la", "cat a.txt", "grep -rn a .", "find . -type f", "wc -l a.txt", "diff a.txt b.txt", "sort a.txt", "awk '{print $1}' a.txt", "sed -n 1p a.txt", "stat a.txt",
	"du -s .", "[ -f a.txt ] && echo yes", "head -n 1 a.txt | tail -n 1", "cut -c1 a.txt", "tr a b < a.txt", "uniq a.txt", "od a.txt", "basename a.txt", "test -d d",
	"echo *", "for f in *; do echo \"$f\"; done", "cat < a.txt > /dev/null", "ls none.txt 2>/dev/null", "find . -name '*.txt' -exec cat {} +", "ls | xargs cat 2>/dev/null",
	"comm a.txt b.txt", "gzip -c a.txt | wc -c", "tar -cf - d | wc -c", "x=$(cat a.txt); echo \"$x\"", "while read -r l; do echo \"$l\"; done < a.txt", "printf '%s\\n' a.txt | xargs cat",
	"(cd d; ls)", "cmp a.txt b.txt", "cksum a.txt", "readlink -f a.txt", "echo 'rm a.txt'", "cat <<'E'\n$(rm a.txt)\nE", "grep -c 'rm' a.txt", "type rm", "command -v rm",
}

// rewritings leave what a command does. %s is the command, %q the command as one quoted word.
var rewritings = []string{
	"%s", "{ %s\n}", "( %s\n)", "if true; then %s\nfi", "true && {\n%s\n}", "false || {\n%s\n}", "%s\ntrue", "ls > /dev/null; %s", "for i in 1; do %s\ndone", "while :; do %s\nbreak; done",
	"case x in x) %s\n;; esac", "time {\n%s\n}", "! {\n%s\n}", "g() {\n%s\n}; g", "{\n%s\n} &\nwait", "echo \"$(%s\n)\"", "cat <(%s\n) > /dev/null",
	"bash -c %q", "eval %q", "command eval %q", "builtin eval %q", "bash <<< %q", "echo %q | bash", "s=%q; eval \"$s\"", "bash -c 'eval \"$0\"' %q", "env FOO=1 bash -c %q", "timeout 9 bash -c %q",
	"nice bash -c %q", "trap %q EXIT", "find . -maxdepth 0 -exec bash -c %q \\;", "source <(echo %q)", "bash -c \"$(echo %q)\"", "printf '%%s' %q | sh -c 'bash'",
}

func rewritten(frame, command string) string {
	if strings.Contains(frame, "%q") {
		return strings.ReplaceAll(strings.ReplaceAll(frame, "%%", "%"), "%q", shellQuote(command))
	}
	return strings.ReplaceAll(frame, "%s", command)
}

// TestPredictedEffects runs the commands, as they are and rewritten, and holds the verdict to what happened: whatever
// changed was predicted, as a path, below a tree or as a file that is not known; and nothing changes by what is low.
func TestPredictedEffects(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "linux" {
		t.Skip("the commands are written for GNU programs")
	}
	run := 0
	for kind, list := range map[string][]string{"changing": changing, "reading": reading} {
		for i, command := range list {
			if program, _, _ := strings.Cut(command, " "); program == "gzip" {
				if _, err := exec.LookPath(program); err != nil {
					continue // not on every machine
				}
			}
			for k, frame := range rewritings {
				// Every command as it is, and each with some of the rewritings, so that all pairs of neighbours are met.
				if k != 0 && (i+k)%12 != 0 {
					continue
				}
				text := rewritten(frame, command)
				changed, predicted, v := effectsOf(t, bash, text)
				run++
				for _, p := range changed {
					if !predicted(p) {
						t.Errorf("%q changed %s, which was not predicted: %s, %+v%s", text, p, v.Level, v.Targets, reasonsText(v))
					}
				}
				if v.Level <= Low && len(changed) > 0 {
					t.Errorf("%q is low and changed %q", text, changed)
				}
				if kind == "reading" && (k == 0 && v.Level > Low || len(changed) > 0) {
					t.Errorf("%q only reads: got %s, changed %q%s", text, v.Level, changed, reasonsText(v))
				}
				if kind == "changing" && k == 0 && len(changed) == 0 {
					t.Errorf("%q changed nothing, so it shows nothing", text)
				}
			}
		}
	}
	if run < 400 {
		t.Errorf("ran %d commands, want at least 400", run)
	}
}

// effectsOf runs a text in a new folder and tells which of its files changed.
func effectsOf(t *testing.T, bash, text string) (changed []string, predicted func(string) bool, v Verdict) {
	t.Helper()
	dir, err := os.MkdirTemp(t.TempDir(), "w")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for name, content := range map[string]string{"a.txt": "a\nb\nb\n", "b.txt": "b\n", "c.log": "c\n", "d/x.txt": "x\n", "d/y.txt": "y\n", "e/.keep": ""} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Unix(1e9, 0)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "e", ".keep")); err != nil {
		t.Fatal(err)
	}
	v = Analyze(text, Context{Cwd: dir, Home: filepath.Join(dir, "home"), ProjectRoot: dir})
	for _, target := range v.Targets {
		// The harness of harmlessness: what is known to be touched lies in the folder.
		if target.Effect != Read && target.Path != "" && !under(target.Path, dir) {
			t.Fatalf("%q would touch %s: it is not run", text, target.Path)
		}
	}
	before := snapshot(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, bash, "--noprofile", "--norc", "-c", text)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + filepath.Join(dir, "home"), "LC_ALL=C", "TMPDIR=" + dir}
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("%q did not end: %v\n%s", text, err, out)
	}
	after := snapshot(t, dir)
	names := slices.Collect(maps.Keys(before))
	for name := range after {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if before[name] != after[name] {
			changed = append(changed, name)
		}
	}
	return changed, func(name string) bool { return foresaw(v, filepath.Join(dir, name)) }, v
}

// foresaw tells whether a verdict says that a path is written or deleted.
func foresaw(v Verdict, path string) bool {
	for _, target := range v.Targets {
		if target.Effect == Read || target.Effect == Network || target.Effect == Secret {
			continue
		}
		switch {
		case target.Path == "" && target.Host == "": // a file that is not known here
			return true
		case target.Path == path, under(path, target.Path): // a folder that is copied or packed into
			return true
		case under(target.Path, path): // a folder made on the way
			return true
		case strings.ContainsAny(target.Path, "*?["):
			if ok, err := filepath.Match(target.Path, path); err == nil && ok {
				return true
			}
			dir, _, _ := strings.Cut(target.Path, "*")
			if target.Tree && strings.HasPrefix(path, dir) {
				return true
			}
		}
	}
	// What the text runs and cannot see may do anything.
	return slices.ContainsFunc(v.Commands, func(c Command) bool { return c.Opaque && c.Level >= High })
}

// snapshot is what each file below dir looks like. Folders count by their rights alone: what is in them speaks for itself.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		files[name] = info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			files[name] += fmt.Sprint(info.ModTime().UnixNano(), string(content))
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			files[name] += to
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
