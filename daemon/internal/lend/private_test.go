package lend

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sublet/daemon/internal/job"
	"sublet/daemon/internal/tool"
	"sublet/wire"
)

// Nobody can type in a private shell: a command that waits for keys there was run until its time was over.
func TestKeysThatNobodyTypes(t *testing.T) {
	const rest = ", and nobody can type in a private shell: give it the input another way, or have the user run it"
	p, draft := privateShell(t)
	for text, want := range map[string]string{
		"read -sp pass: x; echo got $x": "bash asked for a password",
		"read -p name: x; echo got $x":  "it waited for keys",
		"cat":                           "it waited for keys",
		"cat </dev/null; sleep 1":       "",
	} {
		for _, become := range []func() (*job.Draft, error){nil, draft} {
			r, err := p.try(t.Context(), text, time.Hour, become)
			if want == "" && (err != nil || r.Status != "ok" || len(r.Notes) > 0) ||
				want != "" && (err != nil || r.Status != "cancelled" || !slices.Contains(r.Notes, want+rest) || strings.Contains(string(r.Output), "got")) {
				t.Errorf("%s: got %s, %q, %q, %v, want %q", text, r.Status, r.Output, r.Notes, err, want)
			}
		}
	}
}

// borrower runs everything in one private shell.
type borrower struct {
	Borrower
	p *Private
}

func (b borrower) Lent() (*Lender, error)                    { return nil, nil }
func (b borrower) Private(context.Context) (*Private, error) { return b.p, nil }
func (b borrower) Prepare(c tool.Command, _ string) (Command, error) {
	return Command{Command: c}, nil
}

// A result names what its command changed in the shell, also after a cancel, but not for a shell that ended.
func TestChangesAreNoted(t *testing.T) {
	p, _ := privateShell(t)
	sh := &Shell{By: borrower{p: p}}
	for _, c := range []struct {
		text   string
		cancel bool // at its first output
		want   []string
	}{
		{"export DATABASE=mine; cd /", false, []string{"changed in the shell: set DATABASE"}},
		{"export DATABASE=yours; echo; sleep 60", true, []string{"changed in the shell: changed DATABASE"}},
		{"export DATABASE=theirs; kill -9 $$", false, nil},
	} {
		place, err := sh.Where(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		r, err := sh.Run(ctx, tool.Command{ExecutionID: "x", Text: c.text, Approved: place, Timeout: time.Minute}, func([]byte) {
			if c.cancel {
				cancel()
			}
		})
		cancel()
		changed := slices.DeleteFunc(r.Notes, func(n string) bool { return !strings.HasPrefix(n, "changed in") })
		if err != nil || !slices.Equal(changed, c.want) {
			t.Errorf("%s: got %s, %q, %v, want %q", c.text, r.Status, changed, err, c.want)
		}
	}
}

// A command that went on as a job and then waits for keys ends, and the job says why: it ran until somebody killed it.
func TestKeysThatNobodyTypesToAJob(t *testing.T) {
	jobs, err := job.Open(t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(jobs.Close)
	for text, want := range map[string]string{
		"read -sp pass: x; echo got $x": "bash asked for a password, and nobody can type in a private shell",
		"read -p name: x; echo got $x":  "it waited for keys, and nobody can type in a private shell",
	} {
		p, _ := privateShell(t)
		wait := filepath.Join(t.TempDir(), "go")
		r, err := p.try(t.Context(), "until [ -e "+wait+" ]; do sleep 0.01; done; "+text, 10*time.Millisecond, func() (*job.Draft, error) { return jobs.New(wire.Job{Shell: "bash"}, 2) })
		if err != nil || r.Job == nil {
			t.Fatalf("got %+v, %v", r, err)
		}
		if err := os.WriteFile(wait, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if _, err := jobs.Await(ctx, "", r.Job.JobID, nil); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		cancel()
		if i, err := jobs.Get("", r.Job.JobID); err != nil || !strings.Contains(i.End(), want) {
			t.Errorf("%s: got %q, %v, want %q", text, i.End(), err, want)
		}
	}
}

// A shell that takes long to start is waited for: its first command was planned without its state, and then refused as changed.
func TestAShellThatStartsSlowly(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	gate := filepath.Join(dir, "gate")
	slow := "#!" + bash + "\ncase $* in *BASH_VERSINFO*) ;; *) until [ -e " + gate + " ]; do sleep 0.01; done ;; esac\nexec " + bash + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "bash"), []byte(slow), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	p, draft := privateShell(t)
	ended := make(chan error, 1)
	go func() {
		_, err := p.try(t.Context(), "true", time.Minute, draft)
		ended <- err
	}()
	select {
	case err := <-ended:
		t.Fatalf("before it had started: %v", err)
	case <-time.After(2 * settleBound): // a lent shell would not be waited for any more
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
