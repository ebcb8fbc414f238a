//go:build !linux

package main

// pin does nothing where threads cannot be placed: ratios of the W rows are then noisier.
func pin() (unpin func() error, err error) { return func() error { return nil }, nil }
