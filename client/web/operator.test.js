// node --test: the module against a real server, whose address, token and gate the environment names (make test-web).

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import net from 'node:net';
import { test } from 'node:test';
import { OperatorError, useAgentSession, useOperator } from './operator.js';

const { OPERATOR_ADDR: addr, OPERATOR_TOKEN: token, OPERATOR_GATE: gate } = process.env;
assert.ok(addr && token && gate, 'OPERATOR_ADDR, OPERATOR_TOKEN and OPERATOR_GATE must be set: run make test-web');

async function connected(options = {}) {
  const operator = useOperator({ token, ...options });
  await operator.connect(addr);
  return operator;
}

const messages = (text) => [{ role: 'user', content: [{ type: 'text', text }] }];

test('Q1, Q4, L26: dispatch, dispatchStream and sessions', async () => {
  const operator = await connected();
  assert.equal(operator.isConnected.value, true);
  const result = await operator.dispatch({ agentID: 'architect', sessionID: 'web-1', content: 'look around' });
  assert.equal(result.content, 'I look first.\n\nFound **it**: <img src=x onerror=alert(1)>');
  assert.equal(result.stopReason, 'end_turn');
  assert.equal(result.turns.length, 1);
  assert.equal(result.usage.totalTokens, result.usage.inputTokens + result.usage.outputTokens);
  const kinds = [];
  for await (const event of await operator.dispatchStream({ agentID: 'architect', sessionID: 'web-1', content: 'look again' })) {
    if (kinds.at(-1) !== event.type) kinds.push(event.type);
  }
  assert.deepEqual(kinds, ['turn-started', 'response-block', 'tool-call', 'tool-result', 'response-chunk', 'turn-completed']);
  const session = await operator.getSession('web-1');
  assert.equal(session.turns.length, 2);
  assert.ok((await operator.listSessions('architect')).some((s) => s.sessionID === 'web-1'));
  assert.equal((await operator.listSessions('reviewer')).length, 0);
  const end = await operator.send({ type: 'dispatch', agentID: 'architect', sessionID: 'web-1', content: 'hello' });
  assert.equal(end.type, 'turn-completed');
  await operator.deleteSession('web-1');
  await assert.rejects(operator.getSession('web-1'), (e) => e instanceof OperatorError && e.code === 'SESSION_NOT_FOUND');
  await operator.disconnect();
  assert.equal(operator.isConnected.value, false);
  await assert.rejects(operator.getSession('x'), { code: 'STREAM_ERROR' });
});

test('errors: a refusal rejects, with code and details', async () => {
  const operator = await connected();
  await assert.rejects(operator.dispatch({ agentID: 'nobody', content: 'x' }), { code: 'AGENT_NOT_FOUND' });
  await assert.rejects(operator.dispatch({ agentID: 'architect', content: 'x', files: ['../x'] }), (e) => e.details.field === 'files');
  await operator.disconnect();
  const stranger = useOperator({ token: 'wrong' });
  await stranger.connect(addr);
  await assert.rejects(stranger.listSessions(), (e) => e.details.reason === 'unauthorized');
  await stranger.disconnect();
});

test('E15, C10: the signal, and leaving the loop, cancel the turn', async () => {
  const operator = await connected();
  const control = new AbortController();
  const events = await operator.dispatchStream({ agentID: 'architect', sessionID: 'web-abort', content: 'wait for ever' }, { signal: control.signal });
  await assert.rejects(async () => {
    for await (const event of events) if (event.type === 'response-block') control.abort(new Error('enough'));
  }, /enough/);
  for await (const event of await operator.dispatchStream({ agentID: 'architect', sessionID: 'web-abort', content: 'wait for ever' })) {
    if (event.type === 'response-block') break;
  }
  let session;
  while ((session = await operator.getSession('web-abort')).running) await new Promise((r) => setTimeout(r, 20)); // not 100 times a second
  assert.deepEqual(session.turns.map((t) => t.stopReason), ['error', 'error']);
  await assert.rejects(operator.dispatch({ agentID: 'architect', content: 'wait for ever' }, { signal: AbortSignal.abort(new Error('at once')) }), /at once/);
  await operator.disconnect();
});

test('C5: connect tries three times, doubling the wait', async () => {
  const closed = net.createServer();
  await new Promise((r) => closed.listen(0, '127.0.0.1', r));
  const { port } = closed.address();
  await new Promise((r) => closed.close(r));
  const operator = useOperator({ retryDelay: 5 });
  await assert.rejects(operator.connect(`127.0.0.1:${port}`), /ECONNREFUSED/);
  let tries = 0;
  const late = net.createServer((c) => c.end());
  const first = operator.connect(`127.0.0.1:${port}`, { delay: 200 }).then(() => tries++);
  await new Promise((r) => late.listen(port, '127.0.0.1', r));
  await first;
  assert.equal(tries, 1);
  late.close();
});

