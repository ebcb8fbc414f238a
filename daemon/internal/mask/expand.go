package mask

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"

	"sublet/wire/secretname"
)

var variable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`) })

// Expand returns a copy of values, by their names. If variables is set, it replaces each ${NAME} in them by that variable of this
// process; one that is not set is an error. It calls Keep with what is secret by its name, and with the key in an Authorization header.
func Expand(values map[string]string, variables bool) (map[string]string, error) {
	out := make(map[string]string, len(values))
	for name, value := range values {
		var missing error
		if variables {
			value = variable().ReplaceAllStringFunc(value, func(ref string) string {
				of := ref[2 : len(ref)-1]
				v, ok := os.LookupEnv(of)
				if !ok {
					missing = fmt.Errorf("%s: the daemon has no variable %s; `sublet daemon restart` from a shell that has it", name, of)
				}
				if secretname.IsSecret(of) {
					Keep(v)
				}
				return v
			})
		}
		if missing != nil {
			return nil, missing
		}
		if secretname.IsSecret(name) {
			Keep(value)
		}
		if words := strings.Fields(value); strings.EqualFold(name, "Authorization") && len(words) > 0 {
			Keep(words[len(words)-1])
		}
		out[name] = value
	}
	return out, nil
}
