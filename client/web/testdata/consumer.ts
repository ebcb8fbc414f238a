// What S3's and S4's own examples do, as a strict program of somebody else's.
import { useAgentSession, useOperator, OperatorError } from '../operator.js';
import type { DispatchRequest, DispatchResult, Operator, ResponseEvent, Session, ToolCall, Turn } from '../operator.js';

async function s3(agentID: string) {
  const operator = useOperator();
  await operator.connect('localhost:60100');
  const connected: boolean = operator.isConnected.value;
  const request: DispatchRequest = { agentID: 'architect', content: 'Review src/main.ts', files: ['src/main.ts'] };
  const stream: AsyncIterable<ResponseEvent> = await operator.dispatchStream(request);
  const session = useAgentSession(agentID);
  try {
    for await (const event of stream) {
      switch (event.type) {
        case 'turn-started':
          session.startTurn(event.turnID);
          break;
        case 'response-block':
          session.setResponseContent(event.content);
          break;
        case 'response-chunk':
          session.appendResponseChunk(event.delta);
          break;
        case 'tool-call':
          session.addToolCard(event);
          console.log('Tool:', event.name, 'with input:', event.input);
          break;
        case 'tool-result':
          session.updateToolResult(event.toolID, event.output);
          break;
        case 'turn-completed':
          session.completeTurn(event);
          console.log('Complete! Used', event.usage.totalTokens, 'tokens');
          break;
        case 'error':
          session.setError(event);
          if (event.code === 'PROVIDER_ERROR') console.log('Provider error:', event.message);
          break;
      }
    }
  } catch (error) {
    session.setError({ code: 'STREAM_ERROR', message: (error as Error).message, recoverable: true });
  }
  const controller = new AbortController();
  const timeout = setTimeout(() => controller.abort(), 30000);
  try {
    const result: DispatchResult = await operator.dispatch({ agentID: 'architect', content: 'Deploy the application' }, { signal: controller.signal });
    const turns: Turn[] = result.turns;
    console.log(result.content, result.usage.totalTokens, turns[0]?.toolCalls satisfies ToolCall[] | undefined);
  } finally {
    clearTimeout(timeout);
  }
  const one: Session = await operator.getSession('sess-123');
  const all: Session[] = await operator.listSessions('architect');
  await operator.deleteSession(one.sessionID);
  const answer: ResponseEvent = await operator.send({ id: 'req-1', type: 'dispatch', agentID: 'architect', sessionID: 'sess-1', content: 'Hello' });
  await operator.disconnect();
  return [connected, all.length, answer.type, session.turns, session.currentTurn, session.isLoading] as const;
}

async function s4(operator: Operator) {
  const { dispatch, stream, loading, result } = useAgentSession(undefined, { operator });
  const done = await dispatch({ messages: [{ role: 'user', content: [{ type: 'text', text: 'help' }] }], agentID: 'architect' });
  const sessionID: string = await stream({ messages: [{ role: 'user', content: [{ type: 'text', text: 'help' }] }], agentID: 'architect' });
  for (const block of done.content) {
    if (block.type === 'error') throw new OperatorError({ code: block.code ?? 'INTERNAL_ERROR', message: block.message });
  }
  return [sessionID, loading.value, result.value?.usage.inputTokens] as const;
}

void s3('architect').then(() => s4(useOperator({ token: 'x', onClose: (why) => console.log(why.length) })));
