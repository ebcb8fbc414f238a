// The front end of `sublet serve operator`: useOperator() talks to it, useAgentSession() holds what a view shows of one
// conversation. No dependencies; node 20 and later (TCP) and browsers (WebSocket). docs/operator.md tells of the protocol.

const FIRST_DELAY = 1000; // ms before the second try; doubles (C5)
const TRIES = 3;
const RESUME_DELAY = 1000; // ms before a dropped stream is asked for again (C6)
const ADDRESS = 'localhost:60100'; // where useAgentSession() finds an operator that nobody gave it (A5)
const HIGH_WATER = 256; // events that wait for their reader before the socket is paused (F19)
const isNode = typeof process !== 'undefined' && !!process.versions?.node;

let newest = null; // the operator that was made last

/** An error that the server told, or STREAM_ERROR where the connection was lost. */
export class OperatorError extends Error {
  constructor({ code, message, details, recoverable, turnID }) {
    super(message);
    this.name = 'OperatorError';
    this.code = code;
    this.details = details ?? {};
    this.recoverable = recoverable ?? true;
    if (turnID) this.turnID = turnID;
  }
}

const lost = (why) => new OperatorError({ code: 'STREAM_ERROR', message: why || 'the connection was lost', recoverable: true });
const newID = () => globalThis.crypto?.randomUUID?.() ?? Date.now().toString(36) + Math.random().toString(36).slice(2);
const plainRef = (value) => ({ value });

/** sleep waits, or rejects with the signal's reason. */
function sleep(ms, signal) {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const timer = setTimeout(done, ms);
    function done() {
      signal?.removeEventListener('abort', aborted);
      resolve();
    }
    function aborted() {
      clearTimeout(timer);
      reject(signal.reason);
    }
    signal?.addEventListener('abort', aborted, { once: true });
  });
}

/** gunzip decodes a delta that came as base64 of gzip (A19). */
async function gunzip(base64) {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream).text();
}

// A transport: open it, then send(text), pause(), resume(), close(); it calls onMessage(text) for each JSON text and onClose(why) once.

async function openTCP(addr, on) {
  const net = await import(/* @vite-ignore */ 'node:' + 'net');
  const m = /^(?:tcp:\/\/)?(.+):(\d+)\/?$/.exec(addr);
  if (!m) throw new TypeError(`${addr} is not HOST:PORT`);
  const socket = net.connect({ host: m[1].replace(/^\[|\]$/g, ''), port: Number(m[2]) });
  await new Promise((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('error', reject);
  });
  socket.setNoDelay(true);
  socket.setEncoding('utf8'); // characters split between packets are put together
  let pieces = [];
  socket.on('data', (text) => {
    let at = 0;
    for (let end; (end = text.indexOf('\n', at)) >= 0; at = end + 1) {
      pieces.push(text.slice(at, end));
      const line = pieces.join('');
      pieces = [];
      if (line.trim()) on.message(line);
    }
    if (at < text.length) pieces.push(text.slice(at));
  });
  let why = '';
  socket.on('error', (e) => (why = e.message));
  socket.on('close', () => on.close(why));
  return {
    send: (text) => socket.write(text + '\n'),
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    close: () => (socket.resume(), socket.end()),
  };
}

async function openWebSocket(addr, on, WS) {
  const url = /^wss?:\/\//.test(addr) ? addr : 'ws://' + addr;
  const socket = new WS(url);
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve, { once: true });
    socket.addEventListener('close', () => reject(lost(`no WebSocket at ${url}`)), { once: true });
    socket.addEventListener('error', () => reject(lost(`no WebSocket at ${url}`)), { once: true });
  });
  socket.addEventListener('message', (e) => on.message(e.data));
  socket.addEventListener('close', (e) => on.close(e.reason));
  // A WebSocket cannot be paused by a page; what waits is kept here.
  return { send: (text) => socket.send(text), pause() {}, resume() {}, close: () => socket.close(1000) };
}

