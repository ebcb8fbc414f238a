// Types of operator.js. docs/operator.md tells of the protocol.

export interface Ref<T> {
  value: T;
}

export type StopReason = 'end_turn' | 'max_tokens' | 'tool_use' | 'error';

export interface TokenUsage {
  inputTokens: number;
  outputTokens: number;
  totalTokens: number;
}

export interface ToolCall {
  name: string;
  id?: string;
  input: Record<string, unknown>;
  output?: string | Record<string, unknown>;
  error?: string;
  duration?: number;
}

export interface Turn {
  id: string;
  request: { content: string; files?: string[]; metadata?: Record<string, unknown> };
  response: { content: string };
  toolCalls: ToolCall[];
  usage?: TokenUsage;
  stopReason?: StopReason;
  agentID?: string;
  timestamp?: number;
}

export interface Metadata {
  token?: string;
  project?: string;
  model?: string;
  timeoutMs?: number;
  batchToolResults?: boolean;
  compression?: 'gzip' | 'none';
  extended?: boolean;
  approvals?: boolean;
  [key: string]: unknown;
}

export interface DispatchRequest {
  agentID: string;
  sessionID?: string;
  content: string;
  files?: string[];
  metadata?: Metadata;
}

export interface RequestMessage {
  type: string;
  id?: string;
  version?: string;
  metadata?: Metadata;
  [key: string]: unknown;
}

interface Event<T extends string> {
  type: T;
  id: string;
  turnID?: string;
  timestamp: number;
}

export interface TurnStartedEvent extends Event<'turn-started'> {
  turnID: string;
  agentID: string;
  sessionID: string;
}
export interface ResponseBlockEvent extends Event<'response-block'> {
  content: string;
}
export interface ResponseChunkEvent extends Event<'response-chunk'> {
  delta: string;
  deltaEncoded?: boolean;
}
export interface ToolCallEvent extends Event<'tool-call'> {
  toolID: string;
  name: string;
  input: Record<string, unknown>;
  agentID?: string;
}
export interface ToolResult {
  toolID: string;
  output: string | Record<string, unknown>;
  error?: string;
  duration: number;
}
export interface ToolResultEvent extends Event<'tool-result'>, ToolResult {}
export interface ToolResultsBatchEvent extends Event<'tool-results-batch'> {
  results: ToolResult[];
}
export interface TurnCompletedEvent extends Event<'turn-completed'> {
  turnID: string;
  content: string;
  toolCalls: ToolCall[];
  usage: TokenUsage;
  stopReason: StopReason;
}
/** With turnID the turn goes on to its turn-completed; without, it is the request's one answer. */
export interface ErrorEvent extends Event<'error'> {
  code: string;
  message: string;
  details?: Record<string, unknown>;
  recoverable: boolean;
}
export interface Grant {
  scope: string;
  rule: string;
  covers: string;
}
export interface ConfirmationRequestEvent extends Event<'confirmation-request'> {
  confirmationID: string;
  toolID: string;
  agentID: string;
  tool: string;
  command?: string;
  input: Record<string, unknown>;
  cwd: string;
  level: 'low' | 'medium' | 'high' | 'critical';
  reasons: string[];
  reversible: boolean;
  undoHint?: string;
  preview: { type: string; content: string };
  grants: Grant[];
}
export interface ConfirmationResolvedEvent extends Event<'confirmation-resolved'> {
  confirmationID: string;
  decision: string;
  by: string;
  comment?: string;
}
/** More types may come: ignore what you do not know. */
export type ResponseEvent =
  | TurnStartedEvent
  | ResponseBlockEvent
  | ResponseChunkEvent
  | ToolCallEvent
  | ToolResultEvent
  | ToolResultsBatchEvent
  | TurnCompletedEvent
  | ErrorEvent
  | ConfirmationRequestEvent
  | ConfirmationResolvedEvent;

export interface DispatchResult {
  sessionID: string;
  agentID: string;
  content: string;
  turns: Turn[];
  usage: TokenUsage;
  stopReason: StopReason;
  error?: OperatorError;
}

export interface Session {
  sessionID: string;
  agentID: string;
  name: string;
  title: string;
  project: string;
  createdAt: number;
  updatedAt: number;
  turnCount: number;
  running: boolean;
  turns?: Turn[];
  usage?: TokenUsage;
  truncated?: boolean;
}

// S4

export type RequestBlock =
  | { type: 'text'; text: string }
  | { type: 'image'; url: string; mimeType: string }
  | { type: 'file'; path: string; size: number };

export type ResponseBlock =
  | { type: 'text'; text: string }
  | { type: 'tool'; id: string; name: string; input: Record<string, unknown> }
  | { type: 'code'; language: string; source: string }
  | { type: 'svg'; content: string; width?: number; height?: number }
  | { type: 'image'; url: string; alt?: string }
  | { type: 'error'; message: string; code?: string };

