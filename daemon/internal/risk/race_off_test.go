//go:build !race

package risk

import "time"

const bound = 10 * time.Second
