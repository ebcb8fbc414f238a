package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sublet/daemon/internal/picture"
	"sublet/daemon/internal/tool"
	"sublet/wire/visible"
)

const (
	// Prefix begins the names of all MCP tools: mcp__SERVER__TOOL.
	Prefix = "mcp__"

	maxName        = 64       // bytes of a tool's full name, a limit of providers
	maxTools       = 128      // of one server
	maxDescription = 4 << 10  // bytes
	maxSchema      = 16 << 10 // bytes
	maxSchemaDepth = 24       // lists and objects within each other
	maxProgress    = 64 << 10 // bytes of progress reports that are shown for a call
	maxImages      = 4        // of one result
)

// Name converts any text to a valid server name: letters, digits, - and single _ between them, at most 32.
func Name(text string) string {
	text = visible.Clip(strings.Trim(underscores.ReplaceAllString(invalidRunes.ReplaceAllString(text, "_"), "_"), "_-"), 32)
	return strings.TrimRight(text, "_-…")
}

var (
	invalidRunes = regexp.MustCompile(`[^A-Za-z0-9_-]`)
	underscores  = regexp.MustCompile(`_+`)
)

// toolName returns the name of a server's tool for agents. A name that is too long is cut and ends in a digest.
func toolName(server, name string) string {
	full := Prefix + server + "__" + invalidRunes.ReplaceAllString(name, "_")
	if len(full) <= maxName {
		return full
	}
	sum := sha256.Sum256([]byte(name))
	digest := "_" + hex.EncodeToString(sum[:4])
	return full[:maxName-len(digest)] + digest
}

// remote is one tool of a server. It implements tool.Tool.
type remote struct {
	server *server
	name   string // the server's name for it
	spec   tool.Spec
}

// maxNamed bounds the tools, or servers, that are named as left out.
const maxNamed = 4

// offer converts a server's list to tools. left lists the first maxNamed of those that are left out, and why.
func (s *server) offer(list []*sdk.Tool) (tools []*remote, left string) {
	var out []string
	leave := func(name, why string) {
		if len(out) < maxNamed {
			out = append(out, visible.Clip(visible.Exact(oneLine(name)), 40)+" ("+why+")")
		} else if len(out) == maxNamed {
			out = append(out, "…")
		}
	}
	taken := map[string]bool{}
	for _, t := range list {
		name := toolName(s.spec.Name, t.Name)
		schema, err := schemaOf(t.InputSchema)
		switch {
		case strings.Trim(t.Name, " \t\r\n") == "":
			leave(t.Name, "has no name")
		case taken[name]:
			leave(t.Name, "another one has this name")
		case err != nil:
			leave(t.Name, err.Error())
		case len(tools) >= maxTools:
			leave(t.Name, fmt.Sprintf("more than %d", maxTools))
		default:
			taken[name] = true
			text, _ := tool.Bound(visibleText(t.Description), maxDescription)
			tools = append(tools, &remote{server: s, name: t.Name, spec: tool.Spec{
				Name: name, Schema: schema, Description: strings.TrimSpace("[tool of the MCP server " + s.spec.Name + "] " + text),
			}})
		}
	}
	return tools, strings.Join(out, ", ")
}

// visibleText removes invisible characters from text of a server.
func visibleText(s string) string { return visible.Exact(visible.Clean(s)) }

// schemaOf returns a tool's schema for models: that of an object, bounded, without invisible characters. It changes given in place.
func schemaOf(given any) (json.RawMessage, error) {
	fields, ok := given.(map[string]any)
	if !ok {
		return nil, errors.New("its schema is not a JSON object")
	}
	if kind, ok := fields["type"]; !ok {
		fields["type"] = "object"
	} else if kind != "object" {
		return nil, errors.New("its schema does not describe an object")
	}
	if p, ok := fields["properties"]; !ok || p == nil {
		fields["properties"] = map[string]any{} // some providers require it
	} else if _, ok := p.(map[string]any); !ok {
		return nil, errors.New("the properties of its schema are not a JSON object")
	}
	schema, err := cleanSchema(fields, 0)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		return nil, errors.New("its schema cannot be written")
	}
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("its schema is longer than %d KiB", maxSchema>>10)
	}
	return raw, nil
}

