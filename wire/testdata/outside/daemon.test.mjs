// A real daemon with a scripted model, spoken to by the page alone.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { Client, frame, maxFrame, snapshot } from "./protocol.mjs";
import { Shell } from "./shell.mjs";

const program = new URL("../../../bin/sublet", import.meta.url).pathname;
const root = realpathSync(mkdtempSync("/tmp/sl"));
const env = {
  ...process.env, HOME: root, SUBLET_RUNTIME_DIR: `${root}/run`, SUBLET_STATE_DIR: `${root}/state`, SUBLET_CONFIG: `${root}/config.toml`,
};
const sublet = (...args) => execFileSync(program, args, { env, encoding: "utf8" });
const bash = (command) => ({ tool_calls: [{ name: "bash", arguments: { command } }] });

before(() => {
  mkdirSync(`${root}/work`);
  writeFileSync(`${root}/config.toml`, `model = "test/m"\n[provider.test]\nkind = "scripted"\nscript = "${root}/script.json"\n`);
  writeFileSync(`${root}/script.json`, JSON.stringify([
    { match: "talk", steps: [{ text: "one two three four five six seven eight nine ten", chunk_bytes: 4 }] },
    { match: "run", steps: [bash("echo from $PWD; exit 3"), { text: "it said so" }] },
    { match: "move", steps: [bash("cd /"), { text: "moved" }] },
    { match: "clean", steps: [bash("touch made && rm made"), { text: "cleaned" }] },
    { match: "hang", steps: [bash("sleep 100"), { text: "never" }] },
    { match: "count", steps: [{ tool_calls: [{ name: "mcp__counter__add", arguments: { by: 2 } }] }, { text: "counted" }] },
    { match: "wait", steps: [{ wait_file: `${root}/gate`, text: "never" }] },
  ]));
  sublet("daemon", "start");
});

after(() => {
  sublet("daemon", "stop", "--drain", "0s");
  rmSync(root, { recursive: true });
});

const connect = () => Client.connect(`${root}/run/daemon.sock`);

// lender is a window: it has a shell, and somebody who answers.
async function lender(answer = "deny", more = []) {
  const c = await connect();
  const shell = new Shell(c, `${root}/work`);
  c.on("ConfirmationRequest", (m) =>
    c.send("ConfirmationResponse", { confirmation_id: m.confirmation_id, decision: answer, grant: null, edited_command: null, comment: "" }));
  await c.hello({ capabilities: ["shell", "confirm", "restore", ...more], cwd: shell.cwd });
  shell.tell();
  return { c, shell };
}

async function during(client, work) {
  try {
    await work(client.c ?? client, client.shell);
  } finally {
    (client.c ?? client).close();
  }
}

const inOrder = (numbers, from) => assert.deepEqual(numbers, numbers.map((_, i) => from + 1 + i), "numbers have a gap or a repeat");

test("a turn: text in pieces, one end, numbers without a gap (section 6)", async () => {
  await during(await connect(), async (c) => {
    const ready = await c.hello();
    assert.equal(ready.protocol, 1);
    assert.equal(ready.limits.frame, maxFrame);
    assert.ok(ready.daemon.pid > 0 && ready.models[0].name === "test/m");
    const id = c.ask("talk to me");
    const end = await c.complete(id);
    assert.equal(end.status, "success");
    const said = c.received.filter((m) => m.kind === "AgentStreamChunk" && m.body.chunk.type === "text").map((m) => m.body.chunk.text);
    assert.equal(said.join(""), "one two three four five six seven eight nine ten");
    assert.equal((await c.next("TurnStarted")).request_id, id);
    inOrder(c.numbers(), 0);
  });
});

test("a lent shell: lease, fingerprint, output, exit code, release (section 9)", async () => {
  await during(await lender(), async (c, shell) => {
    const end = await c.complete(c.ask("run it"));
    assert.equal(end.status, "success");
    const result = await c.next("CommandResult");
    assert.equal(result.exit_code, 3);
    assert.match(Buffer.from(result.output).toString(), new RegExp(`from ${root}/work`));
    assert.deepEqual(shell.ran, ["echo from $PWD; exit 3"]);
    assert.equal(shell.held, null);
  });
});

test("what a command changed in the shell is put back, also by another client of the session", async () => {
  await during(await lender("allow"), async (c, shell) => {
    await c.complete(c.ask("move away"));
    assert.equal(shell.cwd, "/");
    await during(await connect(), async (other) => {
      await other.hello({ session_id: c.ready.session.id });
      const request_id = other.id();
      other.send("UndoRequest", { request_id, session_id: null, what: "shell" });
      const end = await other.complete(request_id);
      assert.equal(end.status, "success", end.summary);
      assert.match(end.summary, new RegExp(`moved to ${root}/work`));
    });
    assert.equal(shell.cwd, `${root}/work`);
  });
});