test('C6: a connection that was left does not end the one after it', async () => {
  const open = new Set();
  class Slow extends EventTarget { // tells its close when the next connection is there
    constructor() {
      super();
      open.add(this);
      setTimeout(() => this.dispatchEvent(new Event('open')));
    }
    send() {}
    close() {
      open.delete(this);
      this.closed = () => this.dispatchEvent(Object.assign(new Event('close'), { reason: 'late' }));
      Slow.left = this;
    }
  }
  let ends = 0;
  const operator = useOperator({ WebSocket: Slow, onClose: () => ends++ });
  await operator.connect('ws://x');
  await operator.disconnect();
  await operator.connect('ws://x');
  Slow.left.closed();
  assert.equal(operator.isConnected.value, true);
  assert.equal(ends, 1);
  await Promise.all([operator.connect('ws://x'), operator.connect('ws://x')]);
  assert.equal(open.size, 1);
  await operator.disconnect();
  assert.equal(open.size, 0);
});

test('A19, G10, F19: compressed deltas, batches, and a reader that pauses, lose nothing', async () => {
  const operator = await connected({ metadata: { compression: 'gzip', batchToolResults: true } });
  let text = '';
  let events = 0;
  for await (const event of await operator.dispatchStream({ agentID: 'architect', content: 'long answer' })) {
    if (++events % 100 === 0) await new Promise((r) => setTimeout(r, 1));
    if (event.type === 'response-block') text = event.content;
    if (event.type === 'response-chunk') text += event.delta;
    if (event.type === 'turn-completed') assert.equal(event.content, text);
  }
  assert.equal(text.length, 200 * 2000);
  const batch = [];
  for await (const event of await operator.dispatchStream({ agentID: 'architect', content: 'read both' })) {
    if (event.type === 'tool-results-batch') batch.push(...event.results);
  }
  assert.equal(batch.length, 2);
  await operator.disconnect();
});

test('Q2, Q5, Q7, R4: useAgentSession as S3 has it', async () => {
  const operator = await connected();
  let changes = 0;
  const session = useAgentSession('architect', { operator });
  const loading = []; // one event tells of every change, and the view sees there whether something is awaited
  session.subscribe(() => {
    changes++;
    if (loading.at(-1) !== session.isLoading) loading.push(session.isLoading);
  });
  const running = session.run('look around');
  assert.equal(session.isLoading, true);
  await running;
  assert.equal(session.isLoading, false);
  assert.equal(session.currentTurn, null);
  const [turn] = session.turns;
  assert.equal(turn.request.content, 'look around');
  assert.match(turn.response.content, /Found/);
  assert.equal(turn.toolCalls[0].output, 'found\n');
  assert.ok(changes > 5);
  assert.deepEqual(loading, [true, false]);
  session.apply({ type: 'of-tomorrow' }); // C13
  session.setError({ code: 'X', message: 'm', recoverable: true });
  assert.equal(session.error.code, 'X');
  const again = useAgentSession('architect', { operator });
  await again.load(session.sessionID);
  assert.equal(again.turns[0].response.content, turn.response.content);
  await operator.disconnect();
});

test('Q3, C6, C7: useAgentSession as S4 has it; a dropped stream goes on', async () => {
  const operator = await connected({ resumeDelay: 5 });
  const { dispatch, stream, loading, result } = useAgentSession(); // as the document's example has it: with the newest operator
  const whole = await dispatch({ messages: messages('look around'), agentID: 'architect' });
  assert.equal(whole.stopReason, 'end_turn');
  assert.equal(result.value, whole);
  assert.deepEqual(whole.content.map((b) => b.type), ['text', 'tool', 'text']);
  await assert.rejects(dispatch({ messages: messages('x'), agentID: 'nobody' }), { code: 'AGENT_NOT_FOUND' });

  let dropped = 0;
  const sessionID = await stream({ messages: messages('wait at the gate'), agentID: 'architect' }, {
    onResult: async (r) => {
      if (r.content.length === 0 || dropped++ > 0) return;
      await operator.disconnect(); // results() connects again and asks for the same stream
      await writeFile(gate, '');
    },
  });
  assert.ok(sessionID);
  assert.equal(loading.value, true);
  while (loading.value) await new Promise((r) => setTimeout(r, 5));
  assert.equal(result.value.stopReason, 'end_turn');
  assert.equal(result.value.content.at(-1).text, 'through');
  assert.ok(dropped > 0);
  const context = await operator.sendContextRequest({ project: { name: 'p', path: '/' }, tools: [], userMessage: 'hello' });
  assert.equal(context.stopReason, 'end_turn');
  await operator.disconnect();
});
