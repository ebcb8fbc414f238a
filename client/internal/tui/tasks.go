package tui

import (
	"context"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
)

// tasks runs what waits beside the event loop. It owns the goroutines' work: after close no task begins, those that run
// see their context end, and close waits for them, with a bound. A panic in a task ends the program in order.
type tasks struct {
	ctx    context.Context
	cancel context.CancelFunc
	failed func(v any) // called with what a task panicked with

	mu     sync.Mutex
	closed bool // guarded by mu
	wg     sync.WaitGroup
}

func newTasks(ctx context.Context, failed func(any)) *tasks {
	t := &tasks{failed: failed}
	t.ctx, t.cancel = context.WithCancel(ctx)
	return t
}

// cmd wraps f for bubbletea, which calls it in a goroutine.
func (t *tasks) cmd(f func(ctx context.Context) tea.Msg) tea.Cmd {
	return func() (msg tea.Msg) {
		if !t.begin() {
			return nil
		}
		defer t.wg.Done()
		defer func() {
			if v := recover(); v != nil {
				msg = nil
				t.failed(v)
			}
		}()
		return f(t.ctx)
	}
}

// start runs f in a goroutine of its own.
func (t *tasks) start(f func(ctx context.Context)) {
	if !t.begin() {
		return
	}
	go func() {
		defer t.wg.Done()
		defer func() {
			if v := recover(); v != nil {
				t.failed(v)
			}
		}()
		f(t.ctx)
	}()
}

func (t *tasks) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.wg.Add(1)
	return true
}

// close ends the tasks and reports whether all of them did within the bound.
func (t *tasks) close(bound time.Duration) bool {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.cancel()
	return waited(&t.wg, bound)
}
