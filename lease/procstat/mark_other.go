//go:build !linux

package procstat

import "errors"

// Mark is not possible here.
func Mark(int) error { return errors.ErrUnsupported }
