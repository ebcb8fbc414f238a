package shell

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sublet/wire/citest"
)

var (
	modelSteps = flag.Int("model.steps", 500, "steps of TestModel for each shell")
	modelSeed  = flag.Uint64("model.seed", 0, "seed of TestModel; 0 = a new one")
)

// A user types lines key by key, corrects them, switches to the agent and back, while borrowers run commands, are
// cancelled, the window is resized and the shell is killed, all at random. No line of the user's may be lost, torn or mixed
// with a borrower's command, and each of those that ended well has run once.
func TestModel(t *testing.T) {
	for _, d := range dialects {
		t.Run(d.Name, func(t *testing.T) {
			t.Parallel()
			path := citest.Program(t, d.Name)
			seed := *modelSeed
			if seed == 0 {
				seed = uint64(time.Now().UnixNano())
			}
			defer func() {
				if t.Failed() {
					t.Logf("again with -model.seed=%d", seed)
				}
			}()
			m := newModel(t, path, rand.New(rand.NewPCG(seed, 0)))
			for range *modelSteps {
				m.step()
			}
			m.finish()
		})
	}
}

// model is what the test knows: the line that the user has typed so far, and which lines and commands must have run.
type model struct {
	t      *testing.T
	r      *rand.Rand
	s      *Shell
	scr    *screen
	dir    string
	n      int
	name   string   // of the line that is being typed
	want   string   // that line
	typed  int      // of it
	lines  []string // that were entered
	lent   []string // that ended well
	maybe  []string // that were cancelled or whose shell was killed: they may have run
	kills  int
	screen bool // the user asks an agent
	mu     sync.Mutex
	busy   sync.WaitGroup
	holder sync.Mutex // one holder at a time is the lender's to see to
	cancel []context.CancelFunc
}

func newModel(t *testing.T, path string, r *rand.Rand) *model {
	m := &model{t: t, r: r, dir: t.TempDir()}
	m.s, m.scr = start2(t, func(o *Options) { o.Path, o.Patience = path, 5*time.Millisecond })
	m.scr.prompts(t, 1)
	return m
}

func (m *model) step() {
	switch k := m.r.IntN(100); {
	case k < 55:
		m.key()
	case k < 75:
		m.borrow()
	case k < 80:
		m.cancelOne()
	case k < 88:
		m.switchScreen()
	case k < 92 && m.s.Name() == "fish": // loses what it writes meanwhile (fish-shell#12496), as the report of a line
	case k < 92:
		_ = m.s.Resize(Size{Cols: 20 + m.r.IntN(100), Rows: 5 + m.r.IntN(40)})
	case k < 98:
		time.Sleep(time.Duration(m.r.IntN(10)) * time.Millisecond)
	default:
		if m.kills < 2 { // one that dies more often at once is given up
			m.kill()
		}
	}
}

// key types the next key of the user's line, or a wrong one that it takes back.
func (m *model) key() {
	m.s.mu.Lock()
	full := len(m.s.ahead) > 32<<10
	m.s.mu.Unlock()
	if full {
		time.Sleep(10 * time.Millisecond) // nobody types as fast as this test
		return
	}
	if m.screen {
		return
	}
	if m.want == "" {
		m.n++
		m.name = fmt.Sprintf("u%d", m.n)
		m.want, m.typed = fmt.Sprintf("echo %s >> %s/user", m.name, m.dir), 0
	}
	switch {
	case m.typed == len(m.want):
		m.keys("\r")
		m.lines = append(m.lines, m.name)
		m.want = ""
	case m.r.IntN(10) == 0 && m.reads():
		m.keys("#")
		m.keys("\x7f")
	case m.r.IntN(10) == 0 && m.typed > 0:
		m.keys("\x1b[D")
		m.keys("\x1b[C")
	default:
		n := min(1+m.r.IntN(6), len(m.want)-m.typed)
		m.keys(m.want[m.typed : m.typed+n])
		m.typed += n
	}
}

// reads reports whether the editor reads all that is typed until the next Enter. Around a command the terminal changes to
// canonical mode and back, and there a Backspace does not erase what was received in the other mode, also without sublet.
func (m *model) reads() bool {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	return len(events[UserEnded](m.scr)) == len(m.lines) && !m.s.proc.term.Echoes()
}

func (m *model) keys(text string) {
	if err := m.s.Keys([]byte(text)); err != nil {
		m.t.Fatalf("keys: %v", err)
	}
}

