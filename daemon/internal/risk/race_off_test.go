//go:build !race

package risk

import "time"

const bound = time.Second
