//go:build !amd64 && !arm64

package main

var filterProgram []uint64
