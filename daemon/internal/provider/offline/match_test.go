package offline

import (
	"strings"
	"testing"

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
help => what can you do
what can you do? => what can you do
How do I use this? => what can you do
who are you => who
which model is this? => who
how do I connect a real model? => how do I use a real model
where do I put my API key => how do I use a real model
download https://example.org/x.tgz => network
git clone https://github.com/a/b => network
search the web for cats => network
why did the last command fail? => why did it fail
why did that fail => why did it fail
why doesn't it work => why did it fail
what went wrong? => why did it fail
explain the last error => why did it fail
what does this error mean? => why did it fail
why? => why did it fail
my last command failed => why did it fail
what did I run => what did I run
show me the last commands => what did I run
history => what did I run
have an engineer run the tests => have an engineer run the tests and a reviewer review my changes
let a reviewer review my changes => have an engineer run the tests and a reviewer review my changes
ask the engineer to build the project and the reviewer to review my changes => have an engineer run the tests and a reviewer review my changes
engineer: run the tests => have an engineer run the tests and a reviewer review my changes
delegate run the tests to an engineer => have an engineer run the tests and a reviewer review my changes
commit this => commit this
please commit everything => commit this
commit with message "fix the parser" => commit this
git commit -m 'x' => commit this
commit all my changes => commit this
save my work => commit this
undo the last commit => undo the last commit
revert last commit => undo the last commit
create a branch feature/x => create a branch NAME
make a new branch called fix-login => create a branch NAME
make a new branch called feature => create a branch NAME
create a folder called app => make a folder NAME
create a file named test => create a file notes.txt with "hello"
make a new feature that exports => beyond
git checkout -b foo => create a branch NAME
switch to branch main => switch to branch NAME
checkout main => switch to branch NAME
go to the dev branch => switch to branch NAME
push => push
git push => push
push my changes to origin => push
pull => pull
get the latest changes => pull
git init => make this a git repository
make this a git repository => make this a git repository
are there merge conflicts? => are there merge conflicts
show the diff => show the diff
git diff => show the diff
what changed in main.go? => show the diff
show me my changes in detail => show the diff
who changed main.go => who changed FILE
who last edited README.md? => who changed FILE
who changed README.md last => who changed FILE
history of wire/conn.go => who changed FILE
git blame main.go => who changed FILE
what was the last commit? => what was the last commit
show the latest commit => what was the last commit
git show => what was the last commit
recent commits => recent commits
show me the last 5 commits => recent commits
git log => recent commits
commit history => recent commits
what happened here recently => recent commits
what did I do yesterday => recent commits
show the branches => which branch am I on
which branch am I on? => which branch am I on
git branch => which branch am I on
review my changes => review my changes
code review => review my changes
review the latest changes => review my changes
what changed? => what changed
git status => what changed
what did I change => what changed
are there uncommitted changes => what changed
is the repo clean? => what changed
show my changes => what changed
what's new here => what changed
run the tests => run the tests
can you run all the tests please => run the tests
test => run the tests
do the tests pass? => run the tests
run the test suite again => run the tests
go test => run the tests
pytest => run the tests
run the unit tests and report failures => run the tests
build the project => build the project
compile => build the project
make => build the project
does it compile? => build the project
lint => lint
run the linter => lint
check the code style => lint
format the code => format the code
run gofmt => format the code
run the project => run the project
start the server => run the project
install the dependencies => install the dependencies
npm install => install the dependencies
how much disk space is free => how full is the disk
how much disk is free => how full is the disk
which files are biggest => biggest files
where is the function Sum => find text "TODO"
df -h => how full is the disk
how full are my disks? => how full is the disk
disk space => how full is the disk
biggest files => biggest files
what are the largest files here? => biggest files
show me the 10 biggest files => biggest files
which files take up the most space? => biggest files
disk usage => what takes up space here
what takes up space here? => what takes up space here
how big is this folder => what takes up space here
biggest directories => what takes up space here
du -sh => what takes up space here
recently changed files => recently changed files
which files did I change today => recently changed files
newest files => recently changed files
how many lines of code => how many lines of code
how many lines are here => how many lines of code
count lines in main.go => how many lines of code
loc => how many lines of code
find text "TODO" => find text "TODO"
search for "func main" in *.go => find text "TODO"
grep for ErrBroken => find text "TODO"
where is parseResult defined => find text "TODO"
which files contain the word lease => find text "TODO"
find all todos => find all TODOs
find file config.toml => find file NAME
where is main.go? => find file NAME
find all files named *.md => find file NAME
find the Makefile => find file NAME
last 20 lines of server.log => last 20 lines of FILE
tail -n 5 out.txt => last 20 lines of FILE
show the log app.log => last 20 lines of FILE
tail the log /var/log/syslog => last 20 lines of FILE
first 10 lines of README.md => show FILE
explain main.go => explain FILE
what does scripts/run.sh do? => explain FILE
summarize README.md => explain FILE
what is go.mod => explain FILE
show main.go => show FILE
cat README.md => show FILE
open the file notes.txt => show FILE
what's in config.toml => show FILE
what is in here? => what is in here
What's in this folder? => what is in here
ls => what is in here
list files => what is in here
ls -la => what is in here
show me the files => what is in here
what is in src/ => what is in here
what kind of project is this => what does this project do
what does this project do => what does this project do
describe this project => what does this project do
make a folder called docs => make a folder NAME
mkdir -p a/b => make a folder NAME
create a file notes.txt with "hello world" => create a file notes.txt with "hello"
create an empty file x.txt => create a file notes.txt with "hello"
touch a.txt => create a file notes.txt with "hello"
write "hello" to hello.txt => create a file notes.txt with "hello"
replace "foo" with "bar" in main.go => replace "a" with "b" in FILE
change foo to bar in a.txt => replace "a" with "b" in FILE
rename a.txt to b.txt => rename A to B
move a.txt into docs/ => rename A to B
mv a b => rename A to B
copy a.txt to b.txt => copy A to B
cp -r a b => copy A to B
delete old.txt => delete FILE
remove the docs folder => delete FILE
remove the build folder => delete FILE
delete the .git directory => delete FILE
remove the folder build => delete FILE
rm -rf tmp => delete FILE
who listens on port 8080? => what listens on 8080
what is running on port 3000 => what listens on 8080
is port 5432 free => what listens on 8080
which ports are open => which ports are open
open ports => which ports are open
where is python3 installed => where is python3 installed
which node => where is python3 installed
is jq installed => where is python3 installed
what jobs do I have? => what jobs do I have
show me the background jobs => what jobs do I have
jobs => what jobs do I have
which jobs are running => what jobs do I have
where am I => where am I
pwd => where am I
cd /tmp => go to FOLDER
cd up => go to FOLDER
go to the folder src => go to FOLDER
run ls -la => run ls -la
execute the command echo hi => run ls -la
run pwd => run ls -la
run ll => run ls -la
run uptime -p => run ls -la
run fg %1 => run ls -la
run env | sort => run ls -la
run the migrations =>
$ echo hi => run ls -la
write a function that sorts a list => beyond
translate this text to French => beyond
refactor the parser to use generics => beyond
implement a web server in go => beyond
what is the meaning of life =>
tell me a joke =>
fix the failing test => beyond
write a program that lists the biggest files => beyond
add error handling to main.go => beyond
who am I talking to? => who
prove the Riemann hypothesis =>
how do I get out? => how do I get out
exit => how do I get out
go back to my shell => how do I get out
undo that => undo
what is a lease? => what is a lease
how does this work => what is a lease
why it not work => why did it fail
why error => why did it fail
show history => what did I run
whats changed => what changed
ping example.org => network
am I online? => network
create hello.txt with hi => create a file notes.txt with "hello"
make a file hello.txt with hi => create a file notes.txt with "hello"
rename a.txt b.txt => rename A to B
del a.txt => delete FILE
port this to Rust => beyond
port 8080? => what listens on 8080
install jq => install
update my system => install
disk full? => how full is the disk
how much space do I have => how full is the disk
how many files are here? => how many files
how many files in src => how many files
count the lines in main.go => how many lines of code
is there a Makefile? => find file NAME
tell me about this folder => what is in here
what is using memory => what is using memory
which process uses the most CPU? => what is using memory
how much memory do I have => what is using memory
list processes => what is using memory
why is my computer so slow => what is using memory
why is the build slow =>
kill process 4711 => end process 1234
who am i => who am I
what's my username => who am I
what time is it? => what time is it
what's the date today => what time is it
what OS is this => what system is this
which linux do I have => what system is this
uptime => how long is this machine up
what is my IP address => what is my IP address
what version of python3 do I have => which version of python3
node version => which version of python3
go up => go up
go home => go to FOLDER
open folder src => go to FOLDER
run seq 30 => run ls -la
execute seq 1 30 => run ls -la
run sort names.txt => run ls -la
chmod +x run.sh => run ls -la
echo $PATH => run ls -la
make -j4 => run ls -la
sudo apt update => run ls -la
docker is not running => why did it fail
docker ps => run ls -la
tell me a story =>
sort the list by name =>
`

func TestPhrasings(t *testing.T) {
	seen := map[string]bool{}
	for line := range strings.Lines(phrasings) {
		said, want, ok := strings.Cut(strings.TrimRight(line, "\n"), " =>")
		if !ok {
			continue
		}
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
	for _, c := range table() {
		if !seen[c.name] {
			t.Errorf("no phrasing for the intent %q", c.name)
		}
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
		{"commit with message fix: the parser's bug", "text", "fix: the parser's bug"},
		{"create a file notes.txt with hello there", "text", "hello there"},
		{"could you please create a branch called fix-1 for me?", "name", "fix-1"},
		{"where is main.go?", "file", "main.go"},
		{"run `make lint`", "text", "make lint"},
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
	if got := strings.Join(names, ","); got != "run the tests,commit this,push" {
		t.Errorf("got %s", got)
	}
	if list := match(&job{said: "again", earlier: []string{"hello", "what changed?"}}); len(list) != 1 || list[0].intent.name != "what changed" {
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

func TestFileWord(t *testing.T) {
	for in, want := range map[string]string{"~/a b": "~/'a b'", "~": "~", "-rf": "./-rf", "~root/x": "'~root/x'", "a/-b": "a/-b"} {
		if got := fileWord(in); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}
