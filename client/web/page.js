// The page of `sublet serve operator --ui`. Whatever comes from the server is put in as text, never as HTML: there is no
// innerHTML here, and the page's policy (trusted types) would refuse it.

import { useAgentSession, useOperator } from './operator.js';

const $ = (id) => document.getElementById(id);
const ARMED_AFTER = 500; // ms that a question stands there before it can be allowed: what was clicked before is no answer

/** el makes an element; children are elements or text. */
function el(name, { className, title, on = {}, ...attributes } = {}, ...children) {
  const e = document.createElement(name);
  if (className) e.className = className;
  if (title) e.title = title;
  for (const [k, v] of Object.entries(attributes)) e[k] = v;
  for (const [k, f] of Object.entries(on)) e.addEventListener(k, f);
  e.append(...children.map((c) => (c instanceof Node ? c : document.createTextNode(String(c)))));
  return e;
}

/** visible shows what could hide in a command: control characters, direction marks, characters without width (T3j). */
function visible(text) {
  return String(text).replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (c) =>
    c === '\n' || c === '\t' ? c : `‹U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}›`);
}

// The token comes behind the #, which no request carries, and is kept for this tab only.
const fromURL = new URLSearchParams(location.hash.slice(1)).get('token');
if (fromURL) {
  sessionStorage.setItem('token', fromURL);
  history.replaceState(null, '', location.pathname);
}

let operator;
let session;
let running = null; // AbortController of the turn under way, with its request's id
let asked = 0;
let phase = '';
let reconnecting = false;

function fail(error) {
  $('problem').textContent = error ? visible(error.message ?? error) : '';
  $('problem').hidden = !error;
}

async function connect() {
  const token = sessionStorage.getItem('token') ?? '';
  operator = useOperator({ ...(token && { token }), metadata: { approvals: true, extended: true }, onClose: dropped });
  try {
    await operator.connect('ws://' + location.host);
    await refresh();
  } catch (error) {
    if (error.details?.reason === 'unauthorized') {
      $('login').hidden = false;
      $('token').focus();
      if (token) fail('This token is not the server’s: it makes a new one at each start.');
      return;
    }
    fail(error);
    return;
  }
  $('login').hidden = true;
  fail(null);
  showLink(true);
  if (!session) begin();
}

function showLink(up) {
  $('link').textContent = up ? 'connected' : 'offline, trying again…';
  $('link').className = up ? '' : 'off';
  buttons(); // nothing can be sent meanwhile; what is written stays
}

async function dropped() {
  showLink(false);
  clearQuestions();
  if (reconnecting) return;
  reconnecting = true;
  for (let wait = 1000; ; wait = Math.min(2 * wait, 30000)) {
    await new Promise((r) => setTimeout(r, wait));
    try {
      await operator.connect('ws://' + location.host, { retries: 1 });
      await refresh();
      if (session?.sessionID) await session.load(session.sessionID).catch(() => {});
      showLink(true);
      fail(null);
      break;
    } catch (error) {
      if (error.details?.reason === 'unauthorized') { // another server, with another token
        $('login').hidden = false;
        break;
      }
    }
  }
  reconnecting = false;
}

/** begin shows a conversation: a new one, or one that is stored. */
async function begin(sessionID) {
  running?.abort(new Error('left'));
  const mine = useAgentSession($('agent').value, { operator });
  session = mine;
  mine.subscribe(() => mine === session && schedule());
  fail(null);
  clearQuestions();
  if (sessionID) {
    try {
      const stored = await mine.load(sessionID);
      if (stored.agentID && [...$('agent').options].some((o) => o.value === stored.agentID)) $('agent').value = stored.agentID;
    } catch (error) {
      fail(error);
    }
  }
  schedule();
  mark();
  $('content').focus();
}