export interface ToolExecution {
  id: string;
  name: string;
  input: Record<string, unknown>;
  result: string;
  error?: string;
  executedAt: string;
}

export interface BlockTurn {
  id: string;
  request: { role: 'user' | 'assistant'; content: RequestBlock[] };
  response: { role: 'assistant'; content: ResponseBlock[] };
  toolCalls: ToolExecution[];
  timestamp: number;
}

export interface BlockResult {
  id?: string;
  sessionID: string;
  agentID: string;
  content: ResponseBlock[];
  turns: BlockTurn[];
  usage: { inputTokens: number; outputTokens: number };
  stopReason?: StopReason | 'stream_start';
  truncated?: boolean;
}

export interface BlockRequest {
  messages: { role: 'user' | 'assistant'; content: RequestBlock[] }[];
  agentID?: string;
  sessionID?: string;
  tools?: string[];
  metadata?: Metadata;
}

export interface RequestOptions {
  signal?: AbortSignal;
}

export class OperatorError extends Error {
  constructor(error: { code: string; message: string; details?: Record<string, unknown>; recoverable?: boolean; turnID?: string });
  code: string;
  details: Record<string, unknown>;
  recoverable: boolean;
  turnID?: string;
}

export interface OperatorOptions {
  token?: string;
  metadata?: Metadata;
  /** Vue's ref, or anything like it. */
  ref?: <T>(value: T) => Ref<T>;
  retries?: number;
  retryDelay?: number;
  resumeDelay?: number;
  WebSocket?: unknown;
  onClose?: (why: string) => void;
}

export interface Operator {
  connect(addr: string, options?: RequestOptions & { retries?: number; delay?: number }): Promise<void>;
  disconnect(): Promise<void>;
  isConnected: Ref<boolean>;
  send(msg: RequestMessage, options?: RequestOptions): Promise<ResponseEvent>;
  dispatch(req: DispatchRequest, options?: RequestOptions): Promise<DispatchResult>;
  dispatchStream(req: DispatchRequest, options?: RequestOptions): Promise<AsyncIterable<ResponseEvent>>;
  getSession(sessionID: string, options?: RequestOptions): Promise<Session>;
  listSessions(agentID?: string, options?: RequestOptions): Promise<Session[]>;
  deleteSession(sessionID: string, options?: RequestOptions): Promise<void>;
  cancel(requestID: string): void;
  confirm(
    sessionID: string,
    confirmationID: string,
    decision: 'allow' | 'deny' | 'allow_always' | 'deny_always',
    options?: RequestOptions & { comment?: string; grant?: Grant },
  ): Promise<void>;
  query(req: BlockRequest, options?: RequestOptions): Promise<BlockResult>;
  sendContextRequest(
    context: { project?: { name: string; path: string }; tools?: string[]; userMessage: string },
    options?: RequestOptions,
  ): Promise<BlockResult>;
  begin(req: BlockRequest, options?: RequestOptions): Promise<string>;
  results(sessionID: string, options?: RequestOptions & { lastTurnID?: string }): AsyncGenerator<BlockResult, void>;
}

export function useOperator(options?: OperatorOptions): Operator;

export interface AgentSessionOptions {
  /** Without one: the operator that was made last, or one of its own at localhost:60100. */
  operator?: Operator;
  sessionID?: string;
  ref?: <T>(value: T) => Ref<T>;
  /** Vue's reactive, or anything like it. */
  reactive?: <T extends object>(value: T) => T;
}

export interface AgentSession {
  startTurn(id: string, request?: Turn['request']): void;
  setResponseContent(content: string): void;
  appendResponseChunk(delta: string): void;
  addToolCard(event: ToolCallEvent): void;
  updateToolResult(toolID: string, output: ToolResult['output'], more?: { error?: string; duration?: number }): void;
  completeTurn(event: Partial<TurnCompletedEvent>): void;
  setError(error: { code: string; message: string; recoverable: boolean; turnID?: string }): void;
  apply(event: ResponseEvent): void;
  run(request: string | Partial<DispatchRequest>, options?: RequestOptions & { each?: (event: ResponseEvent) => void }): Promise<void>;
  load(sessionID: string, options?: RequestOptions): Promise<Session>;
  dispatch(req: BlockRequest, options?: RequestOptions): Promise<BlockResult>;
  stream(
    req: BlockRequest,
    options?: RequestOptions & { onResult?: (result: BlockResult) => void; onError?: (error: unknown) => void },
  ): Promise<string>;
  loading: Ref<boolean>;
  result: Ref<BlockResult | null>;
  readonly turns: Turn[];
  readonly currentTurn: Turn | null;
  readonly isLoading: boolean;
  readonly error: { code: string; message: string } | null;
  readonly sessionID: string | undefined;
  subscribe(f: () => void): () => boolean;
}

export function useAgentSession(agentID?: string, options?: AgentSessionOptions): AgentSession;
