package offline

import (
	"strings"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"

	"sublet/daemon/internal/provider"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// phrasings: what people say, and who takes it. "" = nobody: the answer of last resort.
const phrasings = `
hello => hello
Hi there! => hello
good morning => hello
thanks a lot => thanks
thank you! => thanks
help => help
what can you do? => help
How do I use this? => help
who are you => who
which model is this? => who
how do I connect a real model? => connect
where do I put my API key => connect
download https://example.org/x.tgz => download
git clone https://github.com/a/b => download
search the web for cats => download

why did the last command fail? => why failed
why did that fail => why failed
why doesn't it work => why failed
what went wrong? => why failed
explain the last error => why failed
what does this error mean? => why failed
why? => why failed
what does exit code 137 mean => why failed
my last command failed => why failed
what did I run => history
show me the last commands => history
history => history

have an engineer run the tests => delegate
let a reviewer review my changes => delegate
ask the engineer to build the project and the reviewer to review my changes => delegate
engineer: run the tests => delegate
delegate run the tests to an engineer => delegate

commit this => commit
please commit everything => commit
commit with message "fix the parser" => commit
git commit -m 'x' => commit
commit all my changes => commit
save my work => commit
undo the last commit => undo commit
revert last commit => undo commit
create a branch feature/x => create branch
make a new branch called fix-login => create branch
make a new branch called feature => create branch
create a folder called app => make folder
create a file named test => create file
make a new feature that exports => 
git checkout -b foo => create branch
switch to branch main => switch branch
checkout main => switch branch
go to the dev branch => switch branch
push => push
git push => push
push my changes to origin => push
pull => pull
get the latest changes => pull
stash my changes => stash
unstash => unstash
git stash pop => unstash
discard my changes to main.go => discard
revert src/app.py => discard
git init => init
make this a git repository => init

are there merge conflicts? => conflicts
show the diff => diff
git diff => diff
what changed in main.go? => diff
show me my changes in detail => diff
who changed main.go => who changed
who last edited README.md? => who changed
who changed README.md last => who changed
history of wire/conn.go => who changed
git blame main.go => who changed
who wrote line 12 of main.go => blame line
what was the last commit? => last commit
show the latest commit => last commit
git show => last commit
who works on this project => contributors
how many commits are there => contributors
recent commits => log
show me the last 5 commits => log
git log => log
commit history => log
what happened here recently => log
what did I do yesterday => log
show the branches => branches
which branch am I on? => branches
git branch => branches
show the remotes => remotes
git remote -v => remotes
what is the latest tag => tags
review my changes => review
code review => review
review the latest changes => review
what changed? => status
git status => status
what did I change => status
are there uncommitted changes => status
is the repo clean? => status
show my changes => status
what's new here => status

run the tests => test
can you run all the tests please => test
test => test
do the tests pass? => test
run the test suite again => test
go test => test
pytest => test
run the unit tests and report failures => test
build the project => build
compile => build
make => build
does it compile? => build
lint => lint
run the linter => lint
check the code style => lint
format the code => format
run gofmt => format
clean the build => clean
clean up => clean
make clean => clean
run the project => run project
start the server => run project
install the dependencies => dependencies
npm install => dependencies
which make targets are there? => targets
list npm scripts => targets
which tools are installed => tool versions
what version of go is installed => tool versions
go version => tool versions

how much disk space is free => disk free
df -h => disk free
how full are my disks? => disk free
disk space => disk free
biggest files => biggest files
what are the largest files here? => biggest files
show me the 10 biggest files => biggest files
which files take up the most space? => biggest files
disk usage => disk use
what takes up space here? => disk use
how big is this folder => disk use
biggest directories => disk use
du -sh => disk use
recently changed files => recent files
which files did I change today => recent files
newest files => recent files
how many lines of code => count lines
how many lines of go are here => count lines
count lines in main.go => count lines
loc => count lines
how many files are here => count files
how many python files are there => count files
count the files => count files
find text "TODO" => find text
search for "func main" in *.go => find text
grep for ErrBroken => find text
where is parseResult defined => find text
which files contain the word lease => find text
find all todos => find text
find file config.toml => find file
where is main.go? => find file
find all files named *.md => find file
list go files => find file
find the Makefile => find file
last 20 lines of server.log => tail
tail -n 5 out.txt => tail
show the log app.log => tail
tail the log /var/log/syslog => tail
first 10 lines of README.md => head
compare a.txt and b.txt => compare
what's the difference between a.go and b.go => compare
diff a.txt b.txt => compare
checksum of file.iso => checksum
sha256 of go.mod => checksum
who owns /etc/passwd => permissions
permissions of run.sh => permissions
explain main.go => explain file
what does scripts/run.sh do? => explain file
summarize README.md => explain file
what is go.mod => explain file
show main.go => show file
cat README.md => show file
open the file notes.txt => show file
what's in config.toml => show file
what is in here? => list
What's in this folder? => list
ls => list
list files => list
ls -la => list
show me the files => list
what is in src/ => list
what kind of project is this => list
what does this project do => list
describe this project => list

make a folder called docs => make folder
mkdir -p a/b => make folder
create a file notes.txt with "hello world" => create file
create an empty file x.txt => create file
touch a.txt => create file
write "hello" to hello.txt => create file
replace "foo" with "bar" in main.go => replace text
change foo to bar in a.txt => replace text
rename a.txt to b.txt => rename
move a.txt into docs/ => rename
mv a b => rename
copy a.txt to b.txt => copy
back up config.toml => copy
cp -r a b => copy
delete old.txt => delete
remove the docs folder => delete
remove the build folder => delete
delete the .git directory => delete
remove the folder build => delete
rm -rf tmp => delete
make run.sh executable => executable
chmod +x run.sh => executable
compress the folder docs => compress
zip docs => compress
compress the src folder => compress
make a tarball of src => compress
extract a.tar.gz => extract
unzip x.zip into out => extract

what date is in 10 days => date sum
what day was it 3 weeks ago => date sum
how many days until christmas => days until
how many days until 2027-01-01 => days until
what weekday is 2026-12-24 => days until
show the calendar => calendar
what day is it => date
what time is it? => date
date => date
what is 17 * 23 => sum
calculate (1+2)/3 => sum
2^10 => sum
what is 15% of 80 => sum

kill whatever is on port 8080 => kill port
free port 3000 => kill port
who listens on port 8080? => ports
what is running on port 3000 => ports
is port 5432 free => ports
which ports are open => ports
open ports => ports
kill process 1234 => kill
kill firefox => kill
what is using the cpu => cpu
top => cpu
why is my computer so slow => cpu
which process uses most memory => memory
how much memory is free => memory
free -h => memory
is nginx running => processes
show the python processes => processes
how many processes run => all processes
ps => all processes
clean up docker => docker clean
docker prune => docker clean
which containers are running => docker
docker ps => docker
which services failed => services

what is my ip address => ip
ip addr => ip
show my PATH => path
what's in $PATH => path
what is $HOME => variable
echo $USER => variable
is GOPATH set => variable
which environment variables are set => variables
env => variables
show my aliases => alias
where is python3 installed => where is
which node => where is
is jq installed => where is
where am I => where am i
pwd => where am i
cd /tmp => go to
go to the folder src => go to
go up => go to
who am I => who am i
hostname => who am i
what system is this => system
uname -a => system
how long has this machine been running => system
how many cores does it have => system
is example.org reachable => ping
ping localhost => ping
what does the command tar do => what does command do
what does awk do => what does command do

run ` + "`make lint`" + ` => run command
run ls -la => run command
execute the command echo hi => run command
$ echo hi => run command

write a function that sorts a list =>
translate this text to French =>
refactor the parser to use generics =>
implement a web server in go =>
what is the meaning of life =>
tell me a joke =>
fix the failing test =>
write a program that lists the biggest files =>
add error handling to main.go =>
`

func TestPhrasings(t *testing.T) {
	n, seen := 0, map[string]bool{}
	for line := range strings.Lines(phrasings) {
		said, want, ok := strings.Cut(strings.TrimRight(line, "\n"), " =>")
		if !ok {
			continue
		}
		n++
		want = strings.TrimSpace(want)
		got := ""
		if list := match(&job{said: said}); len(list) == 1 {
			got = list[0].intent.name
		} else if len(list) > 1 {
			got = "several"
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", said, got, want)
		}
		seen[got] = true
	}
	if n < 150 {
		t.Errorf("got %d phrasings, want 150 or more", n)
	}
	for _, c := range table() {
		if !seen[c.intent.name] {
			t.Errorf("no phrasing for the intent %q", c.intent.name)
		}
	}
	if len(table()) < 40 {
		t.Errorf("got %d intents, want about forty", len(table()))
	}
}

func TestArguments(t *testing.T) {
	for _, c := range []struct{ said, group, want string }{
		{`replace "a b" with "" in main.go`, "old", "a b"},
		{`rename 'my file.txt' to "other file.txt"`, "file", "my file.txt"},
		{`rename 'my file.txt' to "other file.txt"`, "to", "other file.txt"},
		{"show main.go?", "file", "main.go"},
		{"delete `it's`", "file", "it's"},
		{"who listens on port 8080?", "n", "8080"},
		{"commit with message fix: the parser's bug", "rest", "fix: the parser's bug"},
		{"create a file notes.txt with hello there", "rest", "hello there"},
		{"could you please create a branch called fix-1 for me?", "name", "fix-1"},
		{"where is main.go?", "file", "main.go"},
		{"find text foo bar in src", "text", "foo bar"},
		{"find text foo bar in src", "in", "src"},
		{"cd ..", "file", ".."},
	} {
		list := match(&job{said: c.said})
		if len(list) != 1 || list[0].args[c.group] != c.want {
			t.Errorf("%q: got %+v, want %s = %q", c.said, list, c.group, c.want)
		}
	}
}

func TestChainAndAgain(t *testing.T) {
	list := match(&job{said: "run the tests and then commit this, then push"})
	var names []string
	for _, c := range list {
		names = append(names, c.intent.name)
	}
	if got := strings.Join(names, ","); got != "test,commit,push" {
		t.Errorf("got %s", got)
	}
	if list := match(&job{said: "again", earlier: []string{"hello", "what changed?"}}); len(list) != 1 || list[0].intent.name != "status" {
		t.Errorf("got %+v", list)
	}
	if list := match(&job{said: "run the tests and then dance"}); len(list) > 1 {
		t.Errorf("got %d clauses of which one is not understood", len(list))
	}
}

func TestNearest(t *testing.T) {
	text := unknown(&job{said: "make me a report on the biggest directories in the archive", facts: provider.Facts{}})
	if !strings.Contains(text, "offline") || !strings.Contains(text, "ANTHROPIC_API_KEY") || !strings.Contains(text, "“") {
		t.Errorf("got %s", text)
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"a.txt": "a.txt", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$(rm -rf ~)": "'$(rm -rf ~)'", "a\nb": `$'a\012b'`, "x;y": "'x;y'", "a'\n\\": `$'a\'\012\\'`, "é": "'é'", "*": "'*'",
	} {
		if got := quote(in); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
	for in, want := range map[string]string{"~/a b": "~/'a b'", "~": "~", "-rf": "./-rf", "~root/x": "'~root/x'", "a/-b": "a/-b"} {
		if got := file(in); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

func TestPieces(t *testing.T) {
	text := help(nil) + "\n\n```\na  b\n```\n日本語 " + strings.Repeat("x", 100)
	list := pieces(text)
	if strings.Join(list, "") != text || len(list) < 20 {
		t.Errorf("got %d pieces that do not make the text", len(list))
	}
	for _, p := range list {
		if !utf8.ValidString(p) || p == "" {
			t.Errorf("got %q", p)
		}
	}
	if got := pieces(""); got != nil {
		t.Errorf("got %q", got)
	}
}

func TestEvaluate(t *testing.T) {
	for in, want := range map[string]float64{"1+2*3": 7, "(1+2)*3": 9, "2^10": 1024, "2**3": 8, "-3+5": 2, "10%4": 2, "1,000/8": 125, "2^3^2": 512, "7 x 6": 42, "1-2-3": -4} {
		if got, ok := evaluate(in); !ok || got != want {
			t.Errorf("%s: got %v, %v, want %v", in, got, ok, want)
		}
	}
	for _, in := range []string{"", "1+", "(1", "1)", "a", strings.Repeat("(", 1000)} {
		if got, ok := evaluate(in); ok {
			t.Errorf("%q: got %v, want an error", in, got)
		}
	}
}
