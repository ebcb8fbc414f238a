// The types of S4, as the document has them; but for stopReason, which its own example leaves out while a turn runs.
interface DispatchResult {
  sessionID: string; // Unique session identifier
  agentID: string; // Agent that produced this response
  content: ResponseBlock[]; // Response content blocks
  turns: Turn[]; // Complete turn history
  usage: {
    inputTokens: number; // LLM input token count
    outputTokens: number; // LLM output token count
  };
  stopReason?: "end_turn" | "tool_use" | "max_tokens" | "stream_start" | "error";
}
interface Turn {
  request: Request;
  response: Response;
  toolCalls: ToolExecution[];
}
interface Request {
  role: "user" | "assistant";
  content: RequestBlock[];
}
interface Response {
  role: "assistant";
  content: ResponseBlock[];
}
interface ToolExecution {
  id: string;
  name: string;
  input: Record<string, unknown>;
  result: string;
  error?: string;
  executedAt: string; // ISO 8601 timestamp
}
type RequestBlock =
  | { type: "text"; text: string }
  | { type: "image"; url: string; mimeType: string }
  | { type: "file"; path: string; size: number };
type ResponseBlock =
  | { type: "text"; text: string }
  | { type: "tool"; id: string; name: string; input: Record<string, unknown> }
  | { type: "code"; language: string; source: string }
  | { type: "svg"; content: string; width?: number; height?: number }
  | { type: "image"; url: string; alt?: string }
  | { type: "error"; message: string; code?: string };