/** Events of one request on their way to one reader. */
class EventQueue {
  #events = [];
  #waiting = null;
  #ended = false;
  #error = null;
  constructor(changed, leave, over) {
    this.changed = changed; // the number of waiting events changed
    this.leave = leave; // the reader left early
    this.over = over; // nothing more will come
  }
  get length() {
    return this.#events.length;
  }
  push(event) {
    if (this.#ended) return;
    this.#events.push(event);
    this.#wake();
  }
  end(error = null) {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    this.over();
    this.#wake();
  }
  #wake() {
    this.changed();
    this.#waiting?.();
    this.#waiting = null;
  }
  async next() {
    while (this.#events.length === 0) {
      if (this.#ended) {
        const error = this.#error;
        this.#error = null; // told once
        if (error) throw error;
        return { done: true, value: undefined };
      }
      await new Promise((resolve) => (this.#waiting = resolve));
    }
    const event = this.#events.shift();
    this.changed();
    if (event.deltaEncoded) {
      return { done: false, value: { ...event, delta: await gunzip(event.delta), deltaEncoded: false } };
    }
    return { done: false, value: event };
  }
  async return(value) {
    if (!this.#ended) this.leave();
    this.end();
    this.#events = [];
    this.changed();
    return { done: true, value };
  }
  [Symbol.asyncIterator]() {
    return this;
  }
}

/** last reports whether an event is the one that ends its request (E20). */
function last(event) {
  if (event.type === undefined) return event.stopReason !== undefined && event.stopReason !== 'stream_start';
  return event.type === 'turn-completed' || (event.type === 'error' && event.turnID === undefined);
}

export function useOperator(options = {}) {
  const ref = options.ref ?? plainRef;
  const isConnected = ref(false);
  const requests = new Map(); // id → { queue } or { resolve, reject }
  let transport = null;
  let address = '';
  let reopening = null; // for all streams that were dropped
  let singles = 0; // requests that wait for one answer: the socket is not paused then
  let paused = false;

  function flow() {
    let waiting = 0;
    for (const r of requests.values()) waiting = Math.max(waiting, r.queue?.length ?? 0);
    const pause = waiting > HIGH_WATER && singles === 0;
    if (!transport || pause === paused) return;
    if (pause || waiting < HIGH_WATER / 2 || singles > 0) {
      paused = pause;
      pause ? transport.pause() : transport.resume();
    }
  }

  function receive(text) {
    let event;
    try {
      event = JSON.parse(text);
    } catch {
      return; // not for us: what cannot be read has no request
    }
    const r = requests.get(event.id);
    if (!r) return;
    if (r.queue) {
      r.queue.push(event);
      if (last(event)) {
        requests.delete(event.id);
        r.queue.end();
      }
      return;
    }
    if (r.until && !r.until(event)) return;
    requests.delete(event.id);
    r.resolve(event);
  }

  function closed(why) {
    transport = null;
    paused = false;
    isConnected.value = false;
    const waiting = [...requests.values()];
    requests.clear();
    for (const r of waiting) r.queue ? r.queue.end(lost(why)) : r.reject(lost(why));
    options.onClose?.(why);
  }

  async function open(addr) {
    let mine = null; // a connection that was left tells its end later, when there may be another
    const on = { message: (text) => mine === transport && receive(text), close: (why) => mine === transport && closed(why) };
    const WS = options.WebSocket ?? globalThis.WebSocket;
    const viaWebSocket = /^wss?:/.test(addr) || (!isNode && !/^tcp:/.test(addr));
    if (viaWebSocket && !WS) throw new TypeError('this program has no WebSocket; connect to HOST:PORT, or give one as options.WebSocket');
    mine = await (viaWebSocket ? openWebSocket(addr, on, WS) : openTCP(addr, on));
    transport?.close(); // of somebody who opened one at the same time
    transport = mine;
    address = addr;
    isConnected.value = true;
  }

  /** connect tries three times: at once, after 1 s, after 2 s more. */
  async function connect(addr, { signal, retries = options.retries ?? TRIES, delay = options.retryDelay ?? FIRST_DELAY } = {}) {
    if (transport) await disconnect();
    for (let i = 0; ; i++) {
      signal?.throwIfAborted();
      try {
        return await open(addr);
      } catch (error) {
        if (error instanceof TypeError || i >= retries - 1) throw error;
        await sleep(delay * 2 ** i, signal);
      }
    }
  }

  async function disconnect() {
    const t = transport;
    if (!t) return;
    t.close();
    closed('disconnected');
  }

  function post(message) {
    if (!transport) throw lost('not connected');
    const metadata = { ...options.metadata, ...message.metadata };
    if (options.token) metadata.token = options.token;
    const whole = { version: '1.0', ...message };
    if (Object.keys(metadata).length > 0) whole.metadata = metadata;
    transport.send(JSON.stringify(whole));
  }

  /** one sends a request and resolves with the event that until picks, by default the first. */
  function one(message, { signal, until } = {}) {
    const id = message.id ?? newID();
    signal?.throwIfAborted();
    return new Promise((resolve, reject) => {
      const settle = (f) => (value) => {
        signal?.removeEventListener('abort', aborted);
        singles--;
        requests.delete(id);
        flow();
        f(value);
      };
      const r = { resolve: settle(resolve), reject: settle(reject), until };
      const aborted = () => {
        cancel(id);
        r.reject(signal.reason);
      };
      requests.set(id, r);
      singles++;
      flow();
      signal?.addEventListener('abort', aborted, { once: true });
      try {
        post({ ...message, id });
      } catch (error) {
        r.reject(error);
      }
    });
  }

  /** ask is one() that turns an error into an exception. */
  async function ask(message, o) {
    const event = await one(message, o);
    if (event.type === 'error') throw new OperatorError(event);
    return event;
  }

  /** send resolves with the event that ends the request. */
  const send = (message, o) => one(message, { ...o, until: message.type === 'dispatch' && message.content !== undefined ? last : undefined });

  /** cancel ends a request of this connection; its own end tells how. */
  function cancel(requestID) {
    if (!transport) return;
    try {
      post({ type: 'cancel', id: newID(), requestID });
    } catch {
      // the connection went meanwhile, and the request with it
    }
  }

  /** follow sends a request and returns the events that answer it. Leaving the loop, or the signal, cancels it (E15). */
  function follow(message, { signal, stop = true } = {}) {
    const id = message.id ?? newID();
    signal?.throwIfAborted();
    const leave = () => {
      requests.delete(id);
      if (stop) cancel(id);
    };
    const queue = new EventQueue(flow, leave, () => signal?.removeEventListener('abort', aborted));
    const aborted = () => {
      leave();
      queue.end(signal.reason);
    };
    requests.set(id, { queue });
    signal?.addEventListener('abort', aborted, { once: true });
    try {
      post({ ...message, id });
    } catch (error) {
      requests.delete(id);
      throw error;
    }
    return queue;
  }

  const request = (req) => ({ ...req, type: 'dispatch' });

  async function dispatchStream(req, o) {
    return follow(request(req), o);
  }

  async function dispatch(req, { signal } = {}) {
    let sessionID = req.sessionID;
    let failed = null;
    let end = null;
    for await (const event of follow(request(req), { signal })) {
      if (event.type === 'turn-started') sessionID = event.sessionID;
      if (event.type === 'error') failed = event;
      if (event.type === 'turn-completed') end = event;
    }
    if (!end) throw new OperatorError(failed ?? { code: 'STREAM_ERROR', message: 'the turn did not end' });
    const session = await getSession(sessionID, { signal });
    const result = { sessionID, agentID: req.agentID, content: end.content, turns: session.turns, usage: session.usage, stopReason: end.stopReason };
    if (end.stopReason === 'error' && failed) result.error = new OperatorError(failed);
    return result;
  }

  async function getSession(sessionID, o) {
    return (await ask({ type: 'getSession', sessionID }, o)).session;
  }

  async function listSessions(agentID, o) {
    const all = [];
    let cursor;
    do {
      const page = await ask({ type: 'listSessions', ...(agentID && { agentID }), ...(cursor && { cursor }) }, o);
      all.push(...page.sessions);
      cursor = page.cursor;
    } while (cursor);
    return all;
  }

  async function deleteSession(sessionID, o) {
    await ask({ type: 'deleteSession', sessionID }, o);
  }

  /** confirm answers a confirmation-request event: decision is allow, deny, allow_always or deny_always. */
  async function confirm(sessionID, confirmationID, decision, { comment, grant, signal } = {}) {
    await ask({ type: 'confirm', sessionID, confirmationID, decision, ...(comment && { comment }), ...(grant && { grant }) }, { signal });
  }

  // S4: results in place of events.

  function failure(result) {
    if (result.stopReason !== 'error') return null;
    const block = result.content.findLast?.((b) => b.type === 'error') ?? { message: 'the request failed' };
    return new OperatorError({ code: block.code ?? 'INTERNAL_ERROR', message: block.message });
  }

  /** query resolves with the whole result; a request that was refused rejects. */
  async function query(req, o) {
    const result = await one({ ...req, type: 'query' }, o);
    const error = failure(result);
    if (error && result.turns.length === 0) throw error;
    return result;
  }

  const sendContextRequest = (context, o) => one({ type: 'send_context_request', context }, o);

  /** begin is S4's dispatch: it resolves with the session's id as soon as the request was taken. */
  async function begin(req, o) {
    const result = await one({ ...req, type: 'dispatch' }, o);
    const error = failure(result);
    if (error) throw error;
    return result.sessionID;
  }

  /** results follows a session's turn; it goes on after a lost connection, from 1 s later (C6, C7). */
  async function* results(sessionID, { lastTurnID, signal } = {}) {
    for (;;) {
      try {
        for await (const result of follow({ type: 'stream', sessionID, ...(lastTurnID && { lastTurnID }) }, { signal, stop: false })) {
          yield result;
          if (last(result)) return;
        }
        return;
      } catch (error) {
        if (error?.code !== 'STREAM_ERROR' || !address) throw error;
      }
      await sleep(options.resumeDelay ?? RESUME_DELAY, signal);
      if (!transport) await (reopening ??= connect(address).finally(() => (reopening = null)));
    }
  }

  newest = {
    connect, disconnect, isConnected, send, dispatch, dispatchStream, getSession, listSessions, deleteSession, // S3
    cancel, confirm,
    query, sendContextRequest, begin, results, // S4
  };
  return newest;
}

/**
 * useAgentSession holds one conversation: the turns that are over, the one under way, whether something is awaited. The
 * functions of S3 change it event by event; run() does so for a whole stream. dispatch, stream, loading and result are S4's.
 * Without options.operator it uses the one that was made last, as S4's example does, or else one of its own.
 */
export function useAgentSession(agentID, options = {}) {
  const ref = options.ref ?? plainRef;
  const wrap = options.reactive ?? ((x) => x);
  const state = wrap({ turns: [], currentTurn: null, isLoading: false, error: null, sessionID: options.sessionID });
  const loading = ref(false);
  const result = ref(null);
  const listeners = new Set();
  const changed = () => listeners.forEach((f) => f());
  async function operator() {
    const given = options.operator ?? newest;
    if (given) return given;
    const own = useOperator();
    await own.connect(ADDRESS);
    return own;
  }
  const turn = () => {
    if (!state.currentTurn) startTurn('');
    return state.currentTurn;
  };

  function startTurn(id, request = { content: '' }) {
    state.currentTurn = wrap({ id, request, response: { content: '' }, toolCalls: [] });
    state.isLoading = true;
    state.error = null;
    changed();
  }
  function setResponseContent(content) {
    turn().response.content = content;
    changed();
  }
  function appendResponseChunk(delta) {
    turn().response.content += delta;
    changed();
  }
  function addToolCard(event) {
    const { toolID: id, name, input } = event;
    turn().toolCalls.push({ id, name, input });
    changed();
  }
  function updateToolResult(toolID, output, { error, duration } = {}) {
    const card = turn().toolCalls.find((t) => t.id === toolID);
    if (!card) return;
    card.output = output;
    if (error !== undefined) card.error = error;
    if (duration !== undefined) card.duration = duration;
    changed();
  }
  function completeTurn(event) {
    const t = turn();
    if (event.turnID) t.id = event.turnID;
    if (event.content !== undefined) t.response.content = event.content;
    t.usage = event.usage;
    t.stopReason = event.stopReason;
    t.timestamp = event.timestamp;
    state.turns.push(t);
    state.currentTurn = null;
    state.isLoading = false;
    changed();
  }
  /** setError: one inside a turn leaves the turn to its end; any other ends the waiting. */
  function setError(error) {
    state.error = error;
    if (error.turnID === undefined) state.isLoading = false;
    changed();
  }

  /** apply changes the state by one event; unknown ones are ignored (C13). */
  function apply(event) {
    switch (event.type) {
      case 'turn-started': return startTurn(event.turnID, state.currentTurn?.request);
      case 'response-block': return setResponseContent(event.content);
      case 'response-chunk': return appendResponseChunk(event.delta);
      case 'tool-call': return addToolCard(event);
      case 'tool-result': return updateToolResult(event.toolID, event.output, event);
      case 'tool-results-batch': return event.results.forEach((r) => updateToolResult(r.toolID, r.output, r));
      case 'turn-completed': return completeTurn(event);
      case 'error': return setError(event);
    }
  }

  /** run dispatches content and applies what comes; each sees every event first. */
  async function run(request, { signal, each } = {}) {
    const req = typeof request === 'string' ? { content: request } : request;
    startTurn('', { content: req.content });
    try {
      const events = await (await operator()).dispatchStream({ agentID, ...(state.sessionID && { sessionID: state.sessionID }), ...req }, { signal });
      for await (const event of events) {
        if (event.sessionID) state.sessionID = event.sessionID;
        each?.(event);
        apply(event);
      }
    } catch (error) {
      setError({ code: error.code ?? 'STREAM_ERROR', message: error.message, recoverable: true });
      throw error;
    }
  }

  async function waiting(work) {
    loading.value = true;
    try {
      return await work();
    } finally {
      loading.value = false;
      changed();
    }
  }

  const withAgent = (req) => ({ ...(agentID && { agentID }), ...req });

  /** dispatch resolves with the whole result. */
  const dispatch = (req, o) =>
    waiting(async () => (result.value = await (await operator()).query(withAgent(req), o)));

  /** stream resolves with the session's id once the request was taken; result then follows, and loading ends with the turn. */
  async function stream(req, { signal, onResult, onError } = {}) {
    loading.value = true;
    let sessionID, from;
    try {
      from = await operator();
      sessionID = await from.begin(withAgent(req), { signal });
    } catch (error) {
      loading.value = false;
      throw error;
    }
    waiting(async () => {
      for await (const r of from.results(sessionID, { signal })) {
        result.value = r;
        onResult?.(r);
        changed();
      }
    }).catch((error) => {
      setError({ code: error.code ?? 'STREAM_ERROR', message: error.message, recoverable: true });
      onError?.(error);
    });
    return sessionID;
  }

  /** load shows a session that is stored. */
  async function load(sessionID, o) {
    const session = await (await operator()).getSession(sessionID, o);
    state.turns = session.turns;
    state.currentTurn = null;
    state.isLoading = false;
    state.error = null;
    state.sessionID = sessionID;
    changed();
    return session;
  }

  return {
    startTurn, setResponseContent, appendResponseChunk, addToolCard, updateToolResult, completeTurn, setError, apply, run, load,
    dispatch, stream, loading, result,
    get turns() { return state.turns; },
    get currentTurn() { return state.currentTurn; },
    get isLoading() { return state.isLoading; },
    get error() { return state.error; },
    get sessionID() { return state.sessionID; },
    /** subscribe calls f after each change, where there is no reactive(); it returns what ends that. */
    subscribe(f) {
      listeners.add(f);
      return () => listeners.delete(f);
    },
  };
}
