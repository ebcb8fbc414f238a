package offline

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// toolchain is what a project of some kind is tested, built and cleaned with, told by a file in its folder. An empty
// command is one that this kind does not have.
type toolchain struct {
	marker string // a file's name; "*.csproj" matches by its end
	name   string
	test   string
	build  string
	lint   string
	format string
	clean  string
	run    string
	deps   string
}

// toolchains in the order they are looked for: a language's own tool before a general one.
var toolchains = []toolchain{
	{"go.mod", "Go", "go test ./...", "go build ./...", "go vet ./...", "gofmt -l -w .", "go clean", "go run .", "go mod download"},
	{"Cargo.toml", "Rust", "cargo test", "cargo build", "cargo clippy", "cargo fmt", "cargo clean", "cargo run", "cargo fetch"},
	{"pnpm-lock.yaml", "Node.js", "pnpm test", "pnpm run build", "pnpm run lint", "pnpm run format", "pnpm run clean", "pnpm start", "pnpm install"},
	{"yarn.lock", "Node.js", "yarn test", "yarn build", "yarn lint", "yarn format", "yarn clean", "yarn start", "yarn install"},
	{"bun.lockb", "Node.js", "bun test", "bun run build", "bun run lint", "bun run format", "bun run clean", "bun start", "bun install"},
	{"package.json", "Node.js", "npm test", "npm run build", "npm run lint", "npm run format", "npm run clean", "npm start", "npm install"},
	{"deno.json", "Deno", "deno test", "", "deno lint", "deno fmt", "", "deno task start", ""},
	{"pyproject.toml", "Python", "python3 -m pytest -q", "python3 -m build", "ruff check .", "ruff format .", pythonClean, "", "python3 -m pip install -e ."},
	{"pytest.ini", "Python", "python3 -m pytest -q", "", "ruff check .", "ruff format .", pythonClean, "", ""},
	{"tox.ini", "Python", "tox", "", "ruff check .", "ruff format .", pythonClean, "", ""},
	{"setup.py", "Python", "python3 -m pytest -q", "python3 -m build", "ruff check .", "ruff format .", pythonClean, "", "python3 -m pip install -e ."},
	{"requirements.txt", "Python", "python3 -m pytest -q", "", "ruff check .", "ruff format .", pythonClean, "", "python3 -m pip install -r requirements.txt"},
	{"pom.xml", "Maven", "mvn -B test", "mvn -B package -DskipTests", "", "", "mvn -B clean", "", "mvn -B dependency:resolve"},
	{"gradlew", "Gradle", "./gradlew test", "./gradlew assemble", "./gradlew check", "", "./gradlew clean", "./gradlew run", ""},
	{"build.gradle", "Gradle", "gradle test", "gradle assemble", "gradle check", "", "gradle clean", "gradle run", ""},
	{"mix.exs", "Elixir", "mix test", "mix compile", "mix format --check-formatted", "mix format", "mix clean", "mix run", "mix deps.get"},
	{"Gemfile", "Ruby", "bundle exec rake test", "", "bundle exec rubocop", "bundle exec rubocop -a", "", "", "bundle install"},
	{"composer.json", "PHP", "composer test", "", "composer lint", "", "", "", "composer install"},
	{"*.csproj", ".NET", "dotnet test", "dotnet build", "", "dotnet format", "dotnet clean", "dotnet run", "dotnet restore"},
	{"*.sln", ".NET", "dotnet test", "dotnet build", "", "dotnet format", "dotnet clean", "", "dotnet restore"},
	{"Makefile", "make", "make test", "make", "make lint", "make format", "make clean", "make run", ""},
	{"makefile", "make", "make test", "make", "make lint", "make format", "make clean", "make run", ""},
	{"CMakeLists.txt", "CMake", "ctest --test-dir build --output-on-failure", "cmake -B build && cmake --build build", "", "", "cmake --build build --target clean", "", ""},
	{"test_*.py", "Python", "python3 -m pytest -q", "", "", "", pythonClean, "", ""},
	{"*.py", "Python", "python3 -m pytest -q", "", "", "", pythonClean, "", ""},
}

