package cli

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/term"

	"sublet/client/marks"
	"sublet/wire"
)

// drawVerdict prints the level, the command with the significant parts marked and numbered, and the reasons by number.
func (a *app) drawVerdict(command string, v wire.Verdict) {
	a.printf("%s", plain(v.Level))
	if v.Reach != "" {
		a.printf(", reach %s", plain(v.Reach))
	}
	a.printf("\n")
	list, numbers := marks.Of(command, v.Reasons)
	if len(list) > 0 {
		a.printf("\n%s\n", drawMarks(command, list, columns(a.stdout)-2, "  ", manyRows))
	}
	wide := len(strconv.Itoa(len(list)))
	for i, r := range v.Reasons {
		number := ""
		if numbers[i] > 0 {
			number = strconv.Itoa(numbers[i])
		}
		a.printf("  %*s %-12s %s\n", wide, number, plain(r.Effect), firstLine(r.Text, 400))
	}
	if v.Level != "low" {
		if v.Reversible {
			a.printf("  can be undone")
		} else {
			a.printf("  cannot be undone")
		}
		if v.UndoHint != "" {
			a.printf(": %s", plain(v.UndoHint))
		}
		a.printf("\n")
	}
}

// manyRows is how many rows of a command drawVerdict prints; of a longer one it leaves out those without a mark.
const manyRows = 24

// drawMarks returns a command with marks below its rows, indented. If it has more than many rows, those without a mark are left
// out.
func drawMarks(command string, list []wire.Span, width int, indent string, many int) string {
	var b strings.Builder
	rows := marks.Draw(command, list, width)
	gap := false
	for _, row := range rows {
		if len(rows) > many && len(row.Marks) == 0 {
			if !gap {
				b.WriteString(indent + "…\n")
			}
			gap = true
			continue
		}
		gap = false
		for _, line := range append([]string{row.Text}, row.Marks...) {
			b.WriteString(indent + line + "\n")
		}
	}
	return b.String()
}

// drawOutcomes prints what each mode would do, and marks the current one.
func (a *app) drawOutcomes(outcomes []wire.PolicyOutcome, now string) {
	verbs := map[string]string{"allow": "runs", "ask": "asks", "deny": "refuses"}
	a.printf("\n")
	for _, o := range outcomes {
		here := " "
		if o.Mode == now {
			here = "*"
		}
		a.printf("%s %-5s %-8s %s\n", here, plain(o.Mode), cmp.Or(verbs[o.Decision], plain(o.Decision)), firstLine(o.Why, 200))
	}
}

// columns returns a terminal's width; 100 if w is none, or is too narrow to draw for.
func columns(w any) int {
	if f, ok := w.(file); ok {
		if n, _, err := term.GetSize(f.Fd()); err == nil && n >= 20 {
			return n
		}
	}
	return 100
}
