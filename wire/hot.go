package wire

import "reflect"

// The kinds of which thousands travel in a second, and the union Chunk, are written and read by hand. A test holds them
// to the bytes that the plan made from their tags gives.

func appendEvent(dst []byte, e *Event) []byte {
	dst = appendStr(appendKey(dst, "session_id"), string(e.SessionID))
	dst = appendStr(appendKey(dst, "turn_id"), string(e.TurnID))
	dst = appendStr(appendKey(dst, "request_id"), string(e.RequestID))
	dst = appendInt(appendKey(dst, "seq"), e.Seq)
	return appendInt(appendKey(dst, "at_ms"), e.AtMS)
}

func appendStreamChunk(dst []byte, m *AgentStreamChunk) []byte {
	dst = appendKey(append(dst, 0x92), "AgentStreamChunk")
	dst = appendEvent(append(dst, 0x88), &m.Event)
	dst = appendInt(appendKey(dst, "seq_first"), m.SeqFirst)
	dst = appendStr(appendKey(dst, "agent"), m.Agent)
	return appendChunk(appendKey(dst, "chunk"), &m.Chunk)
}

// Which fields travel with each type of chunk, in this order, beside type.
const (
	hasText = 1 << iota
	hasExecution
	hasTool
	hasArguments
	hasData
	hasStatus
	hasSignature
	hasBlock
)

func chunkFields(typ string) (fields uint8, count byte) {
	switch typ {
	case ChunkText, ChunkNotice:
		return hasText, 1
	case ChunkReasoning:
		return hasText | hasSignature, 2
	case ChunkToolCallDelta:
		return hasText | hasExecution | hasTool, 3
	case ChunkToolCall:
		return hasExecution | hasTool | hasArguments, 3
	case ChunkToolOutput:
		return hasExecution | hasData, 2
	case ChunkToolResult:
		return hasExecution | hasTool | hasStatus, 3
	case ChunkBlock:
		return hasBlock, 1
	}
	return 0, 0
}

func appendChunk(dst []byte, c *Chunk) []byte {
	has, n := chunkFields(c.Type)
	dst = append(dst, 0x80|(n+1))
	dst = appendStr(appendKey(dst, "type"), c.Type)
	if has&hasText != 0 {
		dst = appendStr(appendKey(dst, "text"), c.Text)
	}
	if has&hasExecution != 0 {
		dst = appendStr(appendKey(dst, "execution_id"), string(c.ExecutionID))
	}
	if has&hasTool != 0 {
		dst = appendStr(appendKey(dst, "tool"), c.Tool)
	}
	if has&hasArguments != 0 {
		dst = appendStr(appendKey(dst, "arguments"), c.Arguments)
	}
	if has&hasData != 0 {
		dst = appendBin(appendKey(dst, "data"), c.Data)
	}
	if has&hasStatus != 0 {
		dst = appendStr(appendKey(dst, "status"), c.Status)
	}
	if has&hasSignature != 0 {
		dst = appendStr(appendKey(dst, "signature"), c.Signature)
	}
	if has&hasBlock != 0 {
		dst = appendBlock(appendKey(dst, "block"), c.Block)
	}
	return dst
}

func appendCommandOutput(dst []byte, m *CommandOutput) []byte {
	dst = appendKey(append(dst, 0x92), "CommandOutput")
	dst = appendStr(appendKey(append(dst, 0x86), "lease_id"), string(m.LeaseID))
	dst = appendUint(appendKey(dst, "fence"), m.Fence)
	dst = appendStr(appendKey(dst, "request_id"), string(m.RequestID))
	dst = appendStr(appendKey(dst, "execution_id"), string(m.ExecutionID))
	dst = appendInt(appendKey(dst, "offset"), m.Offset)
	return appendBin(appendKey(dst, "data"), m.Data)
}

func appendHeartbeat(dst []byte, m *Heartbeat) []byte {
	dst = appendKey(append(dst, 0x92), "Heartbeat")
	dst = appendUint(appendKey(append(dst, 0x83), "nonce"), m.Nonce)
	dst = appendInt(appendKey(dst, "at_ms"), m.AtMS)
	return appendBool(appendKey(dst, "reply"), m.Reply)
}

// once tells duplicate keys: it fails the second time it sees bit.
func once(seen *uint16, bit uint, name string) *fieldError {
	if *seen&(1<<bit) != 0 {
		return in(name, wrong("it is there twice"))
	}
	*seen |= 1 << bit
	return nil
}

// str, i64 and their like read one field of the hot kinds: once only, with its name on any error.
func (d *decoder) str(to *string, seen *uint16, bit uint, name string) *fieldError {
	err := once(seen, bit, name)
	if err != nil {
		return err
	}
	if *to, err = d.readStr(); err != nil {
		return in(name, err)
	}
	return nil
}

func (d *decoder) i64(to *int64, seen *uint16, bit uint, name string) *fieldError {
	err := once(seen, bit, name)
	if err != nil {
		return err
	}
	if *to, err = d.readInt(); err != nil {
		return in(name, err)
	}
	return nil
}

func (d *decoder) u64(to *uint64, seen *uint16, bit uint, name string) *fieldError {
	err := once(seen, bit, name)
	if err != nil {
		return err
	}
	if *to, err = d.readUint(); err != nil {
		return in(name, err)
	}
	return nil
}