const pythonClean = "find . -type d -name __pycache__ -prune -exec rm -r {} +"

// search looks for a toolchain that has a command for the job: in this folder, and if there is none, at the top of the
// repository. next is the call that is still to be made for that; when it is nil, t and at are found or ok is false. used is
// how many results it took.
func search(j *job, pick func(toolchain) string) (next *call, t toolchain, at string, used int, ok bool) {
	has := func(i int) bool {
		for _, t = range toolchains {
			if pick(t) != "" && slices.ContainsFunc(names(j.results[i].text), func(name string) bool { return marks(t.marker, name) }) {
				return true
			}
		}
		return false
	}
	switch n := len(j.results); {
	case n == 0:
		return bash("find out what kind of project this is", "command ls -a"), t, "", 0, false
	case has(0):
		return nil, t, "", 1, true
	case n == 1:
		return bash("see where the project begins", "git rev-parse --show-toplevel"), t, "", 1, false
	}
	at = firstLine(j.results[1].text)
	switch {
	case !j.results[1].ok() || !strings.HasPrefix(at, "/") || at == j.facts.Cwd:
		return nil, t, "", 2, false
	case len(j.results) == 2:
		return bash("find out what kind of project this is", "command ls -a --", quote(at)), t, at, 2, false
	case has(2):
		return nil, t, at, 3, true
	}
	return nil, t, "", 3, false
}

// names are those that ls -a prints; on a terminal it writes several to a line.
func names(text string) (list []string) {
	for _, line := range splitLines(text) {
		list = append(list, strings.Fields(line)...)
	}
	return list
}

func marks(marker, name string) bool {
	head, end, pattern := strings.Cut(marker, "*")
	return name == marker || pattern && len(name) > len(marker) && strings.HasPrefix(name, head) && strings.HasSuffix(name, end)
}

// doIt is the plan of a job that a toolchain has a command for.
func doIt(purpose string, pick func(toolchain) string) func(j *job) []call {
	return func(j *job) []call {
		next, t, at, used, ok := search(j, pick)
		switch {
		case next != nil:
			return []call{*next}
		case !ok || len(j.results) > used:
			return nil
		}
		command := pick(t)
		if at != "" {
			command = "(cd -- " + quote(at) + " && " + command + ")"
		}
		return []call{*bash(purpose, command)}
	}
}

// done tells whether the toolchain's command ran: its result is the last one.
func done(j *job, pick func(toolchain) string) bool {
	_, _, _, used, ok := search(j, pick)
	return ok && len(j.results) > used
}

// noToolchain is the answer where nothing fits.
func noToolchain(j *job, what string) string {
	if !j.results[0].ok() {
		return trouble(j.results[0])
	}
	return "I found nothing here to " + what + " with. I look for go.mod, Cargo.toml, package.json, pyproject.toml or other Python files, a Makefile, CMakeLists.txt, pom.xml, Gradle, mix.exs, a Gemfile, .NET projects; here and at the top of the repository."
}

// commandIntent is an intent of the shape: find the toolchain, run its command, say how it went.
func commandIntent(name, example, what string, patterns []string, pick func(toolchain) string, good string) intent {
	return intent{
		name: name, example: example, patterns: patterns,
		plan: doIt(what, pick),
		answer: func(j *job) string {
			if !done(j, pick) {
				return noToolchain(j, what)
			}
			r := j.last()
			if !r.ok() {
				return missingScript(r) + failedLines(r)
			}
			s := good + ": " + code(r.command) + "."
			if strings.TrimSpace(r.text) != "" {
				s += "\n\n" + fence("", r.text, 12, false)
			}
			return s
		},
	}
}

func missingScript(r result) string {
	if strings.Contains(r.text, "Missing script") || strings.Contains(r.text, "No rule to make target") {
		return "The project has no such command of its own. "
	}
	return ""
}

