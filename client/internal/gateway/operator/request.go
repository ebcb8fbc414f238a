package operator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	neturl "net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"sublet/client/internal/gateway"
)

// message has the fields of both dialects' requests; unknown ones are ignored (C13, D10, R1).
type message struct {
	Type     string `json:"type"`
	ID       string `json:"id"` // required in S3
	Version  string `json:"version"`
	Session  string `json:"sessionID"`
	Agent    string `json:"agentID"`
	Metadata struct {
		Token       string `json:"token"`
		Project     string `json:"project"`
		Model       string `json:"model"`
		TimeoutMS   int64  `json:"timeoutMs"`
		Batch       bool   `json:"batchToolResults"`
		Compression string `json:"compression"` // gzip or none
		Extended    bool   `json:"extended"`
		Approvals   bool   `json:"approvals"` // a person can answer questions
	} `json:"metadata"`

	// S3
	Content      *string             `json:"content"`
	Files        gateway.Few[string] `json:"files"`
	Cursor       string              `json:"cursor"`
	Request      string              `json:"requestID"` // cancel: this or Turn
	Turn         string              `json:"turnID"`
	Confirmation string              `json:"confirmationID"`
	Decision     string              `json:"decision"`
	Comment      string              `json:"comment"`
	Grant        *s3Grant            `json:"grant"`

	// S4
	Messages gateway.Few[struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"` // a text, or blocks
	}] `json:"messages"`
	Tools    gateway.Few[string] `json:"tools"`      // the only ones allowed; nil = all (D8)
	LastTurn string              `json:"lastTurnID"` // resume after this turn (C7)
	Context  *struct {
		Project struct {
			Name string `json:"name"`
			Path string `json:"path"`
		} `json:"project"`
		Tools       gateway.Few[string] `json:"tools"`
		UserMessage string              `json:"userMessage"`
	} `json:"context"`
}

// A request is a message that was checked, in one form for both dialects.
type request struct {
	message
	kind kind
	s4   bool

	prompt  string
	files   []string // as the client named them; attach checks them (P6)
	images  []gateway.Image
	project string // "" = where the server was started
}

// A kind is what distinguishes requests of one type.
type kind struct {
	s4    bool
	needs []string                // fields that must not be empty
	read  func(*request) *problem // checks and takes the fields that only this kind has; nil = none
	serve func(*conn, *request) *problem
}

const kindDispatch = "dispatch"

var (
	kinds = map[string]kind{
		kindDispatch:           {false, []string{"agentID"}, (*request).readContent, (*conn).dispatch},
		"getSession":           {false, []string{"sessionID"}, nil, (*conn).getSession},
		"listSessions":         {false, nil, nil, (*conn).listSessions},
		"deleteSession":        {false, []string{"sessionID"}, nil, (*conn).deleteSession},
		"cancel":               {false, nil, (*request).readCancel, (*conn).cancelRequest},
		"confirm":              {false, []string{"sessionID", "confirmationID", "decision"}, (*request).readDecision, (*conn).confirm},
		"query":                {true, nil, (*request).readMessages, (*conn).dispatch},
		"send_context_request": {true, nil, (*request).readContext, (*conn).dispatch},
		"stream":               {true, []string{"sessionID"}, nil, (*conn).stream},
	}
	// s4Dispatch is the kind of a dispatch that has messages and no content.
	s4Dispatch = kind{true, nil, (*request).readMessages, (*conn).dispatch}
)

// parse parses one line. Beside a problem it returns at least id and dialect, as far as they could be read, so that the answer
// can be assigned; if the line does not show its dialect, s4 is the one used last.
func parse(raw []byte, s4 bool) (*request, *problem) {
	r := &request{s4: s4}
	if !utf8.Valid(raw) {
		return r, invalid("the message is not UTF-8")
	}
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		return r, invalid("the message is not a JSON object")
	}
	var head struct { // decoded first, because a list that is too long ends the decoding of a message
		Type, ID          string
		Content, Messages *json.RawMessage
	}
	err := json.Unmarshal(raw, &head)
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return r, invalid("the message is not JSON: %s", gateway.Fault(err))
	}
	known := false
	if r.kind, known = kinds[head.Type]; head.Type == kindDispatch && head.Content == nil && head.Messages != nil {
		r.kind = s4Dispatch
	}
	if known {
		r.s4 = r.kind.s4
	}
	err = json.Unmarshal(raw, &r.message)
	r.ID = head.ID
	switch {
	case err != nil:
		return r, wrong(gateway.FieldFault(err))
	case head.Type == "":
		return r, wrong("type", "is missing")
	case !known:
		return r, wrong("type", fmt.Sprintf("%q is none of %s", clip(head.Type), strings.Join(slices.Sorted(maps.Keys(kinds)), ", ")))
	}
	if p := r.check(); p != nil {
		return r, p
	}
	r.project = r.Metadata.Project
	if r.kind.read != nil {
		return r, r.kind.read(r)
	}
	return r, nil
}

// wrong returns the problem of a field that is malformed.
func wrong(field, why string) *problem { return invalid("%s %s", field, why).with("field", field) }

