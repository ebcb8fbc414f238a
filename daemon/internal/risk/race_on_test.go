//go:build race

package risk

import "time"

const bound = 60 * time.Second
