//go:build race

package risk

import "time"

const bound = 5 * time.Second
