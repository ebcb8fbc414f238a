// Frames, payloads, the JSON view and one connection, as PROTOCOL.md has them.
import { createHash, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import net from "node:net";
import { decode as unpack, encode as pack } from "@msgpack/msgpack";

const page = readFileSync(new URL("../../PROTOCOL.md", import.meta.url), "utf8");

// The fields whose JSON text is bin in msgpack: the page says so behind their names, in tables and in sentences.
export const binary = new Set([...page.matchAll(/`(\w+)`(?: \||(?:, `\w+`)*) bin\b/g)].map((m) => m[1]));

// The kinds of section 7, with their directions and marks.
export const kinds = new Map(
  [...page.matchAll(/^\| `(\w+)` \| ([→←↔]) \|\s*([RE]?)\s*\|/gm)].map((m) => [m[1], { direction: m[2], request: m[3] === "R" }]),
);

// The codes of section 11.
export const codes = [...page.split("## 11. Error codes")[1].split("## 12.")[0].matchAll(/^\| `([a-z_]+)` \|/gm)].map((m) => m[1]);

export const maxFrame = 16 * 1024 * 1024;
const integers = { useBigInt64: true }; // an int has 64 bits

// The library writes as float what is over 32 bits and no BigInt, and reads everything over 32 bits as BigInt.
function each(value, f) {
  if (Array.isArray(value)) return value.map((v) => each(v, f));
  if (value === null || typeof value !== "object" || value instanceof Uint8Array) return f(value);
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, each(v, f)]));
}
const widen = (v) => (Number.isSafeInteger(v) && (v > 0xffffffff || v < -0x80000000) ? BigInt(v) : v);
const narrow = (v) => (typeof v === "bigint" && Number.isSafeInteger(Number(v)) ? Number(v) : v);

export function frame(kind, body) {
  const payload = pack(each([kind, body], widen), integers);
  const out = Buffer.alloc(4 + payload.length);
  out.writeUInt32BE(payload.length);
  out.set(payload, 4);
  return out;
}

export function parse(payload) {
  const value = each(unpack(payload, integers), narrow);
  if (!Array.isArray(value) || value.length !== 2 || typeof value[0] !== "string") throw new Error("not [kind, body]");
  return { kind: value[0], body: value[1] };
}

// view is a message as section 13 shows it.
export function view({ kind, body }) {
  return { kind, ...fields(body) };
}

function fields(map) {
  const out = {};
  for (const [name, value] of Object.entries(map)) {
    if (value instanceof Uint8Array && text(value) === null) out[name + "_base64"] = Buffer.from(value).toString("base64");
    else out[name] = name === "events" && Array.isArray(value) ? value.map((e) => (e ? view({ kind: e[0], body: e[1] }) : e)) : plain(value);
  }
  return out;
}

function plain(value) {
  if (value instanceof Uint8Array) return text(value) ?? { base64: Buffer.from(value).toString("base64") };
  if (Array.isArray(value)) return value.map(plain);
  if (value !== null && typeof value === "object") return fields(value);
  return value;
}

function text(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

// unview is the way back: bin where the page says bin, and where the text was none.
export function unview({ kind, ...rest }) {
  return { kind, body: unfields(rest) };
}

function unfields(map) {
  const out = {};
  for (const [name, value] of Object.entries(map)) {
    if (name.endsWith("_base64")) out[name.slice(0, -"_base64".length)] = new Uint8Array(Buffer.from(value, "base64"));
    else if (binary.has(name) && typeof value === "string") out[name] = new TextEncoder().encode(value);
    else if (name === "events" && Array.isArray(value)) out[name] = value.map((e) => (e ? Object.values(unview(e)) : e));
    else out[name] = unplain(value);
  }
  return out;
}

function unplain(value) {
  if (Array.isArray(value)) return value.map(unplain);
  if (value === null || typeof value !== "object") return value;
  const keys = Object.keys(value);
  if (keys.length === 1 && keys[0] === "base64") return new Uint8Array(Buffer.from(value.base64, "base64"));
  return unfields(value);
}

// readJSON keeps integers whole that do not fit into a double.
export function readJSON(source) {
  const marked = source.replace(/"(?:[^"\\]|\\.)*"|-?\d{16,}(?![\d.eE])/g, (t) => (t[0] === '"' ? t : `{"$int":"${t}"}`));
  return JSON.parse(marked, (_, v) => (v && typeof v === "object" && typeof v.$int === "string" ? BigInt(v.$int) : v));
}

// fingerprint binds an approval to text, folder and shell state.
export function fingerprint(command, cwd, state) {
  return createHash("sha256").update(command).update("\0").update(cwd).update("\0").update(state).digest("hex");
}

const patience = 30_000;

