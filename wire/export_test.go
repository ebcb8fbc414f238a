package wire

// For tests in package wire_test.
var (
	AppendByPlan = appendByPlan
	Precheck     = precheck
)

const (
	BatchSize = batchSize
	SoftQueue = softQueue
)
