package risk

import "strings"

// doMake judges make and its kin: they run the project's code.
func (a *analysis) doMake(c *cmdCall) {
	if c.has("-n", "--dry-run", "--just-print", "--recon", "-q", "--question", "-p", "--print-data-base") && c.name != "ninja" && !strings.Contains(joinFields(c.operands), "=") {
		a.note(Medium, RunCode, c.span, "shows what the build would do, which may run parts of it")
		return
	}
	a.base(c)
	for i := range c.opts {
		o := &c.opts[i]
		switch o.name {
		case "--eval", "-E":
			a.runs()
			a.note(High, RunCode, o.span, "gives make code of its own")
			if o.val != nil {
				v := strings.NewReplacer("$(shell ", "$(", "$$", "$").Replace(o.val.s)
				a.raiseBy(v, o.span, c.st)
			}
		case "-j", "--jobs", "-l":
			// The number may be missing: then the next word is a target.
			if o.val != nil && o.val.span != o.span && !isDigits(o.val.s) {
				c.operands = append(c.operands, *o.val)
			}
		case "-f", "--file", "--makefile", "--justfile", "--taskfile", "-t":
			if o.val != nil {
				a.runFile(c, o.val)
			}
		case "-C", "--directory", "-d", "--working-directory", "--dir":
			if o.val != nil {
				if p := a.pathOf(o.val, c.st); p == "" || a.c.ProjectRoot != "" && !under(p, a.c.ProjectRoot) {
					a.note(High, RunCode, o.span, "runs the code of a build outside the project")
				}
			}
		}
	}
	for i := range c.operands {
		f := &c.operands[i]
		if k, v, ok := strings.Cut(f.s, "="); ok {
			if k == "SHELL" || k == "MAKEFLAGS" || strings.Contains(v, "$(shell") || strings.Contains(v, "`") {
				a.runs()
				a.note(High, RunCode, f.span, "gives make code of its own")
				a.raiseBy(strings.NewReplacer("$(shell ", "$(", "$$", "$").Replace(v), f.span, c.st)
			}
			continue
		}
		switch {
		case f.opaque():
			a.note(High, Unknown, f.span, "a target that is not known here")
		case f.s == "install" || f.s == "uninstall" || strings.HasPrefix(f.s, "install-"):
			a.note(High, Write, f.span, "installs to the system")
		case f.s == "deploy" || f.s == "publish" || f.s == "release" || strings.HasPrefix(f.s, "deploy-") || f.s == "push" || f.s == "upload":
			a.note(High, Network, f.span, "publishes or deploys")
		}
	}
}

// doNpx judges programs that fetch a package and run it.
func (a *analysis) doNpx(c *cmdCall) {
	a.runs()
	if o := c.opt("-c", "--call"); o != nil && o.val != nil {
		a.note(High, RunCode, c.span, "runs a command among a package's programs")
		a.shellText(c, o.val, c.st)
		return
	}
	if c.has("--no-install", "--no", "--offline") {
		a.note(Medium, RunCode, c.span, "runs a program of the project's packages")
		return
	}
	name := ""
	if len(c.operands) > 0 {
		name = c.operands[0].s
		if i := strings.LastIndexByte(name, '@'); i > 0 {
			name = name[:i]
		}
	}
	if everydayTools()[name] {
		a.note(Medium, RunCode, c.span, "runs "+name+", fetching it where it is missing")
		a.dropsData(c)
		a.facts.fetched = true
		return
	}
	a.note(High, RunCode, c.span, "fetches a package and runs its code")
	a.facts.fetched = true
	a.seen |= flowNet
}

// everydayTools are packages whose programs are everyday development.
var everydayTools = lazySet(`tsc eslint prettier jest vitest mocha ava tap c8 nyc vite webpack rollup esbuild tsx ts-node tsup turbo nx next nuxt astro playwright cypress biome @biomejs/biome
	stylelint markdownlint markdownlint-cli typedoc swc babel sass postcss tailwindcss husky lint-staged commitlint depcheck madge knip npm-check-updates ncu typescript svelte-check vue-tsc ng
	storybook expo prisma drizzle-kit knex create-react-app ruff black mypy pytest flake8 isort pylint pyright tox nox pre-commit cookiecutter httpie`)

