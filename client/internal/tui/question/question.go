// Package question asks the user what an agent may do: it handles the keys and draws the question. The answer is no until the
// user chooses otherwise. Keys that were typed for something else never answer.
package question

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"sublet/client/internal/tui/card"
	"sublet/client/internal/tui/line"
	"sublet/wire"
	"sublet/wire/visible"
)

// ArmDelay is how long a question must have been on the screen, without any key typed, before a key can answer it.
const ArmDelay = 300 * time.Millisecond

// Question is one question to the user.
type Question struct {
	*wire.ConfirmationRequest
	// Local receives the answer to a question of this window's own; nil = the question is the daemon's.
	Local func(allow bool)

	shown  time.Time // when it was first on the screen; zero = not yet
	step   step
	choice int  // index in options(), or in the grants
	scroll int  // the first shown line of the body
	live   bool // armed without a delay: it has handled a key, so the user has read it
	sent   bool
	edit   line.Line // the edited command, or the comment
}

type step int

const (
	stepAsk step = iota
	stepGrant
	stepComment
	stepEdit
)

// Keys of answers. The choices of an agent's own question have 1 and up.
const (
	keyAllow   = "y"
	keyAlways  = "a"
	keyDeny    = "n"
	keyComment = "c"
	keyEdit    = "e"
)

// text is one of the texts in which the questions about tools differ.
type text int

const (
	wants text = iota // what the agent wants to do
	// Labels of the answers.
	no
	yes
	comment
	// For the line of the comment, and for that of the edited command: what is before it, and the help below it.
	label
	help
	editLabel
	editHelp
	// Outcomes.
	allowed
	notAllowed
)

var (
	plain = map[text]string{
		wants: "run this", no: "no", yes: "yes, once", comment: "no, because…",
		label: "why not? ", help: "enter refuses with this · esc goes back",
		editLabel: "run instead: ", editHelp: "enter runs this instead, judged anew · esc goes back",
		allowed: "allowed once", notAllowed: "not allowed",
	}
	// kinds has what differs from plain, by the tool.
	kinds = map[string]map[text]string{
		"keyboard":        {wants: "read what you type, unseen"},
		"edit":            {wants: "change a file"},
		"write":           {wants: "change a file"},
		wire.ToolTrust:    {wants: "read this folder's instructions", yes: "yes, from now on", allowed: "trusted from now on", notAllowed: "not trusted"},
		wire.ToolContinue: {wants: "go on", no: "stop", yes: "go on", comment: "go on, but…", allowed: "goes on", notAllowed: "stopped"},
		wire.ToolAskUser: {
			wants: "know something", no: "no answer", comment: "in my own words…", label: "your answer: ", help: "enter answers · esc goes back",
			allowed: "answered", notAllowed: "not answered",
		},
		wire.ToolPlan: {
			wants: "carry out this plan", yes: "yes, carry it out", comment: "no, change…", editLabel: "",
			editHelp: "a step a line · alt+enter new line · enter accepts · esc goes back",
			allowed:  "plan accepted: plan mode is over", notAllowed: "plan not accepted: plan mode stays on",
		},
	}
)

func (q *Question) text(t text) string {
	if s, ok := kinds[q.Tool][t]; ok {
		return s
	}
	if t == wants && q.Command == "" {
		return "use " + visible.Line(q.Tool)
	}
	return plain[t]
}

// option is one possible answer.
type option struct {
	key, label string
}

// options returns the possible answers. No is the first, and chosen until the user moves.
func (q *Question) options() []option {
	o := []option{{keyDeny, q.text(no)}}
	if q.Tool == wire.ToolAskUser {
		for i, choice := range q.userQuestion().Choices {
			o = append(o, option{strconv.Itoa(i + 1), visible.Line(choice)})
		}
	} else {
		o = append(o, option{keyAllow, q.text(yes)})
	}
	if len(q.Grants) > 0 {
		o = append(o, option{keyAlways, "always…"})
	}
	if q.Local == nil {
		o = append(o, option{keyComment, q.text(comment)})
		if q.Command != "" && !q.Fixed || q.Tool == wire.ToolPlan {
			o = append(o, option{keyEdit, "edit"})
		}
	}
	return o
}

// userQuestion returns the question of an agent of another program, with its choices.
func (q *Question) userQuestion() wire.UserQuestion {
	asked, err := wire.ParseUserQuestion(q.Arguments)
	if err != nil {
		return wire.UserQuestion{Question: q.Arguments}
	}
	return asked
}

// subject returns what would run: the command, or the arguments of another tool; "" if it has none.
func (q *Question) subject() string {
	switch q.Tool {
	case wire.ToolAskUser:
		return q.userQuestion().Question
	case wire.ToolPlan:
		return q.Preview.Content
	}
	if q.Arguments == "{}" {
		return ""
	}
	return cmp.Or(string(q.Command), (&card.Card{Tool: q.Tool, Args: q.Arguments}).Subject(), q.Arguments)
}

// Ready reports whether a key can answer now, given that the last one was typed at lastKey. The first call records that the question is
// on the screen.
func (q *Question) Ready(now, lastKey time.Time) bool {
	if q.shown.IsZero() {
		q.shown = now
	}
	return q.armed(now, lastKey)
}

func (q *Question) armed(now, lastKey time.Time) bool {
	return q.live || !q.shown.IsZero() && now.Sub(q.shown) >= ArmDelay && now.Sub(lastKey) >= ArmDelay
}

