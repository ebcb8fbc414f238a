package risk

// programsGit are version control and its hosts. How to add a line: table.go.
const programsGit = `
git : high run-code do=git -C,-c,--git-dir,--work-tree,--namespace,--exec-path,--config-env,--super-prefix,--attr-source=val ; git
git status,log,show,diff,shortlog,describe,rev-parse,rev-list,ls-files,ls-tree,cat-file,blame,annotate,whatchanged,name-rev,merge-base,
	for-each-ref,show-ref,show-branch,var,version,help,count-objects,cherry,diff-tree,diff-files,diff-index,grep,check-ignore,check-attr,
	check-mailmap,check-ref-format,range-diff,verify-commit,verify-tag,fsck,get-tar-commit-id,patch-id,merge-tree,column,stripspace,
	interpret-trailers : low read args=text -n,-S,-G,--since,--until,--after,--before,--author,--committer,--grep,--date,-L,--diff-filter,-e,
	--max-count,--skip,--points-at,--match,--exclude=val -f=read --output=write --open-files-in-pager,-O=val --ext-diff,--textconv!medium,
	run-code="runs the programs that git's settings name" --in-place!medium,write="edits the file in place" ; looks at the repository
git reflog : low read args=text ; looks at where branches were
git reflog expire,delete : critical history args=text hard ; drops what could bring lost commits back
git ls-remote : medium network args=text -o,--upload-pack,--exec=val ; asks a remote for its branches
git add,stage : medium write do=gitadd args=text --chmod,--pathspec-from-file=val -n,--dry-run? undo="git restore --staged" ; notes changes for the
	next commit
git commit : medium write args=text -m,--message,-F,--file,-C,-c,--author,--date,-t,--template,--fixup,--squash,--cleanup,--trailer,
	--pathspec-from-file=val --amend!high,history="rewrites the last commit" -n,--no-verify!high,
	run-code="goes past the checks before a commit" --dry-run? undo="git reset --soft HEAD~1" ; makes a commit
git branch : medium write bare args=text -u,--set-upstream-to,--sort,--format,--points-at=val -a,-r,-v,-vv,--list,-l,--all,--remotes,
	--show-current,--merged,--no-merged,--contains? -D,-M,-C,-f,--force!high,history="drops or overwrites a branch" -d,--delete!medium,
	history="deletes a branch that is merged" ; lists or makes branches
git tag : medium write bare args=text -m,-F,--sort,--format,--points-at,--message,-u=val -l,--list,--contains,-n? -d,--delete,-f,
	--force!high,history="deletes or moves a tag" undo="git tag -d" ; lists or makes tags
git remote : low read args=text ; lists remotes
git remote show,update,prune : medium network args=text ; asks a remote
git remote add,set-url,remove,rm,rename,set-head,set-branches : high persistence args=text ; changes where commits come from and go
git remote get-url : low read args=text ; lists remotes
git stash : medium write args=text -m,--message=val undo="git stash pop" ; puts changes aside
git stash list,show : low read args=text -p,--stat? ; looks at what was put aside
git stash push,save,apply,pop,branch,create,store : medium write args=text -m,--message=val ; puts changes aside or back
git stash drop,clear : high delete args=text hard ; drops changes that were put aside
git fetch : medium network args=text --upload-pack,--depth,--refmap,-j,--jobs,--negotiation-tip,-o,--server-option=val --force,-f!medium,
	write="overwrites branches" ; fetches commits
git pull : medium network args=text --upload-pack,--depth,-s,--strategy,-X=val -f,--force!high,history="overwrites branches" ; fetches
	commits and merges them
git clone : medium network args=text -b,--branch,--depth,-o,--origin,--reference,--shallow-since,--filter,-j,--jobs,--separate-git-dir,-c,
	--config,--template,-u,--upload-pack,--bundle-uri=val --template!high,run-code="takes hooks from a folder" --recurse-submodules,
	--recursive!medium,network="fetches submodules too" ; fetches a repository
git push : high network do=gitpush -o,--push-option,--repo,--receive-pack,--exec=val --force-with-lease,--force-if-includes!critical,
	history="rewrites the history that others share" ; sends commits to a remote
git checkout,switch,restore : medium write do=gitcheckout -b,-B,-c,-C,-s,--source,--conflict,--orphan,--pathspec-from-file=val ; switches
	branches or puts files back
git reset : medium write args=text --soft,--mixed!medium,history="moves the branch" --hard,--merge,--keep!high,
	delete="drops changes that were never committed" undo="git reset HEAD@{1}" ; moves the branch or drops what was noted
git apply : medium write args=text -p,--directory,--exclude,--include=val --unsafe-paths!high,write="may write outside the repository"
	--apply!medium,write="applies it" --check,--stat,--numstat,--summary? undo="git apply -R" ; applies a patch
git merge,cherry-pick,revert,am : medium write args=text -m,-X,-s,--strategy,--into-name,-F,--directory,-p,--exclude,--include,
	--mainline=val --abort,--quit!high,delete="drops what was not committed" undo="git reset --hard ORIG_HEAD" ; changes the branch
git gc : medium write args=text --prune!high,history="drops for good what no branch holds" ; tidies git's own data
git prune : high history args=text hard -n,--dry-run? ; drops for good what no branch holds
git filter-repo : critical history args=text hard ; rewrites all commits, and forgets the old ones
git rebase,filter-branch,replace,fast-import : high history args=text -x,--exec,--onto,-s,-X,--tree-filter,--index-filter,
	--msg-filter,--env-filter,--commit-filter,--setup,--parent-filter,--tag-name-filter=shell -i,--interactive!high,history="opens an editor" ;
	rewrites commits
git clean : high delete do=gitclean -e,--exclude=val ; deletes what is not in version control
git rm : high delete args=text --pathspec-from-file=val -n,--dry-run? --cached!medium,write="takes files out of version control" ; deletes
	files from the work tree
git mv : medium write args=text undo="git mv back" ; moves files
git init : medium write args=write --template,--separate-git-dir,-b,--initial-branch,--object-format,--shared=val --template!high,
	run-code="takes hooks from a folder" ; makes a repository
git config : medium write do=gitconfig -f,--file,--blob,--type,--default,--get-urlmatch,--get-color,--comment=val ; reads or changes git's
	settings
git worktree : medium write args=text -b,-B,--reason=val ; manages work trees
git worktree list : low read args=text ; lists work trees
git worktree add,lock,unlock,repair,prune,move : medium write args=text -b,-B,--reason=val ; manages work trees
git worktree remove : high delete args=text ; deletes a work tree
git submodule : low read args=text ; looks at submodules
git submodule status,summary : low read args=text ; looks at submodules
git submodule update,init,sync : medium network args=text --recommend-shallow,-j,--jobs,--reference,--depth=val --remote!high,
	network="takes what the remotes hold now" ; fetches submodules
git submodule add,absorbgitdirs,set-url,set-branch : high network args=text -b,--branch,--name,--reference,--depth=val ;
	fetches or changes submodules
git submodule foreach : high run-code args=shell ; runs a command in every submodule
git submodule deinit : high delete args=text ; drops submodules
git bisect,bundle,notes,sparse-checkout,rerere,update-index,update-ref,symbolic-ref,read-tree,write-tree,commit-tree,hash-object,mktag,
	mktree,maintenance,pack-refs,repack,commit-graph,multi-pack-index,format-patch,archive,bugreport,diagnose,mergetool,difftool,lfs :
	medium write args=text -o,--output,-m,-d,--prefix,-x,--extcmd,-t,--tool,--remote,--exec=val -d,--delete!high,history="deletes a reference"
	; changes git's own data
git bundle create : medium write do=gitbundle args=text ; packs the history into a file
git bundle verify,list-heads : low read args=read ; looks at a packed history
git bisect log,view,visualize,terms : low read args=text ; looks at the search for a commit
git bisect start,good,bad,skip,reset,next,old,new : medium write args=text ; looks for the commit that broke something
git bisect run : medium run-code args=run ; runs a command for every step
git send-email,imap-send,request-pull,instaweb,daemon,http-backend,svn,p4,cvsimport,credential,credential-cache,credential-store : high
	network args=text ; sends or serves something
git lfs pull,fetch,ls-files,status,env,track,untrack,install : medium network args=text ; handles large files
gh,glab,hub,tea : high network args=text -R,--repo,-H,--hostname=val sub ; works on a host of repositories
gh,glab pr,issue,repo,run,release,workflow,gist,label,cache,project,org,ruleset,variable,mr,ci,pipeline,search,auth,api,alias,extension,
	secret,ssh-key,gpg-key,codespace,browse,status,config,completion,version,help,attestation : high network args=text -R,--repo,-q,--jq,-t,
	--template,-L,--limit,--json,-s,--state,-a,--assignee,-l,--label,-b,--branch,-w,--workflow,-H,--head,-B,--base,--body,-F,--body-file,
	--title,-c,-u,--user,-f,--search,-A,--author,-S,-p,--pattern,-D,--dir,--job=val sub ; works on a host of repositories
gh,glab pr,issue,repo,run,release,workflow,gist,label,cache,project,org,variable,mr,ci,pipeline list,view,ls,show,diff,checks,status,trace,
	get,log : medium network args=text -w,--web!high,run-code="opens a browser" ; asks a host of repositories
gh run watch,download : medium network args=text -n,--name,-D,--dir=val ; asks a host of repositories
gh pr checkout : medium network args=text ; fetches a branch
gh repo clone : medium network args=text ; fetches a repository
gh repo,release,run,cache,gist,label,issue,project,variable,workflow delete,archive,disable : critical delete args=text hard ; deletes
	something that others share
gh repo edit,rename,sync,fork,create,set-default,deploy-key : high network args=text ; changes a repository that others share
gh search repos,issues,prs,code,commits : medium network args=text ; asks a host of repositories
gh auth status : medium network args=text -t,--show-token!high,secret="shows your token" ; asks who you are
gh auth token,login,logout,refresh,setup-git,switch : high secret args=text ; works with your token
gh secret,ssh-key,gpg-key list : medium network args=text ; lists names of secrets or keys
gh secret,ssh-key,gpg-key set,add,remove,delete : critical secret args=text -b,--body,-f,--env-file=val hard ; changes secrets or keys that
	others rely on
gh api : medium network do=api -X,--method,-f,-F,--field,--raw-field,-H,--header,--input,-q,--jq,-t,--template,--hostname,-p,--preview,
	--cache=val ; asks or changes something on a server
gh alias set,import : high persistence args=text ; defines a command that runs later
gh alias list : low read args=text ; lists aliases
gh extension list,search,browse : medium network args=text ; lists extensions
gh extension install,exec,upgrade,create,remove : high run-code args=text ; installs or runs code
gh status,version,help,completion : low read args=text ; asks gh for something
gh browse : high run-code args=text ; opens a browser
hg,svn,bzr,fossil,jj,pijul,cvs,p4,darcs : high unknown args=text -R,--cwd,-r,-m,--config,--message=val --config!high,
	run-code="changes settings, which can run code" sub ; version control
hg,svn,fossil,jj,bzr status,st,log,diff,show,info,blame,annotate,summary,heads,tip,branches,tags,cat,ls,list,files,identify,id,paths,root,
	version,help,evolog,op : low read args=text -r,-l,-p,--stat,-T,-n=val ; looks at the repository
hg,svn,fossil,jj,bzr add,commit,ci,update,up,co,checkout,new,describe,branch,merge,squash,bookmark : medium write args=text -m,--message,-r,
	-b=val ; changes the repository
tig,lazygit,gitui,gitk,git-gui : medium read args=text ; opens a program that looks at the repository
pre-commit,lefthook,husky,lint-staged,commitlint : medium run-code args=text -c,--config=val ; runs the project's checks
git-filter-repo,bfg : critical history args=text hard ; rewrites all commits
`

