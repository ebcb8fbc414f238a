package operator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	neturl "net/url"
	"strings"
	"unicode/utf8"

	"sublet/client/internal/gateway"
)

// A request is one line of a client, validated, in one form for both dialects.
type request struct {
	kind    string
	s4      bool
	id      string // "" where there is none; only S4's may lack one
	token   string
	session string
	agent   string // as the client named it

	prompt  string
	files   []string        // as the client named them; attach checks them later (P6)
	images  []gateway.Image // that came as data: URLs
	tools   []string        // the only ones allowed; nil = all (D8)
	project string          // "" = where the server was started
	timeout int64           // milliseconds; 0 = none
	model   string

	options   s3Options
	approvals bool // a person can answer questions

	lastTurn string // stream: resume after this turn (C7)
	cursor   string // listSessions
	target   string // cancel: a request's id
	turn     string // cancel: a turn's id
	answer   answer // confirm
}

type answer struct {
	confirmation, decision, comment string
	grant                           *s3Grant
}

// The kinds of request.
const (
	kindDispatch = "dispatch"
	kindQuery    = "query"
	kindStream   = "stream"
	kindContext  = "send_context_request"
	kindGet      = "getSession"
	kindList     = "listSessions"
	kindDelete   = "deleteSession"
	kindCancel   = "cancel"
	kindConfirm  = "confirm"
)

const (
	maxID       = 128      // bytes of an id or a name
	maxPrompt   = 10 << 20 // the daemon's own bound
	maxTokenLen = 4096
	maxPath     = 4096                // PATH_MAX of Linux
	maxCursor   = 1024                // the daemon's have a time and a session's id
	maxComment  = 64 << 10            // with an answer to a question
	maxTimeout  = 24 * 60 * 60 * 1000 // a day, in milliseconds
)

// sessionName is what a session may be called; the daemon has the same rule.
var sessionName = gateway.Pattern(`^[A-Za-z0-9._:@][A-Za-z0-9._:@-]{0,127}$`)

// object fields by name.
type fields map[string]json.RawMessage

// parse parses one line. Beside a problem it returns at least id and dialect, as far as they could be read, so that the answer
// can be assigned; if the line does not show its dialect, s4 is the one used last. Unknown fields are ignored (C13, R1).
func parse(raw []byte, s4 bool) (*request, *problem) {
	r := &request{s4: s4}
	if !utf8.Valid(raw) {
		return r, invalid("the message is not UTF-8")
	}
	var f fields
	if err := json.Unmarshal(raw, &f); err != nil || f == nil {
		if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
			return r, invalid("the message is not JSON: %s", gateway.Fault(err))
		}
		return r, invalid("the message is not a JSON object")
	}
	p := &parser{}
	r.kind = p.text(f, "type", maxID)
	switch r.kind { // the dialect first, because the answer must be in it
	case kindQuery, kindStream, kindContext:
		r.s4 = true
	case kindDispatch:
		r.s4 = !f.has("content") && f.has("messages")
	case kindGet, kindList, kindDelete, kindCancel, kindConfirm:
		r.s4 = false
	}
	own := &parser{} // an invalid id is reported below
	if id := own.text(f, "id", maxID); own.err == nil {
		r.id = id
	}
	if p.err != nil {
		return r, p.err
	}
	switch r.kind {
	case "":
		return r, invalid("type is missing").with("field", "type")
	case kindDispatch, kindQuery, kindStream, kindContext, kindGet, kindList, kindDelete, kindCancel, kindConfirm:
	default:
		return r, invalid("type %q is none of dispatch, query, stream, send_context_request, getSession, listSessions, deleteSession, cancel, confirm", r.kind).with("field", "type")
	}
	p.text(f, "id", maxID)
	if v := p.text(f, "version", maxID); p.err == nil && f.has("version") && !supported(v) {
		return r, invalid("version %q is not supported: this is version 1.0", v).with("field", "version").with("supported", "1.x")
	}
	r.session = p.text(f, "sessionID", maxID)
	if p.err == nil && r.session != "" && !sessionName().MatchString(r.session) {
		p.fail("sessionID", "may have A-Z a-z 0-9 . _ : @ and - only, and not begin with -")
	}
	r.agent = p.text(f, "agentID", maxID)
	p.metadata(r, f)
	if r.s4 {
		p.parseS4(r, f)
	} else {
		p.parseS3(r, f)
	}
	return r, p.err
}

// supported reports whether a request's version is one of ours: 1 or 1.x (B2).
func supported(v string) bool { return v == "1" || strings.HasPrefix(v, "1.") }

// parser reads fields and keeps the first error.
type parser struct{ err *problem }

func (p *parser) fail(field, format string, args ...any) {
	if p.err == nil {
		p.err = invalid("%s %s", field, fmt.Sprintf(format, args...)).with("field", field)
	}
}

// has reports whether a field is present; null counts as absent.
func (f fields) has(name string) bool {
	raw, ok := f[name]
	return ok && string(raw) != "null"
}

