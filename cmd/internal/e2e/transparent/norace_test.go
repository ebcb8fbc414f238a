//go:build !race

package transparent

const raceEnabled = false