// borrow runs a command of a borrower's beside the user.
func (m *model) borrow() {
	m.mu.Lock()
	if len(m.cancel) > 2 {
		m.mu.Unlock()
		return
	}
	m.n++
	name := fmt.Sprintf("b%d", m.n)
	ctx, cancel := context.WithTimeout(m.t.Context(), time.Minute)
	m.cancel = append(m.cancel, cancel)
	m.mu.Unlock()
	text := fmt.Sprintf("echo %s >> %s/lent", name, m.dir)
	if m.r.IntN(4) == 0 {
		text += "; sleep 0.0" + fmt.Sprint(m.r.IntN(5))
	}
	m.busy.Go(func() {
		defer cancel()
		var res Result
		m.holder.Lock()
		err := m.s.Hold(ctx)
		if err == nil {
			res, err = m.s.Run(ctx, Command{Text: text})
			if rerr := m.s.Release(); rerr != nil && ctx.Err() == nil {
				m.t.Errorf("release: %v", rerr)
			}
		}
		m.holder.Unlock()
		m.mu.Lock()
		defer m.mu.Unlock()
		if err == nil && res.Status == "ok" {
			m.lent = append(m.lent, name)
		} else {
			m.maybe = append(m.maybe, name)
		}
		m.cancel = slices.DeleteFunc(m.cancel, func(c context.CancelFunc) bool { return fmt.Sprintf("%p", c) == fmt.Sprintf("%p", cancel) })
		m.cancel = m.cancel[:max(0, len(m.cancel)-1)]
	})
}

func (m *model) cancelOne() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.cancel) > 0 {
		m.cancel[m.r.IntN(len(m.cancel))]()
	}
}

// switchScreen goes to the agent and back, as Tab does.
func (m *model) switchScreen() {
	if m.screen {
		if err := m.s.GiveScreen(m.t.Context()); err != nil {
			m.t.Errorf("give the screen: %v", err)
		}
		m.screen = false
		return
	}
	ok, err := m.s.HoldIfEmpty(m.t.Context())
	if err != nil {
		m.t.Errorf("take the screen: %v", err)
	}
	if ok && m.want != "" && m.typed > 0 {
		m.t.Errorf("the line holds %q and was taken for empty", m.want[:m.typed])
	}
	m.screen = ok
}

// kill ends the shell between two lines; what was typed into it is gone with it.
func (m *model) kill() {
	m.settle()
	m.kills++
	_ = syscall.Kill(m.s.PID(), syscall.SIGKILL)
	m.scr.until(m.t, "a restart", func() bool { return len(events[Restarted](m.scr)) == m.kills })
	m.want = ""
}

// settle waits until nothing is on its way any more.
func (m *model) settle() {
	if m.screen {
		m.switchScreen()
	}
	for end := time.Now().Add(patience); m.want != "" && m.typed < len(m.want) && time.Now().Before(end); {
		m.key()
	}
	if m.want != "" {
		m.keys("\r")
		m.lines = append(m.lines, m.name)
		m.want = ""
	}
	m.busy.Wait()
	for end := time.Now().Add(patience); m.s.Busy() != "" || len(events[UserEnded](m.scr)) < len(m.lines); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			shown := ending(m.scr.String(), 1000)
			busy, ran := m.s.Busy(), len(read(m.t, m.dir+"/user"))
			m.s.mu.Lock()
			defer m.s.mu.Unlock()
			m.t.Fatalf("busy %q, %d of %d lines ran; editor %+v, ahead %q, route %d; ran %v, want %v; screen %q", busy, ran, len(m.lines), m.s.editor, m.s.ahead, m.s.out.route, tail(read(m.t, m.dir+"/user")), tail(m.lines), shown)
		}
	}
}

// finish compares what ran with what should have.
func (m *model) finish() {
	m.settle()
	if got := read(m.t, m.dir+"/user"); !slices.Equal(got, m.lines) {
		m.t.Errorf("the user's lines: ran %v, want %v", got, m.lines)
	}
	for i, e := range events[UserEnded](m.scr) {
		if want := fmt.Sprintf("echo %s >> %s/user", m.lines[i], m.dir); e.Text != want {
			m.t.Errorf("a line was reported as %q, want %q", e.Text, want)
		}
	}
	got := read(m.t, m.dir+"/lent")
	if c := slices.Clone(got); len(slices.Compact(slices.Sorted(slices.Values(c)))) != len(got) {
		m.t.Errorf("a borrowed command ran twice: %v", got)
	}
	for _, name := range m.lent {
		if !slices.Contains(got, name) {
			m.t.Errorf("%s ended well and has not run", name)
		}
	}
	for _, name := range got {
		if !slices.Contains(m.lent, name) && !slices.Contains(m.maybe, name) {
			m.t.Errorf("%s ran, and nobody knows of it", name)
		}
	}
	if m.t.Failed() {
		m.t.Logf("screen %q", ending(m.scr.String(), 4000))
	}
	if strings.Contains(m.scr.String(), "__sublet") {
		m.t.Error("the line that runs a borrowed command was shown")
	}
}

func read(t *testing.T, path string) []string {
	b, err := os.ReadFile(filepath.Clean(path))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Fields(string(b))
}

func tail(list []string) []string { return list[max(0, len(list)-5):] }

func ending(s string, n int) string { return s[max(0, len(s)-n):] }