// Client is one connection. Messages are kept in the order in which they came; next waits for one that matches.
export class Client {
  static connect(path) {
    return new Promise((resolve, reject) => {
      const socket = net.connect(path);
      socket.once("error", reject);
      socket.once("connect", () => resolve(new Client(socket)));
    });
  }

  constructor(socket) {
    this.socket = socket;
    this.received = [];
    this.waiting = new Set();
    this.handlers = new Map();
    this.closed = false;
    let buffer = Buffer.alloc(0);
    socket.on("data", (data) => {
      buffer = Buffer.concat([buffer, data]);
      while (buffer.length >= 4) {
        const length = buffer.readUInt32BE(0);
        if (length === 0 || length > maxFrame) return socket.destroy(new Error(`the daemon announced ${length} bytes`));
        if (buffer.length < 4 + length) break;
        this.receive(parse(buffer.subarray(4, 4 + length)));
        buffer = buffer.subarray(4 + length);
      }
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      this.closed = true;
      this.wake();
    });
  }

  receive(m) {
    if (m.kind === "Heartbeat" && !m.body.reply) {
      this.send("Heartbeat", { ...m.body, reply: true });
      return;
    }
    this.received.push(m);
    this.handlers.get(m.kind)?.(m.body);
    this.wake();
  }

  wake() {
    for (const look of [...this.waiting]) look();
  }

  on(kind, handler) {
    this.handlers.set(kind, handler);
  }

  send(kind, body) {
    this.socket.write(frame(kind, body));
  }

  // next returns the body of the first message of that kind that matches, whether it came already or not.
  next(kind, match = () => true) {
    return new Promise((resolve, reject) => {
      const done = (settle, value) => {
        clearTimeout(bound);
        this.waiting.delete(look);
        settle(value);
      };
      const fail = (why) => done(reject, new Error(`waiting for ${kind}: ${why}, after\n${this.story()}`));
      const look = () => {
        const m = this.received.find((m) => m.kind === kind && match(m.body));
        if (m) done(resolve, m.body);
        else if (this.closed) fail("the connection was closed");
      };
      const bound = setTimeout(() => fail("nothing came"), patience);
      this.waiting.add(look);
      look();
    });
  }

  end() {
    return new Promise((resolve, reject) => {
      const bound = setTimeout(() => reject(new Error("the connection stays open")), patience);
      const look = () => {
        if (!this.closed) return;
        clearTimeout(bound);
        this.waiting.delete(look);
        resolve();
      };
      this.waiting.add(look);
      look();
    });
  }

  close() {
    this.socket.destroy();
  }

  story() {
    return this.received.map((m) => JSON.stringify(view(m), (_, v) => (typeof v === "bigint" ? String(v) : v)).slice(0, 300)).join("\n");
  }

  id() {
    return randomUUID(); // the turns of other clients arrive with the ids that those chose
  }

  async hello(change = {}) {
    this.send("EnvSnapshot", { ...snapshot(), ...change });
    this.ready = await this.next("Ready");
    return this.ready;
  }

  // ask begins a turn and returns its request_id.
  ask(prompt, options = {}) {
    const request_id = this.id();
    this.send("AgentRequest", {
      request_id, session_id: null, agent: "", prompt, attachments: [],
      context: { cwd: process.cwd(), recent_commands: [], recent_output: null, open_files: [] },
      options: {
        model: "", max_tokens: null, temperature: null, thinking: "", tools: null, require_approval: null, mode: "", timeout_ms: 0, ...options,
      },
    });
    return request_id;
  }

  complete(request_id) {
    return this.next("AgentComplete", (m) => m.request_id === request_id);
  }

  refused(request_id) {
    return this.next("Error", (m) => m.request_id === request_id);
  }

  // numbers are those of the stored events that came, merged chunks counted as all they hold.
  numbers() {
    const live = ["tool_output", "tool_call_delta"];
    return this.received
      .filter(({ kind, body }) => body.seq > 0 && body.session_id && !(kind === "AgentStreamChunk" && live.includes(body.chunk.type)))
      .flatMap(({ kind, body }) => {
        const first = kind === "AgentStreamChunk" ? body.seq_first : body.seq;
        return Array.from({ length: body.seq - first + 1 }, (_, i) => first + i);
      });
  }
}

export function snapshot() {
  return {
    protocol_min: 1, protocol_max: 1, client: { name: "outside", version: "1", pid: process.pid }, capabilities: [],
    env: { PATH: process.env.PATH, HOME: process.env.HOME ?? "/" }, cwd: process.cwd(), shell: { path: "", version: "" },
    term: { cols: 80, rows: 24, pixel_width: 0, pixel_height: 0, term: "" }, credentials: {}, session_id: null, after_seq: 0, leases: [],
    mcp_servers: null,
  };
}
