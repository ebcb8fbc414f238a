# make run builds sublet and opens it; make test runs everything that needs only Go and bash.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT := $(shell git rev-parse --short=12 HEAD 2>/dev/null)
LDFLAGS := -s -w -X sublet/cmd/internal/cli.version=$(VERSION) -X sublet/cmd/internal/cli.commit=$(COMMIT)

# The race detector needs a C compiler. Where there is none the tests still run, and CI fails rather than go without.
CC_FOUND := $(shell command -v $${CC:-cc} 2>/dev/null || command -v gcc 2>/dev/null || command -v clang 2>/dev/null)
RACE := $(if $(CC_FOUND),-race)

.PHONY: help run build dist test-deb install install-service uninstall shells test test-matrix test-attacks test-everyday test-outside test-web test-browser lint bench bench-compaction fuzz soak screens clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

# A sublet that is killed leaves its terminal to its guard, and make's caller would be there first.
run: build ## build sublet and open it
	@modes=$$(stty -g 2>/dev/null || true); status=0; ./bin/sublet || status=$$?; \
	if [ "$$status" -gt 128 ] && [ -n "$$modes" ]; then stty "$$modes"; printf '\r' >&2; fi; exit "$$status"

OUT ?= bin/sublet
build: ## build ./bin/sublet, and sublet-confine beside it
	@[ -x '$(OUT)' ] || echo 'building bin/sublet; the first time takes a minute or two' >&2
	@CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o '$(OUT)' ./cmd/sublet
	@CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o '$(dir $(OUT))sublet-confine' ./cmd/sublet-confine

dist: ## everything of a release in dist/: archives, deb, rpm, Homebrew formula, SBOM, checksums; URL= says where it will be
	@VERSION='$(VERSION)' URL='$(URL)' .ci/dist

test-deb: ## the deb in dist/ of this machine's architecture: installed below a folder of its own, run and removed (as root)
	@.ci/test-deb

PREFIX ?= $(HOME)/.local
install: build ## build and copy both to PREFIX/bin (default ~/.local)
	install -d '$(PREFIX)/bin'
	install -m 755 bin/sublet bin/sublet-confine '$(PREFIX)/bin/'

# Where a user's own services are: systemd.unit(5), launchd.plist(5).
UNITS ?= $(or $(XDG_CONFIG_HOME),$(HOME)/.config)/systemd/user
AGENTS ?= $(HOME)/Library/LaunchAgents
SERVICE := cmd/sublet/service
fill = sed 's|@BIN@|$(PREFIX)/bin/sublet|' '$(1)' >'$(2)'

install-service: install ## install, and have systemd (socket activation) or launchd start the daemon
	@if [ "$$(uname)" = Darwin ]; then \
		mkdir -p '$(AGENTS)'; $(call fill,$(SERVICE)/sublet.daemon.plist,$(AGENTS)/sublet.daemon.plist); \
		'$(PREFIX)/bin/sublet' daemon stop 2>/dev/null || true; \
		launchctl bootout "gui/$$(id -u)/sublet.daemon" 2>/dev/null || true; \
		launchctl bootstrap "gui/$$(id -u)" '$(AGENTS)/sublet.daemon.plist'; \
	else \
		install -d '$(UNITS)'; install -m 644 $(SERVICE)/sublet.socket '$(UNITS)/sublet.socket'; \
		$(call fill,$(SERVICE)/sublet.service,$(UNITS)/sublet.service); \
		if systemctl --user show-environment >/dev/null 2>&1; then \
			'$(PREFIX)/bin/sublet' daemon stop 2>/dev/null || true; \
			systemctl --user daemon-reload; systemctl --user enable --now sublet.socket; \
		else \
			echo 'no systemd user session here: once there is one, run `systemctl --user enable --now sublet.socket`'; \
		fi; \
	fi

uninstall: ## stop the daemon and remove the program and its service; sessions and settings stay
	if [ "$$(uname)" = Darwin ]; then launchctl bootout "gui/$$(id -u)/sublet.daemon" 2>/dev/null || true; \
	else systemctl --user disable --now sublet.socket sublet.service 2>/dev/null || true; fi
	rm -f '$(UNITS)/sublet.socket' '$(UNITS)/sublet.service' '$(AGENTS)/sublet.daemon.plist'
	-if '$(PREFIX)/bin/sublet' daemon status >/dev/null 2>&1; then '$(PREFIX)/bin/sublet' daemon stop; fi
	rm -f '$(PREFIX)/bin/sublet' '$(PREFIX)/bin/sublet-confine'

