//go:build !linux

package main

import "errors"

func coldCopy(string, string) error { return errors.ErrUnsupported }

func chill(string) error { return errors.ErrUnsupported }
