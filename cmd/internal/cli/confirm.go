package cli

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"sublet/client"
	"sublet/client/marks"
	"sublet/wire"
)

// asker asks the person at the terminal before something risky runs. nil is valid where nobody can be asked, but only close may be called.
type asker struct {
	app *app
	tty *os.File
}

// newAsker returns nil where nobody can be asked: no terminal, or the output is for a program.
func newAsker(a *app, json bool) *asker {
	if json || !isTerminal(a.stderr) {
		return nil
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	return &asker{app: a, tty: tty}
}

func (q *asker) close() {
	if q != nil {
		q.tty.Close()
	}
}

// ask shows the question and sends the answer. Only y or yes allows, once; everything else is no. If ctx ends, it sends nothing.
// What was typed before the question is discarded.
func (q *asker) ask(ctx context.Context, c *client.Conn, m *wire.ConfirmationRequest) {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s wants to run, in %s (risk: %s):\n\n", plain(m.Agent), plain(string(m.Cwd)), plain(m.Verdict.Level))
	what := string(m.Command)
	list, numbers := marks.Of(what, m.Verdict.Reasons)
	if what == "" && m.Tool != wire.ToolPlan { // the preview has its steps
		what = m.Tool + " " + m.Arguments
	}
	b.WriteString(drawMarks(what, list, columns(q.tty)-4, "    ", math.MaxInt) + "\n") // all rows, since all of it would run
	for i, r := range m.Verdict.Reasons {
		number := "-"
		if numbers[i] > 0 {
			number = strconv.Itoa(numbers[i])
		}
		fmt.Fprintf(&b, "  %*s %s\n", len(strconv.Itoa(len(list))), number, plain(r.Text))
	}
	if m.Preview.Type != "none" && m.Preview.Content != "" {
		fmt.Fprintf(&b, "\n%s\n", plain(m.Preview.Content))
	}
	b.WriteString("Allow this once? [y/N] ")
	flush(q.tty)
	fmt.Fprint(q.tty, b.String())
	decision, comment := wire.DecisionDeny, ""
	line := q.readLine(ctx)
	if ctx.Err() != nil {
		return // the turn is cancelled, which ends the question; a no would arrive first and let the agent continue
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		decision = wire.DecisionAllow
	case "", "n", "no":
	default:
		comment = strings.TrimSpace(line) // any other text is a refusal with a comment for the agent
	}
	if err := c.Notify(&wire.ConfirmationResponse{ConfirmationID: m.ConfirmationID, Decision: decision, Comment: comment}); err != nil {
		q.app.printNotice("error", err.Error(), "")
	}
}

// readLine waits for a line; "" when ctx or the terminal ends.
func (q *asker) readLine(ctx context.Context) string {
	line := make(chan string, 1)
	go func() { // ends with the line, or with close
		s, _ := bufio.NewReader(q.tty).ReadString('\n')
		line <- s
	}()
	select {
	case s := <-line:
		return s
	case <-ctx.Done():
		return ""
	}
}