// into decodes a field if it is present; want is its type in words.
func (p *parser) into(f fields, path, name string, to any, want string) bool {
	if p.err != nil || !f.has(name) {
		return false
	}
	err := json.Unmarshal(f[name], to)
	switch {
	case errors.Is(err, gateway.ErrListTooLong):
		p.fail(path+name, "has %v", err)
	case err != nil:
		p.fail(path+name, "must be %s", want)
	}
	return err == nil
}

func (p *parser) text(f fields, name string, most int) string {
	var s string
	if p.into(f, "", name, &s, "a string") && len(s) > most {
		p.fail(name, "has %d bytes, at most %d are allowed", len(s), most)
	}
	return s
}

func (p *parser) need(f fields, name string) string {
	s := p.text(f, name, maxID)
	if p.err == nil && s == "" {
		p.fail(name, "is missing")
	}
	return s
}

func (p *parser) list(f fields, name string) []string {
	var l gateway.Few[string]
	p.into(f, "", name, &l, "a list of strings")
	return l
}

// metadata decodes the metadata that this server uses; the rest is the client's own (D10).
func (p *parser) metadata(r *request, f fields) {
	var m fields
	if !p.into(f, "", "metadata", &m, "an object") {
		return
	}
	flag := func(name string) (b bool) {
		p.into(m, "metadata.", name, &b, "true or false")
		return b
	}
	text := func(name string, most int) (s string) {
		if p.into(m, "metadata.", name, &s, "a string") && len(s) > most {
			p.fail("metadata."+name, "has %d bytes, at most %d are allowed", len(s), most)
		}
		return s
	}
	r.token = text("token", maxTokenLen)
	r.project = text("project", maxPath)
	r.model = text("model", maxID)
	r.options.batch, r.options.extended, r.approvals = flag("batchToolResults"), flag("extended"), flag("approvals")
	switch c := text("compression", maxID); c {
	case "", "none":
	case "gzip":
		r.options.gzip = true
	default:
		p.fail("metadata.compression", "%q is neither gzip nor none", c)
	}
	if p.into(m, "metadata.", "timeoutMs", &r.timeout, "a whole number of milliseconds") && (r.timeout < 0 || r.timeout > maxTimeout) {
		p.fail("metadata.timeoutMs", "must be from 0 to %d", maxTimeout)
	}
}

func (p *parser) parseS3(r *request, f fields) {
	if p.err == nil && r.id == "" {
		p.fail("id", "is missing")
	}
	switch r.kind {
	case kindDispatch:
		if p.err == nil && !f.has("content") {
			p.fail("content", "is missing (S4's dispatch has messages)")
		}
		r.agent = p.need(f, "agentID")
		r.prompt = p.text(f, "content", maxPrompt)
		if p.err == nil && strings.TrimSpace(r.prompt) == "" {
			p.fail("content", "is empty")
		}
		r.files = p.list(f, "files")
	case kindGet, kindDelete:
		p.need(f, "sessionID")
	case kindList:
		r.cursor = p.text(f, "cursor", maxCursor)
	case kindCancel:
		r.target, r.turn = p.text(f, "requestID", maxID), p.text(f, "turnID", maxID)
		if p.err == nil && (r.target == "") == (r.turn == "") {
			p.fail("requestID", "or turnID must be given, and not both")
		}
	case kindConfirm:
		p.need(f, "sessionID")
		r.answer.confirmation = p.need(f, "confirmationID")
		r.answer.decision = p.need(f, "decision")
		r.answer.comment = p.text(f, "comment", maxComment)
		p.into(f, "", "grant", &r.answer.grant, "one of the grants offered")
		switch r.answer.decision {
		case "allow", "deny", "allow_always", "deny_always", "":
		default:
			p.fail("decision", "%q is none of allow, deny, allow_always, deny_always", r.answer.decision)
		}
	}
}

func (p *parser) parseS4(r *request, f fields) {
	switch r.kind {
	case kindStream:
		p.need(f, "sessionID")
		r.lastTurn = p.text(f, "lastTurnID", maxID)
		return
	case kindContext:
		p.contextOf(r, f)
		return
	}
	r.tools = p.allowed(f)
	var messages gateway.Few[s4Incoming]
	if !p.into(f, "", "messages", &messages, "a list of {role, content}") {
		p.fail("messages", "is missing")
		return
	}
	p.conversation(r, messages)
}

// allowed decodes a list of tools; an empty list allows none.
func (p *parser) allowed(f fields) []string {
	l := p.list(f, "tools")
	if l == nil && f.has("tools") {
		return []string{}
	}
	return l
}

