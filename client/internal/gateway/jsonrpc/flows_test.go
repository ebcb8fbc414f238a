package jsonrpc

import (
	"slices"
	"testing"
)

// T1: request, chunks, tool, chunks, complete; in this order, with one end.
func TestT1_RequestChunksToolChunksComplete(t *testing.T) {
	w := newWorld(t, []scene{{Match: "hi", Steps: []step{
		{Text: "Let me look.\n", ToolCalls: []call{bash("echo from-tool")}},
		{Text: "It says:\n```sh\nls -la\n```\nand that is all.", ChunkBytes: 5},
	}}})
	c := w.ready()
	text, complete, seen := c.outcome(c.query("hi"))
	if want := "Let me look.\nIt says:\nand that is all."; text != want {
		t.Errorf("text: got %q, want %q", text, want)
	}
	if complete["status"] != "success" {
		t.Errorf("status: got %v", complete)
	}
	var order []string
	for _, s := range seen {
		kind := s["method"].(string)
		if kind == "stream.tokens" {
			kind = "stream.token"
		}
		if kind != "agent.thinking" && (len(order) == 0 || order[len(order)-1] != kind) {
			order = append(order, kind)
		}
	}
	want := []string{"stream.token", "tool.progress", "tool.complete", "stream.block", "stream.token", "stream.block", "stream.token"}
	if !slices.Equal(order, want) {
		t.Errorf("order: got %v, want %v", order, want)
	}
}