// failedLines is what a failed build or check says: the lines with file and place first, else the end.
func failedLines(r result) string {
	var places []string
	for _, l := range r.lines() {
		if place.MatchString(l) && len(places) < 15 {
			places = append(places, l)
		}
	}
	s := fmt.Sprintf("%s failed with exit code %d", code(r.command), r.exit)
	if r.stopped == "timeout" {
		s = code(r.command) + " took too long and was ended"
	}
	if len(places) > 0 {
		return s + "; what it complains of first:\n\n" + fence("", strings.Join(places, "\n"), 15, true) + hintFor(r)
	}
	return s + ".\n\n" + fenceOrNothing(r.text) + hintFor(r)
}

var place = rx(`^\s*(?:(?:-->|error:?|vet:)\s*)?(?:\./)?[\w./-]+\.\w+[:(]\d+`)

var projectIntents = []intent{
	{
		name:    "test",
		example: "run the tests",
		patterns: []string{
			`^(?:run|execute|start|do|launch|check|re-?run)(?: the| all| my| our| its| unit| integration)* tests?(?: suite)?(?: again)?(?: {here})?(?:,? and (?:report|tell|say|show|summari[sz]e)\b.*)?$`, `^(?:test|tests)(?: (?:it|this|everything|the (?:code|project|whole thing)|all|again|{here}))?$`,
			`^(?:do|are|is|will|did) (?:the |all |my )*tests? (?:pass|passing|green|ok|run|succeed|work|fail|failing|red|suite (?:pass|green))\b`, `^(?:go|npm|cargo) test$|^pytest$|^make test$`, `^(?:which|what) tests (?:fail|failed|are failing|are broken)$`, `^see (?:if|whether) (?:the )?tests (?:pass|still pass|work)$`,
		},
		plan:   doIt("run the tests", testCommand),
		answer: testAnswer, no: "no test was run",
	},
	commandIntent("build", "build the project", "build", []string{
		`^(?:build|compile|make|rebuild)(?: (?:it|this|everything|all|again|{here}|the (?:code|program|binary|app|application)))?$`, `^(?:run|do|start) (?:the |a )?build$`, `^does (?:it|this|the (?:code|project)) (?:build|compile)$`, `^(?:go|cargo|npm run) build$`,
		`^(?:build|compile) (?:the )?(?:project|code|program)\b.*$`,
	}, func(t toolchain) string { return t.build }, "It builds"),
	commandIntent("lint", "lint", "check", []string{
		`^(?:run|start|execute)(?: the| a| all)?(?: linters?| lint| static analysis| vet| type ?check(?:er)?)(?: {here})?$`, `^(?:lint|vet|clippy)(?: (?:it|this|everything|the (?:code|project)|{here}))?$`, `^(?:check|analy[sz]e) (?:the )?(?:code|style|code style)(?: style| quality)?$`, `^(?:is|are) (?:the )?(?:code|linter) (?:clean|lint free|happy)$`,
	}, func(t toolchain) string { return t.lint }, "Nothing to complain of"),
	commandIntent("format", "format the code", "format", []string{
		`^(?:run|start) (?:the )?(?:formatter|format|gofmt|prettier|black)$`, `^(?:re)?format(?: (?:it|this|everything|all|the (?:code|project|files)|my code|{here}))?$`, `^(?:gofmt|prettier|cargo fmt)$`,
	}, func(t toolchain) string { return t.format }, "Formatted"),
	commandIntent("clean", "clean the build", "clean up", []string{
		`^clean(?: up)?(?: (?:the |all )?(?:build|builds|build (?:files|artifacts|output|folder|directory)|artifacts|project|it|this|everything|target|cache|caches|{here}))?$`, `^(?:remove|delete) (?:the |all )?(?:build (?:files|artifacts|output)|artifacts|caches?)$`, `^make clean$`,
	}, func(t toolchain) string { return t.clean }, "Cleaned"),
	commandIntent("run project", "run the project", "run", []string{
		`^(?:run|start|launch|execute)(?: (?:it|this|the (?:project|program|app|application|code|server|thing)|{here}))$`, `^(?:go run|cargo run|npm start)$`,
	}, func(t toolchain) string { return t.run }, "It ran to its end"),
	commandIntent("dependencies", "install the dependencies", "get the dependencies", []string{
		`^(?:install|get|fetch|download|update)(?: (?:the|all|my|project|our))*(?: (?:dependencies|deps|packages|modules|requirements))$`, `^npm (?:i|install|ci)$`, `^go mod download$`,
	}, func(t toolchain) string { return t.deps }, "The dependencies are here"),
	{
		name:     "targets",
		example:  "which make targets are there",
		patterns: []string{`^{show} (?:the |make |makefile )*(?:targets|rules|npm scripts|scripts)(?: (?:are there|exist|are in the makefile|can i run))?$`, `^what can (?:make|npm) (?:do|run)$`, `^make (?:help|targets)$`, `^what targets (?:does the makefile have|are there)$`},
		plan: steps(
			run("find out what kind of project this is", "command ls -a"),
			func(j *job) *call {
				here := names(j.results[0].text)
				for _, name := range []string{"Makefile", "makefile", "package.json"} {
					if slices.Contains(here, name) {
						return &call{tool: "read", args: map[string]any{"path": name}}
					}
				}
				return nil
			},
		),
		answer: func(j *job) string {
			if len(j.results) < 2 {
				return "There is no Makefile and no package.json in this folder."
			}
			if j.last().isError {
				return "I could not read it: " + visible(firstLine(j.last().text)) + "."
			}
			lines, _ := numbered(j.last().text)
			var names []string
			inScripts := false
			for _, l := range lines {
				switch m := makeTarget.FindStringSubmatch(l); {
				case strings.Contains(l, `"scripts"`):
					inScripts = true
				case inScripts && strings.Contains(l, "}"):
					inScripts = false
				case inScripts:
					if m := jsonKey.FindStringSubmatch(l); m != nil {
						names = append(names, code(m[1]))
					}
				case m != nil && !strings.HasPrefix(m[1], ".") && !slices.Contains(names, code(m[1])) && !strings.Contains(lines[0], "{"):
					names = append(names, code(m[1]))
				}
			}
			if len(names) == 0 {
				return "I found no targets in it."
			}
			return count(len(names), "target") + ": " + list(names, 40) + "."
		},
		no: "I did not look",
	},
	{
		name:    "tool versions",
		example: "which tools are installed",
		patterns: []string{
			`^(?:{show} )?(?:the )?versions?(?: of)?(?: (?:my|the|all|installed))*(?: (?:tools|programs|languages|compilers))?(?: (?:here|installed))?$`, `^(?:which|what) (?:tools|programs|languages|compilers|versions)(?: of tools)? (?:are|do i have)(?: (?:installed|here|there))*$`, `^(?:which|what) version of {name} (?:is (?:installed|this|here)|do i have)$`, `^(?:the )?(?P<name>[\w.+-]+) version$`, `^{show} (?:installed )?tool versions$`,
		},
		plan: steps(
			func(j *job) *call {
				names := versioned
				if n := strings.ToLower(j.args["name"]); n != "" && plainWord.MatchString(n) {
					names = []string{n}
				}
				return bash("which of these programs are here", "type -P", strings.Join(names, " "))
			},
			func(j *job) *call {
				var parts []string
				for _, p := range j.results[0].lines() {
					name := p[strings.LastIndexByte(p, '/')+1:]
					flag := "--version"
					if name == "go" || name == "kubectl" || name == "terraform" {
						flag = "version"
					}
					if slices.Contains(versioned, name) {
						parts = append(parts, name+" "+flag)
					}
				}
				if len(parts) == 0 {
					return nil
				}
				return bash("their versions", strings.Join(parts, "; "))
			},
		),
		answer: func(j *job) string {
			if len(j.results) < 2 {
				if n := j.args["name"]; n != "" {
					if j.last().ok() {
						return code(n) + " is installed at " + code(firstLine(j.last().text)) + "; I do not know how to ask it for its version."
					}
					return "There is no program " + code(n) + " on your PATH."
				}
				return "I found none of the programs I know on your PATH."
			}
			return versionLines(j)
		},
		no: "I did not look",
	},
}

