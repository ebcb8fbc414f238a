// What S2's server sends, as its examples and lists have it; the document has no types of its own.
type ID = number | string | null
interface Answer { jsonrpc: "2.0"; id: ID; result: any }
interface Failure { jsonrpc: "2.0"; id: ID; error: { code: number; message: string; data?: any } }
interface Notification { jsonrpc: "2.0"; method: string; params: Record<string, any> }

interface Initialized {
  status: "ready"
  server_info: { name: string; version: string }
  capabilities: string[]
  models: { name: string; type: "code" | "chat"; loaded: boolean }[]
}
interface Queried { query_id: string; status: "processing" }
interface Cancelled { cancelled: boolean; query_id: string }
interface Approved { status: "approved" | "rejected"; execution_id: string }
interface Saved { saved: true; path: string; size: number }
interface Loaded { loaded: true; session: { id: string; created: number; blocks_count: number; messages_count: number } }

interface Token { query_id: string; token: string; index: number; metadata: { type: string; confidence: number } }
interface Tokens { query_id: string; tokens: { token: string; index: number }[] }
interface Block {
  query_id: string
  block_id: string
  block: {
    type: "text" | "code" | "diff" | "error" | "tool_output" | "interactive"
    language: string
    content: string
    metadata: { file?: string; lines?: string; diff: boolean; executable: boolean }
    annotations: { line: number; type: string; message: string }[]
  }
}
interface Complete {
  query_id: string
  status: "success" | "error" | "cancelled" | "timeout"
  metadata: { total_tokens: number; tokens_per_second: number; tools_executed: string[]; model_used: string; duration_ms: number }
}
interface StreamError { query_id: string; error: { code: number; message: string; details: string } }
interface RequestApproval {
  execution_id: string
  query_id: string
  tool: { name: string; description: string; category: string }
  arguments: Record<string, any>
  preview: { type: string; content: string }
  risk_assessment: { level: "low" | "medium" | "high" | "critical"; reasons: string[]; reversible: boolean }
  timeout: number
}
interface Progress { execution_id: string; progress: { percentage: number; status: string; message: string } }
interface ToolComplete { execution_id: string; status: string; result: { output: string; files_modified: string[]; duration_ms: number } }
interface Thinking { query_id: string; phase: "analyzing" | "planning" | "generating" | "executing"; message: string }
interface Suggestion { suggestion: string; confidence: number; source: string; context: string }