func (p *parser) contextOf(r *request, f fields) {
	var c fields
	if !p.into(f, "", "context", &c, "an object") {
		p.fail("context", "is missing")
		return
	}
	var project fields
	if p.into(c, "context.", "project", &project, "an object {name, path}") {
		p.into(project, "context.project.", "path", &r.project, "a string")
		p.into(project, "context.project.", "name", new(string), "a string")
	}
	p.into(c, "context.", "userMessage", &r.prompt, "a string")
	r.tools = p.allowed(c)
	switch {
	case p.err != nil:
	case strings.TrimSpace(r.prompt) == "":
		p.fail("context.userMessage", "is missing")
	case len(r.prompt) > maxPrompt:
		p.tooLarge("context.userMessage", len(r.prompt))
	}
}

// tooLarge is S4's own code for a context over the limit (L21).
func (p *parser) tooLarge(field string, size int) {
	if p.err == nil {
		p.err = invalid("%s has %d bytes, at most %d are allowed: name a file instead", field, size, maxPrompt).with("field", field)
		p.err.s4 = codeTooLarge
	}
}

type s4Incoming struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// conversation makes a prompt of messages. The last one is the question; the earlier ones precede it as text, because the
// daemon's sessions contain only what its agents answered.
func (p *parser) conversation(r *request, messages []s4Incoming) {
	if p.err == nil && len(messages) == 0 {
		p.fail("messages", "is empty")
	}
	var before strings.Builder
	for i, m := range messages {
		at := fmt.Sprintf("messages[%d]", i)
		last := i == len(messages)-1
		switch {
		case m.Role != "user" && m.Role != "assistant": // F22
			p.fail(at+".role", "%q is neither user nor assistant", head(m.Role))
		case last && m.Role != "user":
			p.fail(at+".role", "of the last message must be user")
		}
		text := p.content(r, at+".content", m.Content)
		switch {
		case p.err != nil:
			return
		case last:
			r.prompt = text
		default:
			fmt.Fprintf(&before, "%s: %s\n\n", m.Role, text)
		}
	}
	if strings.TrimSpace(r.prompt) == "" {
		p.fail(fmt.Sprintf("messages[%d].content", len(messages)-1), "has no text")
	}
	if before.Len() > 0 {
		r.prompt = "Earlier in this conversation:\n\n" + before.String() + "Now:\n\n" + r.prompt
	}
	if len(r.prompt) > maxPrompt {
		p.tooLarge("messages", len(r.prompt))
	}
}

// content decodes a message's blocks (F15): text, and files and images, which are read later. The model sees an image in a
// data: URL, or in the project (file:); one at another address is only named, since fetching it would be an unapproved request.
func (p *parser) content(r *request, at string, raw json.RawMessage) string {
	var plain string
	if json.Unmarshal(raw, &plain) == nil && len(raw) > 0 && raw[0] == '"' {
		return plain
	}
	var blocks gateway.Few[s4RequestBlock]
	switch err := json.Unmarshal(raw, &blocks); {
	case errors.Is(err, gateway.ErrListTooLong):
		p.fail(at, "has %v", err)
		return ""
	case err != nil || blocks == nil:
		p.fail(at, "must be a list of blocks {type, …}")
		return ""
	}
	var parts []string
	for i, b := range blocks {
		field := fmt.Sprintf("%s[%d]", at, i)
		switch b.Type {
		case "text":
			if b.Text == nil {
				p.fail(field+".text", "is missing")
				return ""
			}
			parts = append(parts, *b.Text)
		case "file":
			if b.Path == "" {
				p.fail(field+".path", "is missing")
			}
			if b.Size != nil && *b.Size < 0 {
				p.fail(field+".size", "is negative")
			}
			r.files = append(r.files, b.Path)
		case "image":
			if b.URL == "" {
				p.fail(field+".url", "is missing")
			}
			url := b.URL
			if data, ok := strings.CutPrefix(url, "data:"); ok {
				head, body, _ := strings.Cut(data, ",")
				if kind, ok := strings.CutSuffix(head, ";base64"); ok && strings.HasPrefix(kind, "image/") {
					content, err := gateway.Decode(body)
					if err != nil {
						p.fail(field+".url", "%v", err)
						return ""
					}
					r.images = append(r.images, gateway.Image{Content: content, MIME: kind})
					parts = append(parts, fmt.Sprintf("[image %d]", len(r.images)))
					continue
				}
			}
			if path, ok := strings.CutPrefix(url, "file://"); ok {
				path, err := neturl.PathUnescape(path)
				if err != nil {
					p.fail(field+".url", "is no file's address")
					return ""
				}
				r.files = append(r.files, path)
				parts = append(parts, "[image "+head(path)+"]")
				continue
			}
			if len(url) > 200 { // such as data: with the image in it
				url = strings.ToValidUTF8(url[:60], "") + "…"
			}
			parts = append(parts, fmt.Sprintf("[image %s %s]", b.MIMEType, url))
		default:
			p.fail(field+".type", "%q is none of text, image, file", head(b.Type))
			return ""
		}
		if len(r.files) > gateway.MaxList {
			p.fail(at, "has more than %d files", gateway.MaxList)
		}
	}
	return strings.Join(parts, "\n\n")
}