var jsonKey = rx(`^\s*"([^"]+)"\s*:`)

// versioned are programs that tell their version and do nothing else when asked.
var versioned = []string{"bash", "git", "go", "node", "npm", "python3", "pip3", "cargo", "rustc", "gcc", "clang", "make", "cmake", "docker", "java", "ruby", "php", "perl", "kubectl", "terraform", "tmux", "vim", "curl", "jq", "rg"}

func versionLines(j *job) string {
	var rows [][]string
	for _, l := range j.last().lines() {
		m := versionNumber.FindString(l)
		name := ""
		low := strings.ToLower(l)
		for _, v := range versioned {
			if strings.HasPrefix(low, v) || v == "bash" && strings.HasPrefix(low, "gnu bash") || v == "make" && strings.HasPrefix(low, "gnu make") || v == "python3" && strings.HasPrefix(low, "python ") || v == "pip3" && strings.HasPrefix(low, "pip ") || v == "java" && strings.HasPrefix(low, "openjdk ") || v == "rg" && strings.HasPrefix(low, "ripgrep ") || v == "vim" && strings.HasPrefix(low, "vim -") {
				name = v
			}
		}
		if name == "" && strings.HasPrefix(l, "v") && m != "" {
			name = "node" // it says the number alone
		}
		if name == "" && plainNumber.MatchString(l) {
			name = "npm"
		}
		if name == "perl" || strings.HasPrefix(low, "this is perl") {
			name = "perl"
		}
		if name != "" && m != "" && !slices.ContainsFunc(rows, func(r []string) bool { return r[0] == name }) {
			rows = append(rows, []string{name, m})
		}
	}
	if len(rows) == 0 {
		return fence("", j.last().text, 12, true)
	}
	if len(rows) == 1 {
		return "**" + rows[0][0] + "** " + rows[0][1] + "."
	}
	return mdTable([]string{"program", "version"}, rows)
}

