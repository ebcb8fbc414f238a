package transparent

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// What works alike in each of the shells.
func TestEveryShell(t *testing.T) {
	for _, k := range []kind{
		{
			name: "bash", rc: bashrc, multi: `PS1='\n[\[\e[32m\]\w\[\e[m\]]\n? '`,
			wait: "until [ -e gate ]; do sleep 0.02; done", status: "echo $?", jobs: "jobs", pasted: 2000,
			interrupted: `\^C\n> ▮$`, stopped: `^\[1\]\+  Stopped +\./nap\n> ▮$`,
		},
		{
			name: "zsh", rc: zshrc, multi: "PS1=$'\\n[%F{green}%~%f]\\n? '",
			wait: "until [ -e gate ]; do sleep 0.02; done", status: "echo $?", jobs: "jobs", pasted: 2000,
			interrupted: `\n> ▮$`, stopped: `^zsh: suspended  \./nap\n> ▮$`,
		},
		{
			name: "fish", rc: fishrc, multi: `function fish_prompt; echo; echo '['(set_color green)(prompt_pwd)(set_color normal)']'; echo -n '? '; end`,
			// Alone, fish takes 22 s to show 500 lines of a paste in brackets, and its screen does not follow one that is higher than it.
			wait: "while not test -e gate; sleep 0.02; end", status: "echo $status", jobs: "jobs -c", pasted: 20,
			lone:        "set -g fish_history ''", // two of them write one in an order that is chance
			interrupted: `\^C\n> ▮$`, stopped: `fish: Job 1, '\./nap' has stopped\n> ▮$`,
		},
	} {
		t.Run(k.name, func(t *testing.T) { test(t, k.rows()) })
	}
}

// nap begins to sleep, and shows when.
const nap = "#!/bin/sh\necho napping\nexec sleep 1000\n"

// A kind is how a shell says what all of them can.
type kind struct {
	name, multi          string
	wait, status, jobs   string // commands
	lone                 string // a line of the start-up file that keeps two shells apart
	interrupted, stopped string // what it shows after ^C at the prompt, and after ^Z
	pasted               int    // lines that it takes in one paste
	rc                   func(lines ...string) map[string]string
}