for (const [answer, ran] of [["allow", 1], ["deny", 0]])
  test(`a question is asked before the lease, and answered with ${answer}`, async () => {
    await during(await lender(answer), async (c, shell) => {
      await c.complete(c.ask("clean up"));
      const question = await c.next("ConfirmationRequest");
      assert.equal(question.command, "touch made && rm made");
      assert.ok(question.verdict.reasons.length > 0 && question.expires_at_ms === null);
      const resolved = await c.next("ConfirmationResolved");
      assert.equal(resolved.decision, answer);
      assert.equal(shell.ran.length, ran);
      if (!ran) assert.ok(!c.received.some((m) => m.kind === "AcquireShellLease"), "a lease was asked for what was denied");
    });
  });

test("who attaches while a question waits is asked, too, and whoever wants nothing old gets nothing old (section 6)", async () => {
  await during(await connect(), async (c) => {
    await c.hello({ capabilities: ["confirm"] });
    const id = c.ask("clean up");
    const { confirmation_id, seq } = await c.next("ConfirmationRequest");
    for (const after_seq of [-1, seq])
      await during(await connect(), async (late) => {
        const ready = await late.hello({ capabilities: ["confirm"], session_id: c.ready.session.id, after_seq });
        const again = await late.next("ConfirmationRequest");
        assert.deepEqual([again.confirmation_id, again.seq], [confirmation_id, seq]);
        assert.ok(late.received.every(({ kind, body }) => !body.seq || kind === "ConfirmationRequest" || body.seq > ready.session.last_seq));
      });
    c.send("ConfirmationResponse", { confirmation_id, decision: "deny", grant: null, edited_command: null, comment: "" });
    await c.complete(id);
  });
});

test("a cancel names one thing: both ids are refused, a turn that is not known is ignored (section 8)", async () => {
  await during(await connect(), async (c) => {
    await c.hello();
    const request_id = c.ask("wait for me");
    const { turn_id } = await c.next("TurnStarted");
    c.send("CancelRequest", { turn_id, request_id, reason: "" });
    const e = await c.next("Error", (m) => m.code === "invalid_message");
    assert.equal(e.request_id, "");
    c.send("CancelRequest", { turn_id: "none", request_id: null, reason: "" });
    c.send("CancelRequest", { turn_id, request_id: null, reason: "" });
    assert.equal((await c.complete(request_id)).status, "cancelled");
    assert.deepEqual(c.received.filter((m) => m.kind === "Error").map((m) => m.body.code), ["invalid_message", "cancelled"]);
  });
});

test("a second connection of a lender replaces the first one, which is told why (section 8)", async () => {
  const first = await lender("allow");
  await during(await lender("allow"), async (c, shell) => {
    const e = await first.c.next("Error", (m) => m.code === "duplicate_id");
    assert.equal(e.details.client_pid, String(process.pid));
    await first.c.end();
    assert.equal((await c.complete(c.ask("run it"))).status, "success");
    assert.deepEqual([shell.ran.length, first.shell.ran.length], [1, 0]);
  });
});

test("who cannot be asked is refused what would need a question", async () => {
  await during(await connect(), async (c) => {
    await c.hello();
    const end = await c.complete(c.ask("clean up"));
    assert.equal(end.refused.length, 1);
  });
});

test("cancel reaches the command in the shell, and the turn ends once", async () => {
  await during(await lender("allow"), async (c, shell) => {
    const request_id = c.ask("hang about");
    await c.next("ExecuteLeasedCommand");
    c.send("CancelRequest", { turn_id: null, request_id, reason: "enough" });
    assert.equal((await c.complete(request_id)).status, "cancelled");
    assert.equal((await c.next("CancelLeasedCommand")).reason, "user_abort");
    assert.equal(shell.running, null);
    assert.equal(c.received.filter((m) => m.kind === "AgentComplete").length, 1);
  });
});

test("who waits for the shell is told to its owner", async () => {
  await during(await lender("allow", ["queue"]), async (c) => {
    await during(await connect(), async (other) => {
      await other.hello();
      const run = (command) => {
        const request_id = other.id();
        other.send("LeaseRunRequest", { request_id, client_pid: process.pid, command, cwd: "", wait_ms: 0, timeout_ms: 0 });
        return request_id;
      };
      const first = run("sleep 300");
      await c.next("ExecuteLeasedCommand");
      run("echo second");
      const { waiting, more } = await c.next("ShellQueueChanged");
      assert.deepEqual([waiting.map((w) => w.purpose), more], [["echo second"], 0]);
      other.send("CancelRequest", { turn_id: null, request_id: first, reason: "" });
      await c.next("ShellQueueChanged", (m) => m.waiting.length === 0);
    });
  });
});