async function refresh() {
  const list = await operator.listSessions();
  $('sessions').replaceChildren(
    ...list.map((s) => {
      const name = visible(s.name || s.title || s.sessionID);
      const row = el('div', { className: 'session' },
        el('button', { type: 'button', title: name, on: { click: () => begin(s.sessionID) } }, name),
        el('button', { type: 'button', className: 'remove', title: 'Delete this conversation', ariaLabel: `Delete ${name}`, on: { click: () => remove(s) } }, '✕'));
      row.dataset.id = s.sessionID;
      return row;
    }),
  );
  mark();
}

function mark() {
  for (const row of $('sessions').children) row.classList.toggle('now', !!session && row.dataset.id === session.sessionID);
}

async function remove(s) {
  if (!confirm(`Delete “${visible(s.title || s.sessionID)}” for good?`)) return;
  try {
    await operator.deleteSession(s.sessionID);
    await refresh();
    if (session?.sessionID === s.sessionID) begin();
  } catch (error) {
    fail(error);
  }
}

async function ask(content) {
  const mine = session;
  const control = new AbortController();
  control.id = `page-${Date.now()}-${++asked}`;
  running = control;
  buttons();
  fail(null);
  try {
    await mine.run({ id: control.id, agentID: $('agent').value, content }, {
      signal: control.signal,
      each: (event) => mine === session && notice(event),
    });
    if (mine === session && mine.error && !['TOOL_ERROR', 'CANCELLED'].includes(mine.error.code)) fail(mine.error);
  } catch (error) {
    if (!control.signal.aborted) fail(error);
  }
  if (running === control) running = null;
  phase = '';
  if (mine === session) clearQuestions();
  buttons();
  await refresh().catch(() => {}); // the connection went: dropped() sees to it
}

/** notice takes the events that a session has no place for. */
function notice(event) {
  switch (event.type) {
    case 'thinking':
      phase = event.message || event.phase;
      buttons();
      break;
    case 'notice':
      $('state').textContent = visible(event.message);
      break;
    case 'confirmation-request':
      question(event);
      break;
    case 'confirmation-resolved':
      document.querySelector(`[data-question="${CSS.escape(event.confirmationID)}"]`)?.remove();
      break;
  }
}

/** question asks. No is first and has the focus; yes cannot be given before the question was there for a moment (T3n). */
function question(q) {
  const sessionID = session.sessionID;
  const answer = (decision, grant) => async () => {
    for (const b of box.querySelectorAll('button')) b.disabled = true;
    try {
      await operator.confirm(sessionID, q.confirmationID, decision, { comment: comment.value, grant });
    } catch (error) {
      fail(error);
      for (const b of box.querySelectorAll('button')) b.disabled = false;
    }
  };
  const comment = el('input', { type: 'text', placeholder: 'Comment for the agent', ariaLabel: 'Comment for the agent' });
  const deny = el('button', { type: 'button', className: 'deny', on: { click: answer('deny') } }, 'No');
  const yes = [
    el('button', { type: 'button', className: 'allow', disabled: true, on: { click: answer('allow') } }, 'Yes, once'),
    ...q.grants.map((g) =>
      el('button', { type: 'button', disabled: true, title: visible(g.covers), on: { click: answer('allow_always', g) } }, `Always (${visible(g.scope)}: ${visible(g.rule)})`)),
  ];
  const box = el('article', { className: `question ${q.level}` },
    el('h2', {}, `${visible(q.agentID)} wants to ${q.command ? 'run this' : 'use ' + visible(q.tool)} (risk: ${visible(q.level)})`),
    el('pre', {}, visible(q.command || JSON.stringify(q.input, null, 2))),
    el('div', { className: 'meta' }, `in ${visible(q.cwd)}${q.reversible ? '' : ' · cannot be undone'}`),
    el('ul', {}, ...q.reasons.map((r) => el('li', {}, visible(r)))),
    ...(q.preview.content ? [el('pre', {}, visible(q.preview.content))] : []),
    el('div', { className: 'row' }, deny, ...yes, comment));
  box.dataset.question = q.confirmationID;
  $('questions').append(box);
  phase = 'waiting for your answer';
  buttons();
  $('turns').scrollTop = $('turns').scrollHeight; // the box takes its place
  deny.focus();
  setTimeout(() => yes.forEach((b) => (b.disabled = false)), ARMED_AFTER);
}