func (d *decoder) bin(to *[]byte, seen *uint16, bit uint, name string) *fieldError {
	err := once(seen, bit, name)
	if err != nil {
		return err
	}
	if *to, err = d.readBin(); err != nil {
		return in(name, err)
	}
	return nil
}

func (d *decoder) readStreamChunk(m *AgentStreamChunk) *fieldError {
	n, err := d.mapHead()
	if err != nil {
		return err
	}
	var seen uint16
	for range n {
		switch string(d.key()) {
		case "session_id":
			err = d.str((*string)(&m.SessionID), &seen, 0, "session_id")
		case "turn_id":
			err = d.str((*string)(&m.TurnID), &seen, 1, "turn_id")
		case "request_id":
			err = d.str((*string)(&m.RequestID), &seen, 2, "request_id")
		case "seq":
			err = d.i64(&m.Seq, &seen, 3, "seq")
		case "at_ms":
			err = d.i64(&m.AtMS, &seen, 4, "at_ms")
		case "seq_first":
			err = d.i64(&m.SeqFirst, &seen, 5, "seq_first")
		case "agent":
			err = d.str(&m.Agent, &seen, 6, "agent")
		case "chunk":
			if err = once(&seen, 7, "chunk"); err == nil {
				if err = d.readChunk(&m.Chunk); err != nil {
					err = in("chunk", err)
				}
			}
		default:
			d.skip()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) readChunk(c *Chunk) *fieldError {
	n, err := d.mapHead()
	if err != nil {
		return err
	}
	var seen uint16
	for range n {
		switch string(d.key()) {
		case "type":
			err = d.str(&c.Type, &seen, 8, "type")
		case "text":
			err = d.str(&c.Text, &seen, 0, "text")
		case "execution_id":
			err = d.str((*string)(&c.ExecutionID), &seen, 1, "execution_id")
		case "tool":
			err = d.str(&c.Tool, &seen, 2, "tool")
		case "arguments":
			err = d.str(&c.Arguments, &seen, 3, "arguments")
		case "data":
			err = d.bin(&c.Data, &seen, 4, "data")
		case "status":
			err = d.str(&c.Status, &seen, 5, "status")
		case "signature":
			err = d.str(&c.Signature, &seen, 6, "signature")
		case "block":
			if err = once(&seen, 7, "block"); err == nil {
				if c.Block, err = d.readBlock(); err != nil {
					err = in("block", err)
				}
			}
		default:
			d.skip()
		}
		if err != nil {
			return err
		}
	}
	if extra := uint8(seen) &^ firstOf(chunkFields(c.Type)); extra != 0 {
		c.drop(extra)
	}
	return nil
}

func firstOf(fields uint8, _ byte) uint8 { return fields }

// drop clears the fields that do not belong to the chunk's type.
func (c *Chunk) drop(fields uint8) {
	if fields&hasText != 0 {
		c.Text = ""
	}
	if fields&hasExecution != 0 {
		c.ExecutionID = ""
	}
	if fields&hasTool != 0 {
		c.Tool = ""
	}
	if fields&hasArguments != 0 {
		c.Arguments = ""
	}
	if fields&hasData != 0 {
		c.Data = nil
	}
	if fields&hasStatus != 0 {
		c.Status = ""
	}
	if fields&hasSignature != 0 {
		c.Signature = ""
	}
	if fields&hasBlock != 0 {
		c.Block = nil
	}
}

func (d *decoder) readCommandOutput(m *CommandOutput) *fieldError {
	n, err := d.mapHead()
	if err != nil {
		return err
	}
	var seen uint16
	for range n {
		switch string(d.key()) {
		case "lease_id":
			err = d.str((*string)(&m.LeaseID), &seen, 0, "lease_id")
		case "fence":
			err = d.u64(&m.Fence, &seen, 1, "fence")
		case "request_id":
			err = d.str((*string)(&m.RequestID), &seen, 2, "request_id")
		case "execution_id":
			err = d.str((*string)(&m.ExecutionID), &seen, 3, "execution_id")
		case "offset":
			err = d.i64(&m.Offset, &seen, 4, "offset")
		case "data":
			err = d.bin(&m.Data, &seen, 5, "data")
		default:
			d.skip()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) readHeartbeat(m *Heartbeat) *fieldError {
	n, err := d.mapHead()
	if err != nil {
		return err
	}
	var seen uint16
	for range n {
		switch string(d.key()) {
		case "nonce":
			err = d.u64(&m.Nonce, &seen, 0, "nonce")
		case "at_ms":
			err = d.i64(&m.AtMS, &seen, 1, "at_ms")
		case "reply":
			if err = once(&seen, 2, "reply"); err == nil {
				if m.Reply, err = d.readBool(); err != nil {
					err = in("reply", err)
				}
			}
		default:
			d.skip()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var blockPlan func() plan // set in init, for the same reason as byKind

func appendBlock(dst []byte, b *Block) []byte { return blockPlan().enc(dst, reflect.ValueOf(b)) }

func (d *decoder) readBlock() (b *Block, err *fieldError) {
	err = blockPlan().dec(d, reflect.ValueOf(&b).Elem())
	return b, err
}
