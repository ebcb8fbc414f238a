package wire

// For tests in package wire_test.
var (
	AppendByPlan    = appendByPlan
	NegotiateRanges = negotiate
	Precheck        = precheck
)

const (
	BatchSize = batchSize
	SoftQueue = softQueue
)