test("who has the shell is told when somebody asks", async () => {
  await during(await lender("allow", ["use"]), async (c) => {
    c.on("ShellUseRequest", (m) => c.send("ShellUseReply", { nonce: m.nonce, holder: "user", held_ms: 1500 }));
    c.send("StatusRequest", { request_id: "who", shells: true });
    const { leases } = await c.next("StatusReply", (m) => m.request_id === "who");
    const own = leases.find((l) => l.client_pid === process.pid);
    assert.deepEqual([own.holder, own.held_ms, own.lease_id, own.silent], ["user", 1500, "", false]);
  });
});

// A server of the Model Context Protocol with one tool, in a few lines.
const counter = `
let n = 0;
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const result = {
    initialize: () => ({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "counter", version: "1" } }),
    "tools/list": () => ({ tools: [{ name: "add", inputSchema: { type: "object", properties: { by: { type: "number" } } } }] }),
    "tools/call": () => ({ content: [{ type: "text", text: process.env.SAYS + (n += params.arguments.by) }] }),
  }[method];
  console.log(JSON.stringify(result ? { jsonrpc: "2.0", id, result: result() } : { jsonrpc: "2.0", id, error: { code: -32601, message: "no such method" } }));
});`;

test("a client's MCP server is told, and its calls are asked for (section 8)", async () => {
  await during(await connect(), async (c) => {
    c.on("ConfirmationRequest", (m) =>
      c.send("ConfirmationResponse", { confirmation_id: m.confirmation_id, decision: "allow", grant: null, edited_command: null, comment: "" }));
    const ready = await c.hello({
      capabilities: ["confirm"],
      mcp_servers: [{ name: "counter", command: process.execPath, args: ["-e", counter], env: { SAYS: "it is " }, url: "", headers: {} }],
    });
    assert.ok(ready.capabilities.includes("mcp_servers"));
    for (const [i, said] of ["it is 2", "it is 4"].entries()) {
      const id = c.ask("count on");
      assert.equal((await c.complete(id)).status, "success");
      const result = c.received.filter((m) => m.kind === "CommandResult")[i].body;
      assert.equal(Buffer.from(result.output).toString(), said);
      const question = c.received.filter((m) => m.kind === "ConfirmationRequest")[i].body;
      assert.equal(question.tool, "mcp__counter__add");
      assert.equal(question.arguments, '{"by":2}');
      assert.equal(question.verdict.level, "high");
      assert.deepEqual(question.grants.map((g) => g.scope), ["session"]);
    }
    const told = c.received.filter((m) => m.kind === "AgentStreamChunk" && m.body.chunk.type === "notice").map((m) => m.body.chunk.text);
    assert.equal(told.length, 1);
    assert.match(told[0], /^The client's MCP server counter is in use: /);
  });
});

test("a client that comes back gets what it missed, whatever it had seen", async () => {
  await during(await connect(), async (c) => {
    await c.hello();
    const end = await c.complete(c.ask("talk to me"));
    for (let seen = 0; seen <= end.seq; seen++)
      await during(await connect(), async (late) => {
        await late.hello({ session_id: c.ready.session.id, after_seq: seen });
        if (seen < end.seq) await late.complete(end.request_id);
        inOrder(late.numbers(), seen);
        assert.equal(late.numbers().length, end.seq - seen);
      });
  });
});

test("a daemon that was killed: the turn has its end in the next one, and nothing that was shown is gone", async () => {
  const c = await connect();
  await c.hello();
  const id = c.ask("wait for me");
  const begun = await c.next("TurnStarted");
  process.kill(c.ready.daemon.pid, "SIGKILL");
  await c.end();
  assert.ok(!c.received.some((m) => m.kind === "Error"), "it said farewell");
  sublet("daemon", "start");
  await during(await connect(), async (late) => {
    const ready = await late.hello({ session_id: c.ready.session.id, after_seq: begun.seq, leases: [] });
    assert.notEqual(ready.daemon.pid, c.ready.daemon.pid);
    const end = await late.complete(id);
    assert.equal(end.status, "error");
    assert.equal((await late.refused(id)).message, "daemon restarted");
    inOrder(late.numbers(), begun.seq);
  });
});

test("what is wrong is answered, and the connection goes on (section 11)", async () => {
  await during(await connect(), async (c) => {
    c.send("StatusRequest", { request_id: "early" });
    assert.match((await c.refused("early")).hint, /EnvSnapshot/);
    await c.hello();
    c.send("FromTheFuture", { anything: 1 });
    const unknown = await c.next("Error", (m) => m.code === "unknown_kind");
    assert.equal(unknown.details.kind, "FromTheFuture");
    c.send("StatusRequest", { request_id: 7 });
    const wrong = await c.next("Error", (m) => m.code === "invalid_message" && m.details.field);
    assert.equal(wrong.details.kind, "StatusRequest");
    c.send("StatusRequest", { request_id: "s", a_field_of_tomorrow: { deep: [1] } });
    assert.equal((await c.next("StatusReply")).state, "idle");
    c.send("StatusRequest", { request_id: "s" });
    assert.equal((await c.next("Error", (m) => m.code === "duplicate_id")).request_id, "s");
    c.send("AgentRequest", { request_id: "n", agent: "nobody", prompt: "" });
    assert.equal((await c.refused("n")).code, "not_found_agent");
    c.send("Ready", {});
    await c.next("Error", (m) => m.message === "only the daemon may send Ready");
    assert.ok(!c.closed);
  });
});

test("limits are named: running turns, requests a second", async () => {
  await during(await connect(), async (c) => {
    const { limits } = await c.hello();
    const waiting = Array.from({ length: limits.running_turns }, () => c.ask("wait for me"));
    const over = await c.refused(c.ask("talk"));
    assert.equal(over.code, "too_many_queries");
    assert.equal(over.details.limit, String(limits.running_turns));
    for (const request_id of waiting) c.send("CancelRequest", { turn_id: null, request_id, reason: "" });
    for (let i = 0; i < 2 * limits.requests_per_second; i++) c.send("StatusRequest", { request_id: `many-${i}` });
    const rate = await c.next("Error", (m) => m.code === "rate_limited");
    assert.equal(rate.details.requests_per_second, String(limits.requests_per_second));
    await c.complete(waiting[0]);
  });
});

test("a payload over the limit is refused by name, before it is there (section 3)", async () => {
  for (const hello of [false, true]) {
    const c = await connect();
    const limit = hello ? (await c.hello()).limits.frame : 4 * 1024 * 1024;
    const header = Buffer.alloc(4);
    header.writeUInt32BE(limit + 1);
    c.socket.write(header);
    const e = await c.next("Error");
    assert.equal(e.code, "too_large");
    assert.equal(e.details.limit, String(limit));
    c.socket.end();
    await c.end();
  }
  const c = await connect();
  c.socket.write(Buffer.alloc(4));
  assert.equal((await c.next("Error")).code, "invalid_message");
  c.socket.end();
  await c.end();
});

test("no common version: both ranges are named, and the connection ends (section 5)", async () => {
  for (const range of [[2, 9], [0, 0]]) {
    const c = await connect();
    c.send("EnvSnapshot", { ...snapshot(), protocol_min: range[0], protocol_max: range[1] });
    const e = await c.next("Error");
    assert.equal(e.code, "version");
    assert.deepEqual([e.details.protocol_min, e.details.protocol_max], ["1", "1"]);
    assert.notEqual(e.hint, "");
    await c.end();
  }
  await during(await connect(), async (c) => {
    assert.equal((await c.hello({ protocol_min: 1, protocol_max: 7 })).protocol, 1);
  });
});

test("frames may come in any pieces", async () => {
  await during(await connect(), async (c) => {
    const bytes = frame("EnvSnapshot", snapshot());
    for (const byte of bytes) c.socket.write(Buffer.from([byte]));
    await c.next("Ready");
    c.socket.write(Buffer.concat(["a", "b", "c"].map((request_id) => frame("StatusRequest", { request_id }))));
    for (const id of ["a", "b", "c"]) await c.next("StatusReply", (m) => m.request_id === id);
  });
});

test("sessions: listed, read, exported, deleted", async () => {
  await during(await connect(), async (c) => {
    await c.hello();
    await c.complete(c.ask("talk to me"));
    const request = async (op, more = {}) => {
      const request_id = c.id();
      c.send("SessionRequest", {
        request_id, op, session_id: null, name: "", query: "", path: "", format: "", cursor: "", limit: 0, after_seq: 0, include_history: true,
        include_blocks: true, ...more,
      });
      return c.next("SessionReply", (m) => m.request_id === request_id);
    };
    const id = c.ready.session.id;
    assert.ok((await request("list")).sessions.some((s) => s.id === id));
    const got = await request("get");
    assert.deepEqual(got.events.map((e) => e[1].seq), got.events.map((_, i) => i + 1));
    assert.match((await request("export", { format: "markdown" })).text, /talk to me/);
    assert.equal((await request("search", { query: "seven" })).hits.length > 0, true);
    await request("delete");
    assert.ok(!(await request("list")).sessions.some((s) => s.id === id));
  });
});
