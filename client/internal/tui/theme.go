package tui

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	"sublet/wire/visible"
)

// theme is how things look. It uses the terminal's own sixteen colours, which suit light and dark alike, also
// in highlighted code, so that the terminal need not be asked which it is.
type theme struct {
	profile colorprofile.Profile
	dark    bool
	ascii   bool // no glyph beyond ASCII: the locale or the terminal cannot show it

	dim, bold, accent, good, bad, warn, agent, path, level1, level2, chosen lipgloss.Style
}

// newTheme reads from env (as os.Environ) what the terminal can do: NO_COLOR, TERM, COLORTERM, COLORFGBG, the locale.
func newTheme(env []string) theme {
	// Not colorprofile.Detect: it starts `tmux info` and waits for it.
	t := theme{profile: colorprofile.Env(env), dark: true}
	look := lookup(env)
	if look("NO_COLOR") != "" { // whatever its value: no-color.org
		t.profile = min(t.profile, colorprofile.ASCII)
	}
	// COLORFGBG is "foreground;background" or "foreground;default;background", colours 0 to 15; 7 and 9 up are light.
	if v := look("COLORFGBG"); v != "" {
		if bg, err := strconv.Atoi(v[strings.LastIndexByte(v, ';')+1:]); err == nil {
			t.dark = bg != 7 && bg < 9
		}
	}
	locale := strings.ToLower(firstOf(look("LC_ALL"), look("LC_CTYPE"), look("LANG")))
	// The kernel's console has no Braille and few symbols.
	t.ascii = look("TERM") == "linux" || (locale != "" && !strings.Contains(locale, "utf-8") && !strings.Contains(locale, "utf8"))
	t.build()
	return t
}

func (t *theme) build() {
	if t.profile <= colorprofile.NoTTY {
		return // the zero style changes nothing
	}
	style := lipgloss.NewStyle()
	color := func(n uint8) lipgloss.Style {
		if t.profile <= colorprofile.ASCII {
			return style
		}
		return style.Foreground(ansi.BasicColor(n))
	}
	t.dim, t.bold, t.chosen = style.Faint(true), style.Bold(true), style.Reverse(true)
	t.bad, t.good, t.warn, t.path, t.agent, t.accent = color(1), color(2), color(3), color(4), color(5), color(6)
	if !t.dark && t.profile >= colorprofile.ANSI256 {
		t.warn = style.Foreground(lipgloss.ANSIColor(130)) // yellow on white cannot be read
	}
	t.level1, t.level2 = t.warn.Bold(true), t.bad.Bold(true)
}

// glyph picks between a symbol and its ASCII stand-in.
func (t *theme) glyph(symbol, ascii string) string {
	if t.ascii {
		return ascii
	}
	return symbol
}

var (
	spinner      = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}
	spinnerASCII = []string{"|", "/", "-", "\\"}
)

// spinnerEvery is how long each picture of the spinner stands.
const spinnerEvery = 120 * time.Millisecond

func (t *theme) spin(n int) string {
	if t.ascii {
		return spinnerASCII[n%len(spinnerASCII)]
	}
	return spinner[n%len(spinner)]
}

var plainSigns = strings.NewReplacer("·", "-", "…", "~", "–", "-")

// spell replaces the few signs that stand in running text where the terminal has only ASCII.
func (t *theme) spell(s string) string {
	if !t.ascii {
		return s
	}
	return plainSigns.Replace(s)
}

// level styles a risk level's name.
func (t *theme) level(name string) string {
	switch name {
	case "low":
		return t.good.Render(name)
	case "medium":
		return t.warn.Render(name)
	case "high":
		return t.level1.Render(name)
	}
	return t.level2.Render(visible.Line(name))
}

func lookup(env []string) func(string) string {
	return func(name string) string {
		for _, kv := range env {
			if k, v, ok := strings.Cut(kv, "="); ok && k == name {
				return v
			}
		}
		return ""
	}
}

func itoa(n int) string { return strconv.Itoa(n) }

// elapsed writes a duration as people say it: 0.4s, 12s, 3m05s, 1h02m.
func elapsed(d time.Duration) string {
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

// ticking is elapsed in whole seconds, for what changes on the screen while it runs.
func ticking(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	}
	return elapsed(d)
}

// count writes a number of tokens or bytes: 840, 1.2k, 34k, 1.5M.
func count(n int64) string {
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

// firstLine is the first line of s that is not blank, without its indentation.
func firstLine(s string) string {
	for l := range strings.Lines(s) {
		if l = strings.TrimSpace(l); l != "" {
			return l
		}
	}
	return ""
}

// plural writes n and its noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return itoa(n) + " " + many
}
