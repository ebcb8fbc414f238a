//go:build !amd64 && !arm64

package main

var program []uint64