# What the tests of the user's shell drive, the shells and more: a program, or a script /usr/share/NAME/NAME*, by the name of its Debian
# package. bash-completion calls its script bash_completion, and other packages put files into its folder.
SHELLS := $(notdir $(patsubst %/,%,$(wildcard lease/shell/dialect/*/))) fzf zsh-autosuggestions zsh-syntax-highlighting bash-completion tmux screen vim direnv zoxide pinentry-tty gpg-agent
# What the everyday commands run that TestEveryday has held, beside git, gcc and make, and what the tests of the launcher trace it with.
TOOLS := cargo rustfmt npm python3 jq sqlite3 gdb strace xxd zip unzip bc file
missing_shells = $$(for name in $(SHELLS) $(TOOLS); do command -v "$$name" >/dev/null || \
	compgen -G "/usr/share/$$name/$${name/bash-/bash_}*" >/dev/null || echo "$$name"; done)

# The language server that TestGopls drives: the newest that Go 1.26 builds.
GOPLS := golang.org/x/tools/gopls@v0.23.0

shells: ## install the shells and programs that tests use (on Debian, as root)
	@[ -x "$$(go env GOPATH)/bin/gopls" ] || command -v gopls >/dev/null || GOFLAGS= GOBIN= go install '$(GOPLS)'
	@missing="$(missing_shells)"; [ -n "$$missing" ] || exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $$missing >/dev/null; \
	else echo 'make shells: missing:' $$missing >&2; exit 1; fi

# atexit_sleep_ms: with the race detector a program waits a second before it ends, and the tests start hundreds of them.
# -count=1: go test would take an old result of a test that builds and starts a program, whose sources it does not look at.
test: ## unit and end-to-end tests, race detector on; each fuzz seed once, each benchmark once and briefly
ifeq ($(RACE),)
	@if [ -n "$${CI:-}" ]; then echo 'make test: no C compiler for the race detector: install gcc or clang' >&2; exit 1; fi
	@echo 'make test: no C compiler, so without the race detector; install gcc or clang to have it'
endif
	@[ -n "$${CI:-}" ] || [ "$$(uname)" != Linux ] || [ "$$(id -u)" = 0 ] || sudo -n true 2>/dev/null || \
		echo "make test: neither root nor sudo without a password, so without the tests of other users' programs"
	@missing="$(missing_shells)"; [ -z "$$missing" ] || echo 'make test: without the tests of what is missing (`make shells` installs it):' $$missing
	export GORACE=atexit_sleep_ms=0; go test $(RACE) -count=1 -timeout 10m ./...; \
	go test $(RACE) -vet=off -short -run '^$$' -bench . -benchtime 1x $$(grep -rl '^func Benchmark' --include='*_test.go' . | xargs -n1 dirname | sort -u) >/dev/null

test-attacks: ## run every attack on confined commands, also without confinement
	go test -count=1 -timeout 30m -run '^TestAttacks$$' -v ./cmd/sublet-confine -every

test-everyday: ## compare everyday commands with and without confinement: status and files must be equal
	SUBLET_EVERYDAY=compare go test -count=1 -v -run '^TestEveryday$$' ./daemon/internal/judge

# The agents come with 1.4 GB. They and the stand-in for their models are alone on a loopback of their own.
test-outside: build ## what others wrote: a client in JavaScript, Claude Code, Codex, Gemini CLI, goose, opencode and Qwen Code in a user's shell, a model server with faults (needs Linux, node 20, npm)
	@command -v npm >/dev/null || { echo 'make test-outside: npm is not installed: install node 20 or newer' >&2; exit 1; }
	@for dir in wire/testdata/outside client/internal/gateway/acp/testdata/outside; do \
		npm ci --no-audit --no-fund --prefix $$dir; \
		(cd $$dir && node --test); \
	done
	npm install --no-save --no-audit --no-fund --prefix cmd/internal/e2e/testdata/outside # not ci: a mirror may lack what is for other systems
	go vet ./cmd/internal/e2e # brings what building it needs
	unshare $$([ "$$(id -u)" = 0 ] || echo -r) -n sh -c 'ip link set lo up && SUBLET_OUTSIDE=1 go test -count=1 -timeout 30m -parallel 1 -run "^TestOutside" -v ./cmd/internal/e2e'

test-web: ## the operator's front end in node, against the real program (needs node 20; part of make test where node is)
	@command -v node >/dev/null || { echo 'make test-web: node is not installed: install node 20 or newer' >&2; exit 1; }
	CI=1 go test -count=1 -run '^TestOperatorModule$$' ./cmd/internal/e2e

# Chromium is Debian's; playwright-core drives it and brings no browser of its own. Screenshots are left in bin/browser.
BROWSER := $(CURDIR)/bin/browser
PLAYWRIGHT := 1.65.1
TYPESCRIPT := 5.9.3
test-browser: ## the operator's page in a real Chromium, which is installed on Debian, and its types (needs node 20, npm); screenshots in bin/browser
	@command -v $${CHROMIUM:-chromium} >/dev/null || apt-get install -y chromium
	@mkdir -p '$(BROWSER)'; [ -f '$(BROWSER)/package.json' ] || echo '{"private":true}' >'$(BROWSER)/package.json'
	@[ -d '$(BROWSER)/node_modules/playwright-core' ] || npm install --no-audit --no-fund --prefix '$(BROWSER)' playwright-core@$(PLAYWRIGHT)
	@[ -d '$(BROWSER)/node_modules/typescript' ] || npm install --no-audit --no-fund --prefix '$(BROWSER)' typescript@$(TYPESCRIPT)
	'$(BROWSER)/node_modules/.bin/tsc' --strict --exactOptionalPropertyTypes --noEmit --target es2022 --lib es2022,dom --module nodenext client/web/testdata/consumer.ts
	CI=1 SUBLET_BROWSER='$(BROWSER)' CHROMIUM="$$(command -v $${CHROMIUM:-chromium})" go test -count=1 -run '^TestOperatorPage$$' ./cmd/internal/e2e

test-matrix: ## the shell's tests with bash 5.1, 5.2 and 5.3 of Debian's releases (needs a Debian with apt; installs nothing)
	@for release in bullseye trixie forky; do \
		bash="$$(.ci/bash-of $$release)"; \
		echo "$$release: $$("$$bash" --version | head -1)"; \
		SUBLET_TEST_BASH="$$bash" go test -count=1 ./lease/shell; \
	done

# What only tests call: their suites, the catalogue of messages, what the launcher's filter is generated by, and, since this
# looks at Linux, what is for macOS.
TESTED := wire/wiretest/|wire/(kinds|errors)[.]go|sublet-confine/(filter/|seatbelt[.]go)

lint: ## check format, vet, staticcheck, dead code, import directions, sizes and complexity
	@unformatted="$$(go tool gofumpt -l cmd wire daemon client lease compaction)"; \
	if [ -n "$$unformatted" ]; then echo "not gofumpt'ed (run: go tool gofumpt -w .):" >&2; echo "$$unformatted" >&2; exit 1; fi
	go vet ./...
	GOOS=darwin go vet ./...
	go tool staticcheck ./...
	@over="$$(go tool gocyclo -over 25 -ignore '_test\.go$$' cmd wire daemon client lease compaction)" || { \
		echo 'functions of a cyclomatic complexity over 25:' >&2; echo "$$over" >&2; exit 1; }
	@all="$$(go tool deadcode -test ./...)"; product="$$(go tool deadcode ./cmd/...)"; \
	dead="$$(printf '%s\n' "$$all" "$$product" | grep -vE '^$$|$(TESTED)' | sort -u || true)"; \
	[ -z "$$dead" ] || { echo 'functions that nothing calls, or only tests:' >&2; echo "$$dead" >&2; exit 1; }
	go test -count=1 -run '^Test(Imports|Sizes)' ./cmd/sublet
	go mod verify >/dev/null

bench: build ## print a table: sublet, a baseline of the same run, ratio, goal; ROWS="E1 C" for some
	@go run ./cmd/internal/bench $(ROWS)

bench-compaction: ## print which facts of 20 recorded sessions a compaction leaves in its ledger, and which recall finds
	@go test -count=1 -v -run '^TestProbes$$' ./daemon/internal/agent

# New inputs are kept as they are found: to shorten them takes longer than all the rest where goroutines make coverage vary.
FUZZ ?= 200000x
MODEL ?= 100000
fuzz: ## run each fuzz target FUZZ times (default 200000x), and the models of the lease and of the shells MODEL times (default 100000)
	go test -count=1 -timeout 60m -run '^TestBothSides$$' ./client/internal/lender -rapid.checks=$(MODEL)
	go test -count=1 -timeout 60m -run '^TestModel$$' ./lease/shell -model.steps=$(MODEL)
	@for target in $$(grep -rlE '^func Fuzz' --include='*_test.go' .); do \
		for name in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]+).*/\1/p' $$target); do \
			echo "$$(dirname $$target) $$name"; \
			go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZ) -fuzzminimizetime 10x ./$$(dirname $$target); \
		done; \
	done

SOAK ?= 10
LOAD ?= 8
CHAOS ?= 10m
# Tests are linked once, since that takes a quarter of a round. Eight packages at once keep half of the machine busy beside the loops.
soak: ## run four agents at random for CHAOS (default 10m), and each package's tests SOAK times (default 10) beside LOAD busy loops (default 8); takes hours
	go test $(RACE) -count=1 -timeout 0 -run '^TestChaos$$' ./daemon/internal/server -chaos.for=$(CHAOS)
	@trap 'kill $$(jobs -p)' EXIT; for n in $$(seq $(LOAD)); do while :; do :; done & done; \
	GORACE=atexit_sleep_ms=0 go test $(RACE) -count=$(SOAK) -timeout 0 -p 8 ./...

screens: build ## draw the picture of the README from the running program (needs tmux)
	@.ci/screens

clean: ## remove what was built
	rm -rf bin dist
