//go:build !race

package risk

import "time"

const bound = 3 * time.Second

// slack is how many times the memory that is allowed else may be allocated: under the race detector sync.Pool drops at random
// what package regexp would use again.
const slack = 1
