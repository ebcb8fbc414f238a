// Package style has the colours of the screen, and formats numbers and durations for people.
package style

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"sublet/wire/visible"
)

// Theme is the styles of the screen. It uses the terminal's own sixteen colours, which suit light and dark alike, also
// in highlighted code, so that the terminal's background need not be queried.
type Theme struct {
	Profile colorprofile.Profile
	Dark    bool
	ASCII   bool // the locale or the terminal shows only ASCII

	Dim, Bold, Accent, Good, Bad, Warn, Path, Level1, Level2, Chosen lipgloss.Style

	names []lipgloss.Style
}

// New returns the theme for a terminal as env (as os.Environ) describes it: NO_COLOR, TERM, COLORTERM, COLORFGBG, the locale.
func New(env []string) Theme {
	// Not colorprofile.Detect: it starts `tmux info` and waits for it.
	t := Theme{Profile: colorprofile.Env(env), Dark: true}
	getenv := uv.Environ(env).Getenv
	if getenv("NO_COLOR") != "" { // with any value: no-color.org
		t.Profile = min(t.Profile, colorprofile.ASCII)
	}
	// COLORFGBG is "foreground;background" or "foreground;default;background", colours 0 to 15; 7 and 9 up are light.
	if v := getenv("COLORFGBG"); v != "" {
		if bg, err := strconv.Atoi(v[strings.LastIndexByte(v, ';')+1:]); err == nil {
			t.Dark = bg != 7 && bg < 9
		}
	}
	locale := strings.ToLower(cmp.Or(getenv("LC_ALL"), getenv("LC_CTYPE"), getenv("LANG")))
	// The kernel's console has no Braille and few symbols.
	t.ASCII = getenv("TERM") == "linux" || (locale != "" && !strings.Contains(locale, "utf-8") && !strings.Contains(locale, "utf8"))
	t.build()
	return t
}

func (t *Theme) build() {
	if t.Profile <= colorprofile.NoTTY {
		return // the zero style changes nothing
	}
	style := lipgloss.NewStyle()
	color := func(n uint8) lipgloss.Style {
		if t.Profile <= colorprofile.ASCII {
			return style
		}
		return style.Foreground(ansi.BasicColor(n))
	}
	t.Dim, t.Bold, t.Chosen = style.Faint(true), style.Bold(true), style.Reverse(true)
	t.Bad, t.Good, t.Warn, t.Path, t.Accent = color(1), color(2), color(3), color(4), color(6)
	t.names = []lipgloss.Style{color(5), color(6), color(4), color(13), color(14), color(12)} // red, green and yellow, which are for outcomes, are left out
	if !t.Dark && t.Profile >= colorprofile.ANSI256 {
		t.Warn = style.Foreground(lipgloss.ANSIColor(130)) // yellow on white is unreadable
	}
	t.Level1, t.Level2 = t.Warn.Bold(true), t.Bad.Bold(true)
}

// SpinnerEvery is how long each frame of the spinner is shown.
const SpinnerEvery = 120 * time.Millisecond

// Spin returns the spinner's frame at a time.
func (t *Theme) Spin(now time.Time) string {
	return t.Accent.Render(string([]rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")[now.UnixMilli()/SpinnerEvery.Milliseconds()%10]))
}

// spelling has each symbol that is drawn here, followed by what replaces it in ASCII.
var spelling = []string{
	"[✓]", "[x]", "✓", "+", "✗", "x", "⊘", "-", "■", "#", "●", "*", "○", "-", "•", "*", "·", "-", "…", "~", "–", "-",
	"─", "-", "│", "|", "┼", "+", "└", "`", "▌", "|", "▸", ">", "▶", ">", "±", "*", "↶", "<", "→", ">", "↑↓", "up/down", "⌨", "*", "⏎", "%",
	"⠋", "|", "⠙", "/", "⠹", "-", "⠸", "\\", "⠼", "|", "⠴", "/", "⠦", "-", "⠧", "\\", "⠇", "|", "⠏", "/",
}

var (
	symbols = strings.NewReplacer(spelling...)
	marked  = sync.OnceValue(func() *strings.Replacer {
		var pairs []string
		for _, r := range strings.Join(spelling, "") {
			if r >= utf8.RuneSelf {
				pairs = append(pairs, string(r), fmt.Sprintf("⟨U+%04X⟩", r))
			}
		}
		return strings.NewReplacer(pairs...)
	})
)

// Spell replaces the symbols of the screen by ASCII if the terminal shows only that.
func (t *Theme) Spell(s string) string {
	if !t.ASCII {
		return s
	}
	return symbols.Replace(s)
}

// Mark returns s with the code points of the symbols that Spell would replace in their place: text of others is not to look like
// other text.
func (t *Theme) Mark(s string) string {
	if !t.ASCII {
		return s
	}
	return marked().Replace(s)
}

// Line is visible.Line and Mark.
func (t *Theme) Line(s string) string { return t.Mark(visible.Line(s)) }

// Level styles a risk level's name.
func (t *Theme) Level(name string) string {
	switch name {
	case "low":
		return t.Good.Render(name)
	case "medium":
		return t.Warn.Render(name)
	case "high":
		return t.Level1.Render(name)
	}
	return t.Level2.Render(visible.Line(name))
}

// Name returns an agent's name, safe to display, in a colour that depends only on the name.
func (t *Theme) Name(agent string) string {
	if len(t.names) == 0 {
		return visible.Line(agent)
	}
	h := fnv.New32a()
	h.Write([]byte(agent)) // never an error
	return t.names[h.Sum32()%uint32(len(t.names))].Render(visible.Line(agent))
}

// Elapsed formats a duration for people: 0.4s, 12s, 3m05s, 1h02m.
func Elapsed(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// Ticking is Elapsed in whole seconds, for a duration that is shown while it grows.
func Ticking(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	}
	return Elapsed(d)
}

// Count formats a number of tokens or bytes: 840, 1.2k, 34k, 1.5M.
func Count(n int64) string {
	switch {
	case n < 1000:
		return strconv.FormatInt(n, 10)
	case n < 10_000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	case n < 1_000_000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}
