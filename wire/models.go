package wire

// ModelsRequest asks every provider of the settings which models it has; ModelsReply answers. With Name no provider is asked:
// the model is looked up in the settings, and an Error answers if it cannot be used. With Agent, that program is asked which
// models and modes it offers in the connection's session; it is started if it does not run. Since protocol 1.
type ModelsRequest struct {
	RequestID `msgpack:"request_id"`
	Name      string `msgpack:"name"` // "provider/name"; "" = list all
	// Agent is an agent of the settings. Where it is not a program, the reply is empty. Mode puts its session into that mode first:
	// one of its own, or one of the policy, which stands for the agent's that fits; "" = leave it.
	Agent string `msgpack:"agent"`
	Mode  string `msgpack:"mode"`
}

type ModelsReply struct {
	RequestID `msgpack:"request_id"`
	Models    []Model      `msgpack:"models"` // by provider and name
	Faults    []ModelFault `msgpack:"faults"` // of providers that did not answer
	// Of a request with Agent: its name, "" where it is not a program; the ids of the model and mode in use, "" = it offers none;
	// and of its modes. The names in Models are ids.
	Agent string   `msgpack:"agent"`
	Model string   `msgpack:"model"`
	Mode  string   `msgpack:"mode"`
	Modes []string `msgpack:"modes"`
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

func (*ModelsRequest) AnsweredBy() *ModelsReply { return nil }
