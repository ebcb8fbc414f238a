//go:build !linux

package footprint

// releaseText does nothing where the pages of a program cannot be given back one by one.
func releaseText() error { return nil }
