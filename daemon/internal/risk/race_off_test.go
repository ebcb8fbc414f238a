//go:build !race

package risk

import "time"

const bound = 3 * time.Second