// programsDev are compilers, builds, tests and linters: they run the project's code, which is everyday development.
const programsDev = `
go : medium run-code do=gorun args=text long -C,-o,-run,-bench,-tags,-count,-timeout,-mod,-modfile,-coverprofile,-cpuprofile,-memprofile,
	-ldflags,-gcflags,-p,-parallel,-cpu,-covermode,-coverpkg,-skip,-fuzz,-fuzztime,-benchtime,-exec,-toolexec,-overlay,-pkgdir,-installsuffix,
	-buildmode,-compiler,-shuffle,-trace,-list,-vettool,-f,-asmflags,-pgo,-outputdir,-blockprofile,-mutexprofile,-u=val ; builds or tests
go version,doc,list,help,bug,vet : low read args=text -vettool,-toolexec!high,run-code="go runs a program that is named here" -json,-m? ;
	looks at code
go env : low read args=text -w,-u!high,persistence="changes go's settings for good" ; shows go's settings
go build,test,run,generate,install : medium run-code do=gorun args=text ; builds, tests or runs the project's code
go fmt,fix : medium write args=text ; rewrites code
go get : medium network do=gorun args=text ; fetches code and changes go.mod
go mod : medium write args=text ; changes go.mod
go mod graph,why,verify : low read args=text ; looks at the module
go mod tidy,download,vendor,init,edit : medium network args=text -modfile=val ; changes or fetches modules
go work : medium write args=text ; changes the workspace
go clean : medium delete args=text -modcache,-cache,-testcache,-fuzzcache!medium,delete="empties a cache" undo="build it again" ; deletes
	build output
go tool : medium run-code args=text ; runs a tool of go
go tool cover,nm,objdump,pprof,trace,dist,covdata,test2json,vet,buildid : medium read args=text -html,-func,-mode,-o=val ; looks at build
	output
go telemetry : high network args=text ; changes what go reports
gofmt,gofumpt,goimports,golines,gci : low read -w!medium,write="rewrites the files" -r,-local,-m,-lang,-modpath,-extra,-cpuprofile=val long
	; checks how code is written
golangci-lint,staticcheck,govulncheck,revive,errcheck,gosec,gopls,godoc,gotestsum,benchstat,dlv,ginkgo,mockgen,wire,buf,air,goreleaser,ko,
	mage,sqlc,templ,stringer : medium run-code args=text ; checks, builds or tests the project's code
just,task,go-task : medium run-code do=make -f,--justfile,--taskfile,-t=val -d,--working-directory,--dir=val --set=val -n,--dry-run,--dry,-l,
	--list,--summary,--evaluate? ; runs the project's recipes
make,gmake,bmake,remake,ninja,samu : medium run-code do=make -f,--file,--makefile,-C,--directory,-j,--jobs,-l,-o,-W,-I,--eval,-E,-t,
	--old-file=val ; runs the project's build
cmake,ctest,cpack,meson,autoconf,automake,autoreconf,libtoolize,aclocal,autoheader,scons,waf,bazel,bazelisk,buck,buck2,please,pants,xmake,
	premake,qmake,b2,conan,vcpkg,xcodebuild,fastlane,pod,gradle,mvn,ant,sbt,lein,ivy,kotlinc,javac,scalac,groovyc,rustc,gcc,g++,cc,c++,clang,
	clang++,ld,gold,lld,mold,as,nasm,yasm,gfortran,flang,ghc,ghcid,cabal,stack,ocamlc,ocamlopt,dune,elm,purs,spago,nim,nimble,zig,crystal,
	shards,dmd,dub,ldc2,swiftc,tsc,esbuild,swc,babel,webpack,rollup,vite,parcel,turbo,nx,lerna,rush,gulp,grunt,sass,postcss,tailwindcss,protoc,
	flatc,thrift,antlr4,bison,yacc,flex,lex,swig,wasm-pack,wasm-bindgen,emcc,tinygo,gomobile,erlc,rebar3,mix,gleam,fpc,gnatmake,cobc,iverilog,
	verilator,yosys,latexmk,pdflatex,xelatex,lualatex,bibtex,typst,mdbook,hugo,jekyll,mkdocs,sphinx-build,doxygen,javadoc,zola,eleventy,gatsby,
	next,nuxt,astro,ng,vue,vue-cli-service,react-scripts,svelte-kit,ember,storybook : medium run-code args=text -o=write -D,-I,-L,-l,-W,-f,
	-std,-O,-j,-B,-S,-G,-c,-x,-T,-t,-p,-P,-F,-u,--build,--target,--config,--project=val -wrapper,-fplugin!high,
	run-code="runs a program that is named here" ; builds the project
cargo : medium run-code args=text -C,--config,-Z,--color=val sub ; works on a rust project
cargo build,b,check,c,test,t,run,r,bench,clippy,doc,d,rustc,rustdoc,fix,fmt,nextest,miri,expand,llvm-cov,tarpaulin,watch,make,xtask,leptos,
	tauri,udeps,hack,deny,audit,outdated,machete : medium run-code args=text -p,--package,--features,--target,--bin,--example,--test,--bench,
	--profile,-j,--jobs,--manifest-path,--target-dir,--message-format,--exclude=val --config!high,
	run-code="changes cargo's settings, which can run programs" ; builds or tests the project's code
cargo metadata,tree,version,locate-project,pkgid,read-manifest,verify-project,help,search,info : low read args=text
	--config!high,run-code="changes settings, which can name programs" --manifest-path,
	--format-version,-p,-i,-e,--features,--target=val ; looks at the project
cargo new,init,add,remove,rm,update,generate-lockfile,fetch,vendor : medium write args=text --name,--vcs,--edition,--features,
	--manifest-path,-p,--path,--git,--branch=val ; changes the project
cargo clean : medium delete args=text undo="build it again" ; deletes build output
cargo install,uninstall,binstall : high run-code args=text --git,--path,--version,--branch,--features,--root=val ; installs programs
cargo publish,yank,login,logout,owner : critical network args=text hard ; publishes, or changes what was published
rustup : medium network args=text ; manages rust
rustup show,which,doc,check,help : low read args=text ; looks at rust's versions
rustfmt,rust-analyzer,cbindgen,bindgen : medium write args=write ; rewrites or makes code
python,python2,python3,pypy,pypy3,ipython,ipython3,bpython : high run-code do=code -c,-m,-W,-X,-Q=val ; runs python
perl,raku : high run-code do=code -e,-E,-I,-M,-m=val ; runs perl
ruby,irb,pry,jruby,truffleruby,macruby : high run-code do=code -e,-r,-I,-E,-C=val ; runs ruby
node,nodejs,tsx,ts-node,electron : high run-code do=code -e,--eval,-p,--print,-r,--require,--import,--loader,--experimental-loader,-C,
	--inspect-port,--title=val ; runs javascript
deno : high run-code do=code args=text -A,--allow-all!high,run-code="lets the program do everything" -c,--config=val ; runs javascript
dotnet : medium run-code args=text -c,--configuration,-f,-o,--output,-r,-v,--project=val sub --info,--list-sdks,--list-runtimes? ; builds or runs
	the project
dotnet build,run,test,restore,clean,publish,pack,format,watch,msbuild,new,add,remove,sln,list : medium run-code args=text -c,--configuration,-f,-r,
	-v,--project,--filter=val -o,--output=write ; builds or runs the project
dotnet nuget,tool,workload,ef : high run-code args=text ; publishes packages, installs tools or changes a database
deno test,check,lint,fmt,info,doc,bench,cache,types,task,compile : medium run-code args=text -c,--config=val ; checks or tests the project's
	code
php,php8,php7,hhvm : high run-code do=code -r,-B,-R,-E,-F,-d,-c,-S,-t,-z,-f=val ; runs php
lua,luajit,lua5.1,lua5.3,lua5.4,texlua : high run-code do=code -e,-l=val ; runs lua
Rscript,R,julia,elixir,iex,groovy,osascript,guile,racket,ghci,runghc,runhaskell,tclsh,wish,expect,scala,swift,erl,escript,pwsh,powershell,
	jshell,jython,octave,matlab,sbcl,clisp,clojure,clj,bb,ocaml,utop,coqtop,prolog,swipl,nodemon,cscript,wscript,mono,wine,java,javaw,
	kotlin,dotnet-script,fsi,csi,smalltalk,forth,gforth,io,janet,fennel,nu,xonsh,elvish,q,node-gyp,gjs,qjs,quickjs,wasmtime,wasmer,dart,
	flutter,love,processing,scheme,mit-scheme,chez,newlisp,rexx : high run-code do=code -e,-E,-eval,--eval,-c,-Command,-EncodedCommand,-jar,
	-cp,-classpath,-ex,-x,-f,-l,-s,-p,-g,-L=val ; runs a program of another language
gdb,lldb,rust-gdb,rust-lldb,pwndbg : high run-code do=debugger args=text long -ex,-iex,-eval-command,-o,-x,-s,-S,-p,-pid,-c,-core,-cd,-d=val ;
	runs or looks into a program step by step
ruff,black,isort,autopep8,yapf,flake8,pylint,mypy,pyright,bandit,pydocstyle,vulture,pyflakes,pycodestyle,djlint,prettier,eslint,standard,
	stylelint,biome,rubocop,standardrb,phpcs,phpcbf,phpstan,psalm,shellcheck,shfmt,hadolint,yamllint,markdownlint,ansible-lint,tflint,sqlfluff,
	clang-format,clang-tidy,cppcheck,astyle,ktlint,detekt,checkstyle,swiftlint,swiftformat,stylua,luacheck,nixfmt,alejandra,ormolu,hlint,credo,
	buildifier,taplo,actionlint,gitleaks,semgrep,codespell,typos,cloc,tokei,scc,vale,proselint,dockerfilelint,jsonlint,tidy,commitizen,cz :
	medium run-code args=text -c,--config,--rulesdir,--plugin,--resolve-plugins-relative-to,--parser,--rcfile=val -o,--output-file=write ;
	checks or rewrites the project's code
pytest,py.test,tox,nox,coverage,nosetests,unittest,hypothesis,locust,behave,robot,jest,vitest,mocha,ava,tap,c8,nyc,karma,jasmine,cypress,
	playwright,wdio,testcafe,rspec,cucumber,minitest,phpunit,pest,codecept,bats,shellspec,busted,gtest,newman,k6,artillery,hurl : medium
	run-code args=text -k,-m,-n,-p,-c,-t,--config,--rootdir,--cov,--maxfail,-e,-r,--require=val -p!high,run-code="loads a plugin" ; tests the
	project's code
django-admin,flask,uvicorn,gunicorn,hypercorn,celery,alembic,rails,rake,puma,unicorn,sidekiq,artisan,symfony,nest,serverless,sls,prisma,
	typeorm,sequelize,knex,drizzle-kit,dbmate,migrate,flyway,liquibase,sqitch,atlas : high run-code args=text ; runs the project's code or
	changes its database
objdump,nm,readelf,size,c++filt,addr2line,dwarfdump,pahole,llvm-objdump,llvm-nm : low read args=read -j,-d,--section,-l,-s,-e,-x=val ; looks into
	programs
strip,ldd,otool,lipo,pkg-config,objcopy,ranlib : medium read
	args=read -j,-d,--section,-l,-s=val ; looks into programs
gcov,lcov,genhtml,gprof,ctags,etags,cscope,global,gtags,universal-ctags,bear,compiledb,ccache,sccache,distcc : medium write args=text -o,
	-f=write ; makes indexes or reports
`
