// The types of S3, as the document has them.
type ResponseEvent =
  | TurnStartedEvent
  | ResponseBlockEvent
  | ToolCallEvent
  | ToolResultEvent
  | ResponseChunkEvent
  | TurnCompletedEvent
  | ErrorEvent
interface TurnStartedEvent {
  type: "turn-started"
  turnID: string // Unique turn ID
  agentID: string // Executing agent
  sessionID: string // Session ID
  timestamp: number // Unix timestamp (ms)
}
interface ResponseBlockEvent {
  type: "response-block"
  content: string // Response text
  timestamp: number // Event timestamp
}
interface ResponseChunkEvent {
  type: "response-chunk"
  delta: string // Incremental text
  timestamp: number // Event timestamp
}
interface ToolCallEvent {
  type: "tool-call"
  toolID: string // Tool identifier
  name: string // Tool name
  input: Record<string, any> // Tool parameters
  timestamp: number // Event timestamp
}
interface ToolResultEvent {
  type: "tool-result"
  toolID: string // Corresponding tool ID
  output: string | Record<string, any> // Tool output
  error?: string // Error if tool failed
  duration: number // Execution time (ms)
  timestamp: number // Event timestamp
}
interface TurnCompletedEvent {
  type: "turn-completed"
  turnID: string // Corresponding turn ID
  content: string // Final response content
  toolCalls: ToolCall[] // All tool executions
  usage: TokenUsage // Token usage stats
  stopReason: StopReason // Why the turn ended
  timestamp: number // Event timestamp
}
interface TokenUsage {
  inputTokens: number // Tokens in prompt
  outputTokens: number // Tokens in response
  totalTokens: number // Sum
}
type StopReason = "end_turn" | "max_tokens" | "tool_use" | "error"
interface ErrorEvent {
  type: "error"
  code: string // Error code
  message: string // Error message
  details?: Record<string, any> // Additional details
  recoverable: boolean // Can session continue?
  timestamp: number // Event timestamp
}
interface DispatchResult {
  sessionID: string // Session identifier
  agentID: string // Agent used
  content: string // Final response
  turns: Turn[] // All turns in session
  usage: TokenUsage // Total usage
  stopReason: StopReason // Why it ended
}
interface Turn {
  id: string
  request: {
    content: string
    files?: string[]
    metadata?: Record<string, any>
  }
  response: {
    content: string
  }
  toolCalls: ToolCall[]
  usage: TokenUsage
  timestamp: number
}
interface ToolCall {
  name: string // Tool name
  id?: string // Tool call ID
  input: Record<string, any> // Input parameters
  output?: string | Record<string, any> // Result (if available)
  error?: string // Error message (if failed)
}

// From its examples.
interface ToolResultsBatch {
  type: "tool-results-batch"
  results: { toolID: string; output: string | Record<string, any> }[]
}