function clearQuestions() {
  $('questions').replaceChildren();
}

function buttons() {
  $('stop').hidden = !running;
  $('send').disabled = !!running || !operator?.isConnected.value;
  $('state').textContent = running ? visible(phase || 'waiting') + '…' : '';
}

let drawing = false;
function schedule() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    draw();
  });
}

// What was drawn for a turn that is over stays; only the one under way is drawn anew.
const drawn = new WeakMap();

function draw() {
  const box = $('turns');
  const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 80;
  const nodes = [];
  for (const t of session.turns) {
    if (!drawn.has(t)) drawn.set(t, turnNodes(t, true));
    nodes.push(...drawn.get(t));
  }
  if (session.currentTurn) nodes.push(...turnNodes(session.currentTurn, false));
  box.replaceChildren(...nodes);
  if (atEnd) box.scrollTop = box.scrollHeight;
  mark();
}

function turnNodes(t, over) {
  const nodes = [];
  if (t.request?.content) nodes.push(el('div', { className: 'asked' }, visible(t.request.content)));
  const answer = el('div', { className: 'turn' });
  for (const call of t.toolCalls ?? []) answer.append(card(call));
  answer.append(...said(t.response?.content ?? ''));
  if (over && t.stopReason && t.stopReason !== 'end_turn') answer.append(el('div', { className: 'meta failed' }, `ended: ${visible(t.stopReason)}`));
  if (over && t.usage) answer.append(el('div', { className: 'meta' }, `${t.usage.totalTokens} tokens`));
  nodes.push(answer);
  return nodes;
}

/** said is an answer's text; fenced code stands in boxes. */
function said(text) {
  const nodes = [];
  let plain = [];
  let code = null;
  const flush = () => {
    const s = plain.join('\n').trim();
    if (s) nodes.push(el('div', { className: 'said' }, visible(s)));
    plain = [];
  };
  for (const l of text.split('\n')) {
    if (/^ {0,3}(```|~~~)/.test(l)) {
      if (code) {
        nodes.push(el('pre', {}, el('code', {}, visible(code.join('\n')))));
        code = null;
      } else {
        flush();
        code = [];
      }
    } else (code ?? plain).push(l);
  }
  if (code) nodes.push(el('pre', {}, el('code', {}, visible(code.join('\n')))));
  flush();
  return nodes;
}

const open = new Set(); // ids of cards that the user opened

function card(call) {
  const input = call.input?.command ?? JSON.stringify(call.input ?? {});
  const state = call.error ? ['failed', 'bad'] : call.output === undefined ? ['running', ''] : ['done', 'ok'];
  const time = call.duration === undefined ? '' : ` ${call.duration} ms`;
  const c = el('details', { className: 'tool', open: open.has(call.id) },
    el('summary', {}, el('strong', {}, visible(call.name)), el('code', {}, visible(input)), el('span', { className: `mark ${state[1]}` }, state[0] + time)),
    el('pre', {}, visible(input)));
  if (call.output !== undefined) c.append(el('pre', {}, visible(typeof call.output === 'string' ? call.output : JSON.stringify(call.output, null, 2))));
  c.addEventListener('toggle', () => (c.open ? open.add(call.id) : open.delete(call.id)));
  return c;
}

$('ask').addEventListener('submit', (e) => {
  e.preventDefault();
  const content = $('content').value.trim();
  if (!content || running || !operator?.isConnected.value) return;
  $('content').value = '';
  ask(content);
});
$('content').addEventListener('keydown', (e) => {
  if (e.key === 'Enter' && !e.shiftKey && !e.isComposing) {
    e.preventDefault();
    $('ask').requestSubmit();
  }
});
$('stop').addEventListener('click', () => running && operator.cancel(running.id)); // its end comes as an event
$('new').addEventListener('click', () => begin());
$('login').addEventListener('submit', (e) => {
  e.preventDefault();
  sessionStorage.setItem('token', $('token').value.trim());
  $('token').value = '';
  connect();
});

connect();
