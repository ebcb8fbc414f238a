package mcp

import (
	"context"
	"net/http"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sublet/wire"
)

// postHeader carries the name of an HTTP request to the handlers of its messages. A client's own value is replaced.
const postHeader = "Sublet-Post"

// posts are the contexts of the HTTP requests that are being served, by name. In the protocol a call outlives its request, since
// the client may fetch the answer by another one; this server keeps no answers, so it ends the call with the request.
type posts struct{ open sync.Map }

// add returns r with a name of its own in postHeader, and keeps its context until done.
func (p *posts) add(r *http.Request) (named *http.Request, done func()) {
	name := wire.NewID()
	p.open.Store(name, r.Context())
	r = r.Clone(r.Context())
	r.Header.Set(postHeader, name)
	return r, func() { p.open.Delete(name) }
}

// endCalls cancels a call when the HTTP request that brought it ends early.
func (p *posts) endCalls(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		extra := req.GetExtra()
		if method != "tools/call" || extra == nil {
			return next(ctx, method, req)
		}
		if post, ok := p.open.Load(extra.Header.Get(postHeader)); ok {
			var cancel context.CancelFunc
			ctx, cancel = context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(post.(context.Context), cancel)()
		}
		return next(ctx, method, req)
	}
}