func cleanSchema(v any, depth int) (any, error) {
	if depth > maxSchemaDepth {
		return nil, errors.New("its schema is too deep")
	}
	switch v := v.(type) {
	case string:
		return visibleText(v), nil
	case []any:
		for i := range v {
			var err error
			if v[i], err = cleanSchema(v[i], depth+1); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for name, value := range v {
			if visibleText(name) != name {
				return nil, errors.New("its schema has a name with invisible characters")
			}
			var err error
			if v[name], err = cleanSchema(value, depth+1); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

var errNoArguments = errors.New("arguments: want a JSON object")

// Spec implements tool.Tool. It ignores what a server declares about its tools' effects.
func (t *remote) Spec() tool.Spec { return t.spec }

// Plan implements tool.Tool. The effects of a call are not known.
func (t *remote) Plan(_ context.Context, _ tool.Env, args json.RawMessage) (tool.Action, error) {
	if trimmed := bytes.TrimSpace(args); len(trimmed) == 0 || trimmed[0] != '{' || !json.Valid(trimmed) {
		return tool.Action{}, errNoArguments
	}
	return tool.Action{
		Server: t.server.spec.Name, ServerOfClient: t.server.spec.OfClient,
		Preview: tool.Preview{Type: "text", Content: t.preview(args)},
	}, nil
}

// preview shows the arguments as they are sent, indented.
func (t *remote) preview(args json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Indent(&b, args, "", "  "); err != nil {
		return string(args)
	}
	text, _ := tool.Bound(b.String(), tool.MaxResult)
	return text
}

// Run implements tool.Tool. The arguments are sent unchanged. No call is repeated; after one that failed since the server does not know the
// session any more, the next begins a new session.
func (t *remote) Run(ctx context.Context, _ tool.Env, args json.RawMessage, approved tool.Action, live func([]byte)) (tool.Result, error) {
	name := t.server.spec.Name
	if approved.Server != name {
		return tool.Result{}, tool.ErrChanged
	}
	left := maxProgress
	onProgress := func(p *sdk.ProgressNotificationParams) {
		if line := progressLine(p); live != nil && left >= len(line) {
			left -= len(line)
			live([]byte(line))
		}
	}
	wait, cancel := context.WithTimeout(ctx, t.server.o.Patience)
	c, err := t.server.get(wait, nil)
	cancel()
	switch {
	case err != nil && ctx.Err() != nil:
		return tool.Result{}, context.Cause(ctx)
	case err != nil:
		return tool.Result{}, fmt.Errorf("not called: the MCP server %s is not available: %w", name, err)
	}
	res, err := c.call(ctx, t.name, args, onProgress)
	if err == nil {
		return result(t.spec.Name, res), nil
	}
	if ctx.Err() != nil {
		return tool.Result{}, context.Cause(ctx)
	}
	if refusal, ok := errors.AsType[*jsonrpc.Error](err); ok && !sdkErrors[refusal.Message] && !c.forgotten.Load() {
		text, _ := tool.Bound(visible.Clean(refusal.Message), tool.MaxResult/4)
		return tool.Result{Content: "the MCP server " + name + " refuses: " + text, IsError: true}, nil
	}
	if late, ok := errors.AsType[*timeoutError](err); ok {
		return tool.Result{}, late
	}
	// End the connection: it is unusable, even if the SDK does not report that.
	why := c.fail(err)
	t.server.lost(c, why)
	return tool.Result{}, fmt.Errorf("the MCP server %s was lost during the call (%w); whether it did anything is not known", name, why)
}

// sdkErrors are texts of the SDK's own errors for a failed connection, which have the same type as a server's errors.
var sdkErrors = map[string]bool{"rejected by transport": true, "server is closing": true, "client is closing": true}

func progressLine(p *sdk.ProgressNotificationParams) string {
	line := fmt.Sprintf("%g", p.Progress)
	if p.Total > 0 {
		line += fmt.Sprintf("/%g", p.Total)
	}
	if p.Message != "" {
		line += " " + visible.Clip(oneLine(visible.Clean(visible.Clip(p.Message, 2<<10))), 500)
	}
	return line + "\n"
}

// result converts the result of a call: text, and images that models take. Other images, and audio, are only named.
func result(name string, res *sdk.CallToolResult) tool.Result {
	var parts []string
	var images []*picture.Image
	add := func(text string) { parts = append(parts, visible.Clean(text)) }
	for _, part := range res.Content {
		switch part := part.(type) {
		case *sdk.TextContent:
			add(part.Text)
		case *sdk.ImageContent:
			img, err := picture.Read(fmt.Sprintf("image %d of %s", len(images)+1, name), bytes.NewReader(part.Data))
			switch {
			case err != nil:
				add(fmt.Sprintf("[an image, %s, %d bytes: not shown: %v]", visible.Clip(oneLine(part.MIMEType), 60), len(part.Data), err))
			case len(images) == maxImages:
				add("[more than " + strconv.Itoa(maxImages) + " images: not shown]")
			default:
				images = append(images, img)
				add("[the " + img.String() + "]")
			}
		case *sdk.AudioContent:
			add(fmt.Sprintf("[audio, %s, %d bytes: not played]", visible.Clip(oneLine(part.MIMEType), 60), len(part.Data)))
		case *sdk.ResourceLink:
			add(fmt.Sprintf("[resource %s: %s]", visible.Clip(oneLine(part.Name), 200), visible.Clip(oneLine(part.URI), 1000)))
		case *sdk.EmbeddedResource:
			switch r := part.Resource; {
			case r == nil:
			case r.Text != "":
				add(visible.Clip(oneLine(r.URI), 1000) + ":\n" + r.Text)
			default:
				add(fmt.Sprintf("[resource %s, %s, %d bytes: not shown]", visible.Clip(oneLine(r.URI), 1000), visible.Clip(oneLine(r.MIMEType), 60), len(r.Blob)))
			}
		default:
			add("[content of an unknown type: not shown]")
		}
	}
	if len(parts) == 0 && res.StructuredContent != nil {
		if raw, err := json.Marshal(res.StructuredContent); err == nil {
			add(string(raw))
		}
	}
	text, cut := tool.Bound(strings.Join(parts, "\n"), tool.MaxWhole)
	return tool.Result{Content: text, IsError: res.IsError, TruncatedBy: cut, Images: images}
}

// oneLine puts text on one line without invisible characters.
func oneLine(s string) string {
	return strings.Join(strings.Fields(visibleText(s)), " ")
}
