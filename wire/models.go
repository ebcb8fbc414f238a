package wire

// ModelsRequest asks every provider of the settings which models it has; ModelsReply answers. With Name no provider is asked:
// the model is looked up in the settings, and an Error answers if it cannot be used. Since protocol 1.
type ModelsRequest struct {
	RequestID RequestID `msgpack:"request_id"`
	Name      string    `msgpack:"name"` // "provider/name"; "" = list all
}

type ModelsReply struct {
	RequestID RequestID    `msgpack:"request_id"`
	Models    []Model      `msgpack:"models"` // by provider and name
	Faults    []ModelFault `msgpack:"faults"` // of providers that did not answer
}

// Model is what a provider reports about one of its models; what it does not report is 0 or nil.
type Model struct {
	Name          string   `msgpack:"name"`           // as `model = "provider/name"` has it
	ContextWindow int      `msgpack:"context_window"` // tokens
	MaxOutput     int      `msgpack:"max_output"`     // tokens
	PriceInput    *float64 `msgpack:"price_input"`    // US dollars for a million tokens
	PriceOutput   *float64 `msgpack:"price_output"`
	Images        *bool    `msgpack:"images"`
	Tools         *bool    `msgpack:"tools"`
	Thinking      *bool    `msgpack:"thinking"`
}

type ModelFault struct {
	Provider string `msgpack:"provider"`
	Message  string `msgpack:"message"`
	Hint     string `msgpack:"hint"`
}

func (*ModelsRequest) Kind() string { return "ModelsRequest" }
func (*ModelsReply) Kind() string   { return "ModelsReply" }

func (m *ModelsRequest) RequestRef() *RequestID { return &m.RequestID }
func (m *ModelsReply) RequestRef() *RequestID   { return &m.RequestID }

func (*ModelsRequest) AnsweredBy() *ModelsReply { return nil }