// check checks the fields that several kinds have.
func (r *request) check() *problem {
	for _, f := range []struct{ name, value string }{
		{"id", r.ID}, {"sessionID", r.Session}, {"agentID", r.Agent}, {"confirmationID", r.Confirmation}, {"decision", r.Decision},
	} {
		if f.value == "" && (slices.Contains(r.kind.needs, f.name) || f.name == "id" && !r.s4) {
			return wrong(f.name, "is missing")
		}
	}
	if r.Version != "" && r.Version != "1" && !strings.HasPrefix(r.Version, "1.") { // B2
		return wrong("version", fmt.Sprintf("%q is not supported: this is version 1.0", clip(r.Version))).with("supported", "1.x")
	}
	return nil
}

func (r *request) readContent() *problem {
	if r.Content == nil {
		return wrong("content", "is missing (S4's dispatch has messages)")
	}
	r.files = r.Files
	return r.setPrompt("content", *r.Content)
}

func (r *request) readCancel() *problem {
	if (r.Request == "") == (r.Turn == "") {
		return wrong("requestID", "or turnID must be given, and not both")
	}
	return nil
}

func (r *request) readDecision() *problem {
	if !slices.Contains([]string{"allow", "deny", "allow_always", "deny_always"}, r.Decision) {
		return wrong("decision", fmt.Sprintf("%q is none of allow, deny, allow_always, deny_always", r.Decision))
	}
	return nil
}

// readContext takes the project, the tools and the prompt from the request's context, which must be there.
func (r *request) readContext() *problem {
	if r.Context == nil {
		return wrong("context", "is missing")
	}
	if path := r.Context.Project.Path; path != "" {
		r.project = path
	}
	r.Tools = r.Context.Tools
	return r.setPrompt("context.userMessage", r.Context.UserMessage)
}

// setPrompt sets the prompt, which came in the named field.
func (r *request) setPrompt(field, prompt string) *problem {
	if strings.TrimSpace(prompt) == "" {
		return wrong(field, "is empty")
	}
	r.prompt = prompt
	return nil
}

// readMessages makes a prompt of messages. The last one is the question; the earlier ones precede it as text, because the
// daemon's sessions contain only what its agents answered.
func (r *request) readMessages() *problem {
	if len(r.Messages) == 0 {
		return wrong("messages", "is missing or empty")
	}
	var before strings.Builder
	question := ""
	for i, m := range r.Messages {
		at, last := fmt.Sprintf("messages[%d]", i), i == len(r.Messages)-1
		switch {
		case m.Role != "user" && m.Role != "assistant": // F22
			return wrong(at+".role", fmt.Sprintf("%q is neither user nor assistant", clip(m.Role)))
		case last && m.Role != "user":
			return wrong(at+".role", "of the last message must be user")
		}
		text, p := r.text(at+".content", m.Content)
		switch {
		case p != nil:
			return p
		case !last:
			fmt.Fprintf(&before, "%s: %s\n\n", m.Role, text)
		case strings.TrimSpace(text) == "":
			return wrong(at+".content", "has no text")
		default:
			question = text
		}
	}
	if before.Len() > 0 {
		question = "Earlier in this conversation:\n\n" + before.String() + "Now:\n\n" + question
	}
	return r.setPrompt("messages", question)
}

// text returns the text of a message's blocks (F15), and adds the files and images among them to r; they are not read yet.
func (r *request) text(at string, raw json.RawMessage) (string, *problem) {
	var plain string
	if json.Unmarshal(raw, &plain) == nil {
		return plain, nil
	}
	var blocks gateway.Few[s4RequestBlock]
	if err := json.Unmarshal(raw, &blocks); err != nil {
		field, why := gateway.FieldFault(err)
		return "", wrong(strings.TrimSuffix(at+"."+field, "."), why)
	}
	var parts []string
	for i, b := range blocks {
		field := fmt.Sprintf("%s[%d]", at, i)
		switch {
		case b.Type == "text" && b.Text == nil:
			return "", wrong(field+".text", "is missing")
		case b.Type == "text":
			parts = append(parts, *b.Text)
		case b.Type == "file" && b.Path == "":
			return "", wrong(field+".path", "is missing")
		case b.Type == "file":
			r.files = append(r.files, b.Path)
		case b.Type == "image" && b.URL == "":
			return "", wrong(field+".url", "is missing")
		case b.Type == "image":
			name, err := r.image(b)
			if err != nil {
				return "", wrong(field+".url", err.Error())
			}
			parts = append(parts, name)
		default:
			return "", wrong(field+".type", fmt.Sprintf("%q is none of text, image, file", clip(b.Type)))
		}
	}
	return strings.Join(parts, "\n\n"), nil
}

// image returns the text that stands for an image. It adds one in a data: URL to r.images, and one in a file: URL to r.files; one at
// another address is only named, since fetching it would be a request that nobody approved.
func (r *request) image(b s4RequestBlock) (string, error) {
	head, body, _ := strings.Cut(strings.TrimPrefix(b.URL, "data:"), ",")
	mime, encoded := strings.CutSuffix(head, ";base64")
	if strings.HasPrefix(b.URL, "data:") && encoded && strings.HasPrefix(mime, "image/") {
		content, err := gateway.Decode(body)
		r.images = append(r.images, gateway.Image{Content: content, MIME: mime})
		return fmt.Sprintf("[image %d]", len(r.images)), err
	}
	if path, ok := strings.CutPrefix(b.URL, "file://"); ok {
		path, err := neturl.PathUnescape(path)
		r.files = append(r.files, path)
		return "[image " + clip(path) + "]", err
	}
	return "[image " + clip(b.MIMEType+" "+b.URL) + "]", nil
}