var (
	versionNumber = rx(`\d+\.\d+(?:\.\d+)*(?:[-+.\w]*\w)?`)
	plainNumber   = rx(`^\d+\.\d+\.\d+$`)
)

func testCommand(t toolchain) string { return t.test }

// testAnswer counts what a test run says, and shows what failed.
func testAnswer(j *job) string {
	if !done(j, testCommand) {
		return noToolchain(j, "run tests")
	}
	r := j.last()
	sum, failed := testCounts(r.text)
	command := code(r.command)
	switch {
	case r.stopped == "timeout":
		return command + " took too long and was ended.\n\n" + fenceOrNothing(r.text)
	case r.ok() && sum != "":
		return "**The tests pass**: " + sum + ", by " + command + "."
	case r.ok():
		return "**The tests pass**: " + command + " ended with exit code 0.\n\n" + fence("", r.text, 8, false)
	case r.exit == 5 && strings.Contains(r.text, "no tests ran"):
		return "There are no tests: " + command + " found none."
	case strings.Contains(r.text, "No module named pytest"):
		return "pytest is not installed for this Python, so no test was run. `python3 -m pip install pytest` installs it."
	case strings.Contains(r.text, "Missing script") || strings.Contains(r.text, "No rule to make target") || strings.Contains(r.text, "no test specified"):
		return "The project has no tests that " + command + " knows of, so none was run.\n\n" + fence("", r.text, 6, false)
	}
	s := "**The tests fail**"
	if sum != "" {
		s += ": " + sum
	}
	s += fmt.Sprintf(" (%s, exit code %d).", command, r.exit)
	if len(failed) > 0 {
		s += "\n"
		for _, f := range failed[:min(len(failed), 15)] {
			s += "\n- " + code(f)
		}
		if n := len(failed) - 15; n > 0 {
			s += fmt.Sprintf("\n- and %d more", n)
		}
	}
	return s + "\n\n" + fence("", failureText(r.text), 30, true)
}

