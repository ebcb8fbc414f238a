//go:build !amd64 && !arm64

package main

import "golang.org/x/sys/unix"

var program []unix.SockFilter
