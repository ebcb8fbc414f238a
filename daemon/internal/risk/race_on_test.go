//go:build race

package risk

import "time"

const bound = 30 * time.Second
