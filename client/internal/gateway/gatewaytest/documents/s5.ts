// The types of S5's responses, as the document has them; state has the two values that there are.
export type AgentResponse =
  | ReadyResponse
  | TokenResponse
  | ToolUseResponse
  | ToolResultResponse
  | DoneResponse
  | ErrorResponse
  | StatusResponse;

export interface ReadyResponse {
  type: 'ready';
  timestamp: number;
  version?: string;
  capabilities?: string[];
}

export interface TokenResponse {
  type: 'token';
  id: string;
  token: string;
  timestamp: number;
}

export interface ToolUseResponse {
  type: 'tool_use';
  id: string;
  data: {
    toolId: string;
    toolName: string;
    input: any;
  };
  timestamp: number;
}

export interface ToolResultResponse {
  type: 'tool_result';
  id: string;
  data: {
    toolId: string;
    toolName: string;
    result: any;
  };
  timestamp: number;
}

export interface DoneResponse {
  type: 'done';
  id: string;
  timestamp: number;
}

export interface ErrorResponse {
  type: 'error';
  id: string;
  error: string;
  timestamp: number;
}

export interface StatusResponse {
  type: 'status';
  id: string;
  data: {
    state: 'idle' | 'processing';
    conversationLength: number;
    uptime: number;
  };
  timestamp: number;
}
