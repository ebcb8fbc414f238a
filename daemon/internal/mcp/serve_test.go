package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

// This test program is the servers as well: real processes over real pipes.
func TestMain(m *testing.M) {
	switch mode := os.Getenv("MCP_TEST_MODE"); {
	case mode == "":
		goleak.VerifyTestMain(m)
	case mode == "owner":
		own()
	default:
		serve(mode)
	}
}

// serve is one server on standard input and output.
func serve(mode string) {
	switch mode {
	case "crash":
		fmt.Fprintln(os.Stderr, "\x1b[31mcannot\x1b[0m reach the database at postgres://me:hunter2hunter2@db")
		os.Exit(3)
	case "mute":
		bufio.NewReader(os.Stdin).WriteTo(writeNowhere{})
		time.Sleep(time.Hour) // the end of its input means nothing to it
	case "spew":
		line := strings.Repeat("x", 1<<20)
		fmt.Print(`{"jsonrpc":"2.0","method":"`)
		for {
			fmt.Print(line)
		}
	case "flood":
		raw(map[string]string{"tools/list": `{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}`}, func(method string) {
			for method == "tools/list" {
				fmt.Println(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`)
			}
		})
	case "names", "schemas", "endless", "deep":
		raw(map[string]string{
			"tools/list": os.Getenv("MCP_TEST_TOOLS"),
			"tools/call": `{"content":[{"type":"text","text":"ok"}],"structuredContent":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`,
		}, nil)
	case "big":
		raw(map[string]string{
			"tools/list": `{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}`,
			"tools/call": `{"content":[{"type":"text","text":"first ` + strings.Repeat("ü", 3<<20) + ` last"}]}`,
		}, nil)
	case "chatty":
		raw(nil, func(method string) {
			if method == "notifications/initialized" {
				fmt.Println("hello there")
			}
		})
	case "stall":
		raw(map[string]string{"tools/list": `{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}`}, func(method string) {
			if method == "tools/list" {
				time.Sleep(time.Hour) // reads nothing from here on
			}
		})
	default:
		s := newServer()
		if mode == "modern" { // knows only a protocol without a greeting
			s.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
				return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
					if method == "initialize" {
						return nil, &jsonrpcError{Code: -32601, Message: "no such method"}
					}
					return next(ctx, method, req)
				}
			})
		}
		if err := s.Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

type writeNowhere struct{}

func (writeNowhere) Write(p []byte) (int, error) { return len(p), nil }

// raw answers requests with what it was given, as no library would. then runs behind each message.
func raw(results map[string]string, then func(method string)) {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(lines.Bytes(), &m) != nil {
			continue
		}
		result := results[m.Method]
		if m.Method == "initialize" {
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`
		}
		if m.ID != nil {
			fmt.Printf("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n", m.ID, result)
		}
		if then != nil {
			then(m.Method)
		}
	}
}

type echoed struct {
	Text string `json:"text"`
}

// newServer is a well-behaved server, by the SDK.
func newServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	add := func(name string, f func(ctx context.Context, r *sdk.CallToolRequest, in echoed) (*sdk.CallToolResult, error)) {
		sdk.AddTool(s, &sdk.Tool{Name: name, Description: "the " + name + " tool"}, func(ctx context.Context, r *sdk.CallToolRequest, in echoed) (*sdk.CallToolResult, any, error) {
			res, err := f(ctx, r, in)
			return res, nil, err
		})
	}
	say := func(parts ...sdk.Content) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: parts}, nil
	}
	add("echo", func(_ context.Context, _ *sdk.CallToolRequest, in echoed) (*sdk.CallToolResult, error) {
		return say(&sdk.TextContent{Text: in.Text})
	})
	add("env", func(context.Context, *sdk.CallToolRequest, echoed) (*sdk.CallToolResult, error) {
		env := os.Environ()
		slices.Sort(env)
		return say(&sdk.TextContent{Text: strings.Join(env, "\n")})
	})
	add("sh", func(_ context.Context, _ *sdk.CallToolRequest, in echoed) (*sdk.CallToolResult, error) {
		out, err := exec.Command("bash", "-c", in.Text).CombinedOutput()
		return say(&sdk.TextContent{Text: fmt.Sprint(string(out), err)})
	})
	add("pid", func(context.Context, *sdk.CallToolRequest, echoed) (*sdk.CallToolResult, error) {
		return say(&sdk.TextContent{Text: fmt.Sprint(os.Getpid())})
	})
	add("wait", func(ctx context.Context, _ *sdk.CallToolRequest, in echoed) (*sdk.CallToolResult, error) {
		if f, err := os.OpenFile(in.Text, os.O_WRONLY, 0); err == nil { // a FIFO: whoever reads knows that the call runs
			defer f.Close()
			fmt.Fprintln(f, "called")
			<-ctx.Done()
			fmt.Fprintln(f, "cancelled")
		} else {
			<-ctx.Done()
		}
		return nil, ctx.Err()
	})
	add("die", func(context.Context, *sdk.CallToolRequest, echoed) (*sdk.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, "out of memory")
		os.Exit(4)
		return nil, nil
	})
	add("fail", func(context.Context, *sdk.CallToolRequest, echoed) (*sdk.CallToolResult, error) {
		return nil, fmt.Errorf("no such table")
	})
	add("odd", func(context.Context, *sdk.CallToolRequest, echoed) (*sdk.CallToolResult, error) {
		return say(&sdk.TextContent{Text: "\x1b]0;title\x07\x1b[2Jred\x1b[31m text\r\nnext\x00"},
			&sdk.ImageContent{MIMEType: "image/png", Data: []byte("1234")},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///x", Text: "inside"}},
			&sdk.ResourceLink{URI: "file:///y", Name: "link"})
	})
	add("picture", func(context.Context, *sdk.CallToolRequest, echoed) (*sdk.CallToolResult, error) {
		var data bytes.Buffer
		if err := png.Encode(&data, image.NewGray(image.Rect(0, 0, 3, 2))); err != nil {
			return nil, err
		}
		var list []sdk.Content
		for range maxImages + 1 {
			list = append(list, &sdk.ImageContent{MIMEType: "text/html", Data: data.Bytes()}) // whatever it says it is
		}
		return say(append(list, &sdk.ImageContent{MIMEType: "image/png", Data: data.Bytes()[:40]})...)
	})
	add("progress", func(ctx context.Context, r *sdk.CallToolRequest, in echoed) (*sdk.CallToolResult, error) {
		for i := range 3 {
			_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
				ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1), Total: 3, Message: "st\x1b[1mep",
			})
		}
		f, err := os.Open(in.Text) // a FIFO: not before somebody saw it
		if err != nil {
			return nil, err
		}
		f.Close()
		return say(&sdk.TextContent{Text: "done"})
	})
	add("grow", func(context.Context, *sdk.CallToolRequest, echoed) (*sdk.CallToolResult, error) {
		s.AddTool(&sdk.Tool{Name: "grown", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return say(&sdk.TextContent{Text: "new"})
		})
		return say(&sdk.TextContent{Text: "ok"})
	})
	sdk.AddTool(s, &sdk.Tool{Name: "shape"}, func(context.Context, *sdk.CallToolRequest, echoed) (*sdk.CallToolResult, map[string]int, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{}}, map[string]int{"rows": 3}, nil
	})
	return s
}

// own is a daemon: it has one server up, says so, and is killed.
func own() {
	s := New(Options{})
	os.Unsetenv("MCP_TEST_MODE")
	s.Set([]Spec{{Name: "t", Command: "/bin/sh", Args: []string{"-c", family}, Env: map[string]string{"FIFO": os.Getenv("FIFO"), "SERVER": os.Args[0], "MCP_TEST_MODE": "plain"}}})
	_, notes := s.Ready(context.Background(), Place{Home: "/"}, nil)
	fmt.Println(notes[0].Err)
	time.Sleep(time.Hour) // until it is killed
}

// family is a server with a child that heeds no polite signal; both hold the FIFO open.
const family = `exec 9>"$FIFO"; (trap "" TERM HUP INT; while :; do sleep 100; done) & exec "$SERVER"`