var (
	goOK       = rx(`(?m)^ok\s+\S+`)
	goFailPkg  = rx(`(?m)^FAIL\s+(\S+)`)
	goFailTest = rx(`(?m)^\s*--- FAIL: (\S+)`)
	cargoSum   = rx(`test result: \w+\. (\d+) passed; (\d+) failed`)
	cargoFail  = rx(`(?m)^test (\S+) \.\.\. FAILED`)
	pytestSum  = rx(`(?m)^=*\s*((?:\d+ (?:failed|passed|skipped|errors?|xfailed|xpassed|warnings?|deselected)(?:, )?)+) in [\d.]+s`)
	pytestFail = rx(`(?m)^(?:FAILED|ERROR) (\S+)`)
	jestSum    = rx(`(?m)^\s*Tests:\s+(.*\d+ total)`)
	mochaPass  = rx(`(?m)^\s*(\d+) passing`)
	mochaFail  = rx(`(?m)^\s*(\d+) failing`)
	nodeSum    = rx(`(?m)^(?:#|ℹ) (pass|fail) (\d+)`)
	jestFail   = rx(`(?m)^\s*(?:●|✕|✖|not ok \d+ -) (.+)$`)
)

// testCounts reads the sums that test programs print, and the names of what failed.
func testCounts(text string) (sum string, failed []string) {
	names := func(re *pattern) {
		for _, m := range re.FindAll(text) {
			if name := strings.TrimSpace(m[1]); !slices.Contains(failed, name) {
				failed = append(failed, name)
			}
		}
	}
	switch {
	case cargoSum.MatchString(text):
		pass, fail := 0, 0
		for _, m := range cargoSum.FindAll(text) {
			p, _ := strconv.Atoi(m[1])
			f, _ := strconv.Atoi(m[2])
			pass, fail = pass+p, fail+f
		}
		names(cargoFail)
		return fmt.Sprintf("%d passed, %d failed", pass, fail), failed
	case pytestSum.MatchString(text):
		all := pytestSum.FindAll(text)
		names(pytestFail)
		return all[len(all)-1][1], failed
	case jestSum.MatchString(text):
		names(jestFail)
		return jestSum.FindStringSubmatch(text)[1], failed
	case mochaPass.MatchString(text):
		sum = mochaPass.FindStringSubmatch(text)[1] + " passed"
		if m := mochaFail.FindStringSubmatch(text); m != nil {
			sum += ", " + m[1] + " failed"
		}
		return sum, nil
	case nodeSum.MatchString(text):
		var parts []string
		for _, m := range nodeSum.FindAll(text) {
			parts = append(parts, m[2]+" "+m[1]+"ed")
		}
		names(jestFail)
		return strings.Join(parts, ", "), failed
	case goOK.MatchString(text) || goFailPkg.MatchString(text):
		good, bad := len(goOK.FindAllString(text)), len(goFailPkg.FindAllString(text))
		names(goFailTest)
		if len(failed) == 0 {
			names(goFailPkg)
		}
		sum = count(good, "package") + " ok"
		if bad > 0 {
			sum += ", " + number(int64(bad)) + " failed"
		}
		return sum, failed
	}
	return "", nil
}

// failureText begins where the first failure is told.
func failureText(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if failureStart.MatchString(l) {
			return strings.Join(lines[i:min(len(lines), i+30)], "\n")
		}
	}
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}

var failureStart = rx(`^\s*--- FAIL|^FAIL|^failures:|^=+ (?:FAILURES|ERRORS) =+|^\s*●|^not ok|^\S+\.\w+:\d+:|^error`)
