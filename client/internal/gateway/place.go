package gateway

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	"sublet/client/internal/lender"
	"sublet/wire"
	"sublet/wire/visible"
)

// With returns p with the folder and the variables that a client reports; "" and nil change nothing. The variables are added to those
// of p, or to base if p has none; those that look like secrets are left out. Errors begin with "cwd: " or "env: ".
func (p Place) With(base map[string]wire.OSString, cwd string, env map[string]string) (Place, error) {
	if cwd != "" {
		if !filepath.IsAbs(cwd) || strings.ContainsRune(cwd, 0) {
			return p, fmt.Errorf("cwd: %q is not an absolute path", visible.Clip(cwd, 200))
		}
		p.Cwd = filepath.Clean(cwd)
	}
	if len(env) > 0 {
		merged := map[string]wire.OSString{}
		if maps.Copy(merged, p.Env); p.Env == nil {
			maps.Copy(merged, base)
		}
		for name := range env {
			if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(env[name], 0) {
				return p, fmt.Errorf("env: %q cannot be a variable", visible.Clip(name, 100))
			}
		}
		maps.Copy(merged, lender.Public(env))
		p.Env = merged
	}
	return p, nil
}
