package mcp

import (
	"context"
	"net/http"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sublet/wire"
)

// postHeader names a request towards the handlers of its messages. A client's own is replaced.
const postHeader = "Sublet-Post"

// posts are the contexts of the HTTP requests that are being served, by name. In the older protocol a call goes on when its
// request is broken off, because another one could take up its answer; this server keeps no answers, so such a call ends.
type posts struct{ open sync.Map }

// name names a request; done forgets it.
func (p *posts) name(r *http.Request) (named *http.Request, done func()) {
	name := wire.NewID()
	p.open.Store(name, r.Context())
	r = r.Clone(r.Context())
	r.Header.Set(postHeader, name)
	return r, func() { p.open.Delete(name) }
}

// hangUps ends a call when the request that brought it is broken off.
func (p *posts) hangUps(next sdk.MethodHandler) sdk.MethodHandler {
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