func (k kind) rows() []row {
	paste := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "echo line %d >>out\r", i)
		}
		return b.String()
	}
	wide := "echo '日本語 ☕ naïve 🎉 한국어'"
	rows := []row{
		{
			name: "multi-line prompt", files: k.rc(k.multi), first: `^\[~\]\n\? ▮$`,
			steps: []step{
				{keys: "echo one\r", until: `^one\n\n\[~\]\n\? ▮$`},
				{keys: "echo half\x0c", until: `\A\n?\[~\]\n\? echo half▮$`},
				{keys: "\r", until: `^half\n\n\[~\]\n\? ▮$`},
				{keys: "cd /usr\r", until: `^\[/usr\]\n\? ▮$`},
			},
		},
		{
			name: "first start", files: k.rc(k.multi), first: `\A\n?\[~\]\n\? ▮$`, fresh: true,
			steps: []step{
				{keys: "echo half", until: `\A\n?\[~\]\n\? echo half▮$`},
				{keys: "\r", until: `^half\n\n\[~\]\n\? ▮$`},
			},
		},
		{
			name: "pasted lines in brackets", files: k.rc(),
			steps: []step{
				{keys: "\x1b[200~" + strings.TrimSuffix(paste(k.pasted), "\r") + "\x1b[201~", until: fmt.Sprintf(`line %d >>out▮$`, k.pasted-1)},
				{keys: "\r", until: `> ▮$`},
				{keys: "tail -1 out\r", until: fmt.Sprintf(`^line %d\n> ▮$`, k.pasted-1)},
			},
		},
		{
			// While a command runs, the terminal itself echoes what is typed, at a place that is chance.
			name: "pasted lines", files: k.rc(),
			steps: []step{{keys: paste(2000) + "wc -l out\r", until: `^2000 out\n> ▮$`, blind: true}},
		},
		{
			name: "resize while typing", files: k.rc(),
			steps: []step{
				{keys: "echo " + strings.Repeat("word ", 12), until: `word ▮$`},
				{cols: 50, rows: 24, until: `\A> echo(.*\n)+.*word ▮$`},
				{keys: "more\x01", until: `^> ▮echo`},
				{cols: 100, rows: 12, until: `^> ▮echo( word){12} more$`},
				{keys: "\r", until: `^word( word)+ more\n> ▮$`},
				{cols: 80, rows: 24, keys: "tput cols; tput lines\r", until: `^80\n24\n> ▮$`},
			},
		},
		{
			name: "40 columns", files: k.rc(), cols: 40,
			steps: []step{
				{keys: "echo 3456789 123456789 123456789 12345", until: `12345\n▮`},
				{keys: "678", until: `^678▮$`},
				{keys: "\x7f\x7f\x7f", until: `12345\n▮`},
				{keys: " and a line that is longer than two rows of this terminal", until: `terminal▮$`},
				{keys: "\x01\x06\x06", until: `^> ec▮ho`},
				{keys: "\x0b\x15echo done\r", until: `^done\n> ▮$`},
			},
		},
		{
			name: "wide characters", files: k.rc(), cols: 40,
			steps: []step{
				{keys: wide, until: `한국어'▮$`},
				{keys: "\x02\x02\x02\x7f", until: `🎉 ▮국어'$`},
				{keys: "\r", until: `^日本語 ☕ naïve 🎉 국어\n> ▮$`},
				{keys: "echo 日本語日本語日本語日本語日本語日本語日本語", until: `日本語\n?▮$`},
				{keys: "\x15mkdir ü; echo ?\r", until: `^.\n> ▮$`},
			},
		},
		{
			// vim's introduction asks for one of three things, by the second.
			name: "job control", files: with(k.rc(), "nap", nap),
			steps: []step{
				{keys: "./nap\r", until: `^napping\n▮`},
				{keys: "\x1a", until: k.stopped},
				{keys: k.jobs + "\r", until: `> jobs.*\n(.*\n)+> ▮$`},
				{keys: "fg\r", until: `> fg\n(.*\n)*▮`},
				{keys: "\x03", until: `> fg\n(.*\n)*\^C.?\n> ▮$`},
				{keys: k.status + "\r", until: `^(130|0)\n> ▮$`}, // fish returns 0
				{keys: "vim -u NONE -N --cmd 'set shortmess+=I'\r", until: `\A▮\n~`},
				{keys: "\x1a", until: `(?i)(stopped|suspended)(.*\n)*.*vim(.*\n)*> ▮$|vim.*(?i)stopped\n> ▮`},
				{keys: "fg\r", until: `\A▮\n~`},
				{keys: ":q\r", until: `fg\n(.*\n)*> ▮$`},
			},
		},
		{
			name: "interrupts", files: with(k.rc(), "nap", nap),
			steps: []step{
				{keys: "half a line", until: `line▮$`},
				{keys: "\x03", until: `half a line` + k.interrupted},
				{keys: k.status + "\r", until: `^(130|1|0)\n> ▮$`},
				{keys: "./nap\r", until: `napping\n▮`},
				{keys: "\x03", until: `napping\n\^C.?\n> ▮$`},
				{keys: "echo begun; cat\r", until: `^begun\n▮`},
				{keys: "echoed\r", until: `^echoed\nechoed\n▮`},
				{keys: "\x04", until: `^echoed\nechoed\n> ▮$`},
				{keys: "sh -c 'kill -9 $$'; " + k.status + "\r", until: `^137\n(fish.*\n)?> ▮$`},
			},
		},
		{
			name: "type-ahead", files: k.rc(),
			steps: []step{
				{keys: "echo begun; " + k.wait + "\r", until: `^begun\n▮`},
				{keys: "echo two\r", until: `^begun\necho two\n▮`},
				{keys: "echo half", until: `^begun\necho two\necho half▮`},
				{touch: "gate", until: `^two\n> echo half▮$`},
				{keys: "\r", until: `^half\n> ▮$`},
			},
		},
		{
			name: "output of a job while typing", files: k.rc(),
			steps: []step{
				{keys: "sh -c '(until [ -e gate ]; do sleep 0.02; done; echo from a job) &'\r", until: `\) &'\n> ▮$`},
				{keys: "echo half", until: `^> echo half▮$`},
				{touch: "gate", until: `halffrom a job\n▮`},
				{keys: " a line\r", until: `^half a line\n> ▮$`},
			},
		},
		{
			name: "settings of the terminal", files: with(k.rc(), "nap", nap),
			steps: []step{
				{keys: "stty intr ^T; ./nap\r", until: `^napping\n▮`},
				{keys: "\x14", until: `^napping\n\^T.?\n> ▮$`},
				{keys: "stty -a | grep -o 'intr = ..'\r", until: `^intr = ..\n> ▮$`},
				{keys: "stty sane -echo\r", until: `-echo\n> ▮$`},
				{keys: "echo begun; cat\r", until: `^begun\n▮`},
				{keys: "not echoed\r", until: `^not echoed\n▮`},
				{keys: "\x04", until: `^not echoed\n> ▮$`},
				{keys: "stty echo; stty -a | grep -o ' echo '\r", until: `^ echo\n> ▮$`},
			},
		},
		{
			name: "nested shells", files: k.rc(k.lone),
			steps: []step{
				{keys: k.name + "\r", until: `> ` + k.name + `\n> ▮$`},
				{keys: "cd /usr; pwd\r", until: `^/usr\n> ▮$`},
				{keys: "env -i PS1='sh: ' HOME=$HOME TERM=$TERM sh\r", until: `^sh: ▮`},
				{keys: "exit 3\r", until: `^sh: exit 3\n> ▮$`},
				{keys: k.status + "\r", until: `^3\n> ▮$`},
				{keys: "bash --norc --noprofile -c 'PS1=\"inner: \" exec bash --norc --noprofile'\r", until: `^inner: ▮`},
				{keys: "echo in bash\x0d", until: `^in bash\ninner: ▮`},
				{keys: "exit\r", until: `^exit\n> ▮$`},
				{keys: "exit\r", until: `> exit\n> ▮$|^> exit\nexit\n> ▮$`},
				{keys: "pwd -P | grep -o home\r", until: `^home\n> ▮$`},
			},
		},
		{
			name: "exec", files: with(k.rc(), "nap", nap),
			steps: []step{
				{keys: "exec env PS1='other: ' bash --norc --noprofile\r", until: `^other: ▮`},
				{keys: "echo one\r", until: `^one\nother: ▮`},
				{keys: "./nap\r", until: `napping\n▮`},
				{keys: "\x03", until: `\^C\nother: ▮`},
				{keys: "exec sh -c 'echo the last; exit 5'", until: `exit 5'▮`},
			},
			leave: "\r",
		},
		{
			name: "exit status", files: k.rc(), leave: "exit 7\r",
			steps: []step{{keys: "false\r", until: `^> false\n> ▮$`}},
		},
		{
			name: "end of input", files: k.rc(), leave: "\x04",
			steps: []step{{keys: "true\r", until: `^> true\n> ▮$`}},
		},
		{
			name: "full screen", needs: []string{"vim"}, files: with(k.rc(), "text", "first line\nsecond line\n"),
			steps: []step{
				{keys: "vim -u NONE -N text\r", until: `\A▮first line\nsecond line\n~`},
				{keys: "oadded\x1b", until: `first line\nadde▮d\nsecond`},
				{cols: 60, rows: 15, until: `\Afirst line\nadde▮d\nsecond line\n(~\n){10}~\z`},
				{keys: ":wq\r", until: `> ▮$`},
				{keys: "cat text\r", until: `^first line\nadded\nsecond line\n> ▮$`},
				{keys: "less text\r", until: `^first line\nadded\nsecond line\n~(.*\n)+text \(END\)▮|^first line\nadded\nsecond line\n.*END.*▮`},
				{keys: "q", until: `less text\n> ▮$`},
			},
		},
		{
			name: "tmux inside", needs: []string{"tmux"},
			files: with(k.rc(k.lone), ".tmux.conf", "set -g status off\nset -g default-command $SHELL\nset -sg escape-time 0\n"),
			steps: []step{
				{keys: "echo before\r", until: `^before\n> ▮$`},
				// The pause is for whoever reads: tmux drops what was printed before it and not read yet.
				{keys: "sleep 0.1; tmux new\r", until: `\A> ▮$`},
				{keys: "echo in tmux\r", until: `\A> echo in tmux\nin tmux\n> ▮$`},
				{keys: "\x02%", until: `│> ▮$`},
				{keys: "echo right\r", until: `│right *\n.*│> ▮$`},
				{keys: "exit\r", until: `\A> echo in tmux\nin tmux\n> ▮$`},
				{keys: "\x02d", until: `^\[detached .*\]\n> ▮$`},
				{keys: "sleep 0.1; tmux attach\r", until: `\A> echo in tmux\nin tmux\n> ▮$`},
				{keys: "exit\r", until: `^\[exited\]\n> ▮$`},
			},
		},
		{
			name: "screen inside", needs: []string{"screen"},
			files: with(k.rc(k.lone), ".screenrc", "startup_message off\naltscreen on\n"),
			steps: []step{
				{keys: "echo before\r", until: `^before\n> ▮$`},
				{keys: "screen\r", until: `\A> ▮$`},
				{keys: "echo in screen\r", until: `\A> echo in screen\nin screen\n> ▮$`},
				{keys: "exit\r", until: `screen is terminating\]\n> ▮$`},
			},
		},
	}
	if sshd {
		rows = append(rows, row{
			name: "ssh inside", files: with(k.rc(), "far", "#!/bin/sh\nexec env -i PS1='far: ' TERM=$TERM PATH=$PATH HOME=/ bash --norc --noprofile\n", "nap", nap),
			steps: []step{
				{keys: "ssh -t -F $SSH_CONFIG inside $HOME/far\r", until: `^far: ▮`},
				{keys: "echo over there\r", until: `^over there\nfar: ▮`},
				{cols: 60, rows: 15, keys: "tput cols; tput lines\r", until: `^60\n15\nfar: ▮`},
				{keys: "sh -c 'echo napping; exec sleep 1000'\r", until: `^napping\n▮`},
				{keys: "\x03", until: `\^C\nfar: ▮`},
				{keys: "exit 4\r", until: `^exit\n(⏎\n)?> ▮$`},
				{keys: k.status + "\r", until: `^4\n> ▮$`},
			},
		})
	}
	if os.Getuid() == 0 {
		rows = append(rows, row{
			name: "su", needs: []string{"su"}, files: with(k.rc(), ".bashrc", "PS1='su: '\n", "nap", nap),
			steps: []step{
				{keys: "su -p -s /bin/bash root\r", until: `^su: ▮`},
				{keys: "id -u\r", until: `^0\nsu: ▮`},
				{keys: "./nap\r", until: `napping\n▮`},
				{keys: "\x03", until: `\^C\nsu: ▮`},
				{keys: "exit 4\r", until: `^exit\n> ▮$`},
				{keys: k.status + "\r", until: `^4\n> ▮$`},
			},
		})
		if k.name == "bash" {
			rows[len(rows)-1].files[".bashrc"] = "[ $SHLVL = 1 ] && PS1='> ' || PS1='su: '\n"
		}
	}
	for i := range rows {
		rows[i].shell = k.name
	}
	return rows
}
