// Package text makes text of a model, file or program safe to display.
package text

import "sublet/wire/visible"

// Visible returns text of a model, file or program so that a person sees all of it. It is idempotent.
func Visible(s string) string { return visible.Exact(s) }