// Disarm disarms the question, because the shell or a program had the screen, and the keys were for it.
func (q *Question) Disarm() { q.shown, q.live = time.Time{}, false }

// Sent records that the answer is being sent.
func (q *Question) Sent() { q.sent = true }

// Back returns to the choice of an answer, and reports whether the question was at another step.
func (q *Question) Back() bool {
	was := q.step
	q.step, q.choice = stepAsk, 0
	return was != stepAsk
}

func (q *Question) writing() bool { return q.step == stepComment || q.step == stepEdit }

// Paste inserts a paste into the line for a comment or a command, and reports whether there is such a line.
func (q *Question) Paste(text string) bool {
	if q.writing() {
		q.edit.Insert(text)
	}
	return q.writing()
}

// Key handles a key and returns an answer, or nil. Until the question is armed, keys belong to what the user was typing before:
// typing is true for them, but Tab and Esc are dropped. typing is also true for a key that means nothing to the question, which is
// then disarmed.
func (q *Question) Key(k, text string, now, lastKey time.Time) (answer *wire.ConfirmationResponse, typing bool) {
	if q.writing() || q.armed(now, lastKey) {
		answer, meant := q.press(k, text)
		q.live = k != keyAlways // a standing permission needs another armed key
		if meant {
			return answer, false
		}
	}
	switch k {
	case "up", "down", "tab", "shift+tab", "esc":
		if q.step == stepGrant { // no typed text contains these keys
			q.live = true
			q.press(k, text)
		}
	case "ctrl+d":
	case "enter":
		return nil, q.step != stepGrant // there it is meant for the list
	default: // typed text may contain the key of any answer
		q.Back()
		q.live = false
		return nil, true
	}
	return nil, false
}

// pageLines is by how many lines Page Up and Page Down scroll; Render bounds the scroll.
const pageLines = 8

// press handles a key of an armed question and returns an answer, or nil. meant reports whether the key has a meaning.
func (q *Question) press(k, text string) (answer *wire.ConfirmationResponse, meant bool) {
	if q.sent {
		return nil, false
	}
	switch q.step {
	case stepComment, stepEdit:
		return q.write(k, text), true
	case stepGrant:
		n := len(q.Grants)
		switch k {
		case "up", "ctrl+p", "shift+tab":
			q.choice = (q.choice + n - 1) % n
		case "down", "ctrl+n", "tab":
			q.choice = (q.choice + 1) % n
		case "esc", "n":
			q.Back()
		case "enter":
			answer = q.answer(wire.DecisionAllowAlways)
			answer.Grant = &q.Grants[q.choice]
		default:
			return nil, false
		}
		return answer, true
	}
	opts := q.options()
	switch k {
	case "left", "shift+tab", "ctrl+b":
		q.choice = (q.choice + len(opts) - 1) % len(opts)
	case "right", "tab", "ctrl+f":
		q.choice = (q.choice + 1) % len(opts)
	case "up", "ctrl+p":
		q.scroll = max(0, q.scroll-1)
	case "down", "ctrl+n":
		q.scroll++
	case "pgup":
		q.scroll = max(0, q.scroll-pageLines)
	case "pgdown":
		q.scroll += pageLines
	case "esc":
		return q.take(keyDeny), true
	case "enter":
		return q.take(opts[q.choice].key), true
	default:
		for _, o := range opts {
			if k == o.key {
				return q.take(o.key), true
			}
		}
		return nil, false
	}
	return nil, true
}

// take handles the choice of the option that has a key. It returns the answer, or nil if the user has to write or choose more.
func (q *Question) take(key string) *wire.ConfirmationResponse {
	switch key {
	case keyAllow:
		return q.answer(wire.DecisionAllow)
	case keyDeny:
		return q.Refuse()
	case keyAlways:
		q.step, q.choice = stepGrant, 0
	case keyComment:
		q.step = stepComment
		q.edit.Set("")
	case keyEdit:
		q.step = stepEdit
		q.edit.Set(q.subject())
	default: // a choice of an agent's own question
		answer := q.answer(wire.DecisionAllow)
		answer.Comment = q.userQuestion().Choices[key[0]-'1']
		return answer
	}
	return nil
}

// write handles a key while a comment or a command is edited.
func (q *Question) write(k, text string) *wire.ConfirmationResponse {
	switch k {
	case "esc", "ctrl+g":
		q.Back()
	case "alt+enter", "ctrl+j":
		q.edit.Insert("\n")
	case "enter":
		written := strings.TrimSpace(q.edit.Text)
		if q.step == stepComment {
			answer := q.answer(wire.DecisionDeny)
			if answer.Comment = written; q.Tool == wire.ToolAskUser && written != "" {
				answer.Decision = wire.DecisionAllow
			}
			return answer
		}
		if written == "" {
			return nil
		}
		answer := q.answer(wire.DecisionAllow)
		if q.edit.Text != q.subject() {
			answer.EditedCommand = new(wire.OSString(q.edit.Text))
		}
		return answer
	default:
		if !q.edit.Key(k) && text != "" {
			q.edit.Insert(text)
		}
	}
	return nil
}

// Refuse returns the answer no, and nil if an answer is being sent.
func (q *Question) Refuse() *wire.ConfirmationResponse {
	if q.sent {
		return nil
	}
	return q.answer(wire.DecisionDeny)
}

func (q *Question) answer(decision string) *wire.ConfirmationResponse {
	return &wire.ConfirmationResponse{ConfirmationID: q.ConfirmationID, Decision: decision}
}
