package wire

// For tests in package wire_test.
var (
	NegotiateRanges = negotiate
	Precheck        = precheck
)