// dropsDataWords are tasks of frameworks that empty or drop their database.
var dropsDataWords = wordSet(`flush reset_db sqlflush db:drop db:drop:_unsafe db:reset db:purge db:truncate_all db:wipe migrate:fresh migrate:reset migrate:refresh schema:drop
	doctrine:database:drop doctrine:schema:drop ecto.drop ecto.reset db:migrate:reset db:schema:load`)

// dropsData judges the tasks that a framework's own command is told to run.
func (a *analysis) dropsData(c *cmdCall) {
	text := joinFields(c.fields)
	for i := range c.fields[1:] {
		if f := &c.fields[i+1]; dropsDataWords[f.s] {
			a.note(Critical, Delete, f.span, "drops or empties the database").cannotUndo()
		}
	}
	for _, words := range []string{"migrate reset", "--force-reset", "downgrade base", "migrate zero"} {
		if strings.Contains(text, words) {
			a.note(Critical, Delete, c.span, "drops or empties the database").cannotUndo()
		}
	}
}

// doPip judges pip and its kin.
func (a *analysis) doPip(c *cmdCall) {
	a.base(c)
	a.optionRoles(c)
	for i := range c.operands {
		f := &c.operands[i]
		switch {
		case strings.Contains(f.s, "://") || strings.HasPrefix(f.s, "git+"):
			a.note(High, RunCode, f.span, "installs code straight from an address")
			a.address(f)
		case strings.HasPrefix(f.s, "/") || strings.HasPrefix(f.s, "../") || strings.HasPrefix(f.s, "~"):
			if p := a.pathOf(f, c.st); p == "" || !under(p, a.c.ProjectRoot) {
				a.note(High, RunCode, f.span, "installs code from "+show(f.s))
			}
		case f.opaque():
			a.note(High, Unknown, f.span, "installs what is not known here")
		}
	}
	for i := range c.opts {
		switch o := &c.opts[i]; o.name {
		case "--index-url", "-i", "--extra-index-url", "--registry", "--trusted-host", "--find-links", "--break-system-packages", "--target", "--prefix", "--root", "--user":
			a.note(High, Network, o.span, "installs from or to another place than usual")
		}
	}
}

// doGoRun judges go run, generate, install and get.
func (a *analysis) doGoRun(c *cmdCall) {
	a.base(c)
	for i := range c.opts {
		o := &c.opts[i]
		switch o.name {
		case "-toolexec", "-exec", "--toolexec", "--exec", "-vettool", "-overlay", "-modfile":
			a.runs()
			a.note(High, RunCode, o.span, "go runs a program that is named here")
			if o.val != nil && strings.HasSuffix(o.name, "exec") {
				a.shellText(c, o.val, c.st)
			}
		case "-o":
			if o.val != nil {
				a.touch(Write, o.val, c.st, touchOptions{})
			}
		case "-ldflags", "-gcflags":
			if o.val != nil && strings.Contains(o.val.s, "extld") {
				a.note(High, RunCode, o.span, "go runs a program that is named here")
			}
		}
	}
	sub := c.sub()
	for i := range c.operands {
		f := &c.operands[i]
		s := f.s
		if i > 0 && sub == "run" {
			break
		}
		switch {
		case f.opaque():
			a.note(High, Unknown, f.span, "a package that is not known here")
		case strings.Contains(s, "@") && (sub == "run" || sub == "install"):
			a.note(High, RunCode, f.span, "fetches a program and "+sub+"s it")
			a.facts.fetched = true
		case strings.HasPrefix(s, "/") || strings.HasPrefix(s, "../") || strings.HasPrefix(s, "~"):
			if p := a.pathOf(f, c.st); p == "" || !under(p, a.c.ProjectRoot) {
				if sub == "run" || sub == "test" || sub == "generate" {
					a.note(High, RunCode, f.span, "runs code outside the project")
				}
			}
		}
	}
}
