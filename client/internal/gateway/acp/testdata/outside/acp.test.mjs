// The protocol's own JavaScript client, which checks every message against its schema, and a real daemon with a scripted model.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import { after, before, test } from "node:test";
import { client, methods, ndJsonStream } from "@agentclientprotocol/sdk";

const program = new URL("../../../../../../bin/sublet", import.meta.url).pathname;
const root = realpathSync(mkdtempSync("/tmp/sl"));
const env = {
  ...process.env, HOME: root, SUBLET_RUNTIME_DIR: `${root}/run`, SUBLET_STATE_DIR: `${root}/state`, SUBLET_CONFIG: `${root}/config.toml`,
};

before(() => {
  mkdirSync(`${root}/work`);
  writeFileSync(`${root}/config.toml`, `model = "test/m"\n[provider.test]\nkind = "scripted"\nscript = "${root}/script.json"\n`);
  const write = { tool_calls: [{ name: "write", arguments: { path: "made.txt", content: "made\n" } }] };
  const plan = { tool_calls: [{ name: "todo", arguments: { todos: [{ text: "one", status: "done" }, { text: "two", status: "in_progress" }] } }] };
  writeFileSync(`${root}/script.json`, JSON.stringify([
    { match: "talk", steps: [{ reasoning: "hm", text: "one two three", chunk_bytes: 4 }] },
    { match: "run", steps: [{ tool_calls: [{ name: "bash", arguments: { command: "echo from $PWD" } }] }, { text: "it said so" }] },
    { match: "write", steps: [write, { text: "written" }] },
    { match: "plan", steps: [plan, { text: "planned" }] },
    { match: "files", steps: [{ tool_calls: [{ name: "mcp__files__read_text_file", arguments: { path: `${root}/work/note.txt` } }] }, { text: "read" }] },
    { match: "hang", steps: [{ text: "word ".repeat(5000), chunk_bytes: 5, chunk_ms: 20 }] },
    { match: "fail", steps: [{ error: "auth" }] },
  ]));
});

after(() => {
  execFileSync(program, ["daemon", "stop", "--drain", "0s"], { env });
  rmSync(root, { recursive: true });
});

// editor starts the agent, shakes hands, opens a session and gives it to work.
async function editor(work, decide = (p) => p.options.find((o) => o.kind === "allow_once"), clientCapabilities = {}) {
  const agent = spawn(program, ["serve", "acp"], { env, stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((resolve) => agent.on("exit", resolve));
  const updates = [];
  const asked = [];
  let first;
  const begun = new Promise((resolve) => (first = resolve));
  const terminals = new Map();
  await client({ name: "outside" })
    .onRequest(methods.client.terminal.create, ({ params }) => {
      const child = spawn(params.command, params.args, { cwd: params.cwd, stdio: ["ignore", "pipe", "pipe"] });
      const t = { output: "", released: false, exit: new Promise((resolve) => child.on("close", (exitCode, signal) => resolve({ exitCode, signal }))), child };
      for (const s of [child.stdout, child.stderr]) s.on("data", (d) => (t.output += d));
      const terminalId = `t${terminals.size}`;
      terminals.set(terminalId, t);
      return { terminalId };
    })
    .onRequest(methods.client.terminal.waitForExit, ({ params }) => terminals.get(params.terminalId).exit)
    .onRequest(methods.client.terminal.kill, ({ params }) => (terminals.get(params.terminalId).child.kill(), {}))
    .onRequest(methods.client.terminal.release, ({ params }) => ((terminals.get(params.terminalId).released = true), {}))
    .onNotification(methods.client.session.update, ({ params }) => {
      updates.push(params.update);
      first();
    })
    .onRequest(methods.client.session.requestPermission, ({ params }) => {
      asked.push(params);
      const chosen = decide(params);
      return { outcome: chosen ? { outcome: "selected", optionId: chosen.optionId } : { outcome: "cancelled" } };
    })
    .connectWith(ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout)), async (ctx) => {
      const hello = await ctx.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities });
      assert.equal(hello.protocolVersion, 1);
      assert.equal(hello.agentCapabilities.loadSession, true);
      const { sessionId } = await ctx.request(methods.agent.session.new, { cwd: `${root}/work`, mcpServers: [] });
      // An answer overtakes, in this client, the updates that came before it and still go from handler to handler.
      const call = (...request) => ctx.request(...request).finally(() => new Promise((resolve) => setImmediate(resolve)));
      const prompt = (text) => call(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
      await work({ ctx, sessionId, prompt, updates, asked, begun, terminals, call });
    })
    .catch((error) => {
      agent.kill(); // a test that failed does not wait for it
      throw error;
    });
  agent.stdin.end();
  assert.equal(await ended, 0, "exit status");
}

const said = (updates) => updates.filter((u) => u.sessionUpdate === "agent_message_chunk").map((u) => u.content.text).join("");

test("text and thoughts", () => editor(async ({ prompt, updates }) => {
  assert.equal((await prompt("talk")).stopReason, "end_turn");
  assert.equal(said(updates), "one two three");
  assert.ok(updates.some((u) => u.sessionUpdate === "agent_thought_chunk"));
}));

test("a tool's call and its end", () => editor(async ({ prompt, updates }) => {
  await prompt("run");
  const call = updates.find((u) => u.sessionUpdate === "tool_call");
  const end = updates.findLast((u) => u.sessionUpdate === "tool_call_update");
  assert.equal(call.kind, "execute");
  assert.equal(end.toolCallId, call.toolCallId);
  assert.equal(end.status, "completed");
  assert.match(end.content[0].content.text, new RegExp(`from ${root}/work`));
}));

test("a command's output in a terminal of the editor's", () => editor(async ({ prompt, updates, terminals }) => {
  await prompt("run");
  const end = updates.findLast((u) => u.sessionUpdate === "tool_call_update");
  assert.equal(end.status, "completed");
  assert.deepEqual(end.content, [{ type: "terminal", terminalId: "t0" }]);
  assert.equal(terminals.get("t0").output, `from ${root}/work\n`);
  assert.deepEqual(await terminals.get("t0").exit, { exitCode: 0, signal: null });
  assert.ok(terminals.get("t0").released);
}, undefined, { terminal: true }));

test("a mode", () => editor(async ({ ctx, sessionId, prompt, asked }) => {
  await ctx.request(methods.agent.session.setMode, { sessionId, modeId: "plan" });
  await prompt("write");
  assert.equal(asked.length, 0);
  assert.ok(!existsSync(`${root}/work/made.txt`));
}));

// The protocol's own server of files, as an editor would name it.
test("an editor's MCP servers", () => editor(async ({ ctx, call, updates, asked }) => {
  writeFileSync(`${root}/work/note.txt`, "from the server\n");
  const server = new URL("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js", import.meta.url).pathname;
  const mcpServers = [
    { name: "files", command: process.execPath, args: [server, `${root}/work`], env: [] },
    { name: "broken", command: "/bin/false", args: [], env: [] },
  ];
  const { sessionId } = await ctx.request(methods.agent.session.new, { cwd: `${root}/work`, mcpServers });
  const answer = await call(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text: "files" }] });
  assert.equal(answer.stopReason, "end_turn");
  assert.equal(asked.length, 1);
  assert.match(said(updates), /The client's MCP server broken cannot be used \(\/bin\/false\): it ended: exit status 1/);
  assert.match(said(updates), /The client's MCP server files is in use: /);
  const result = updates.findLast((u) => u.sessionUpdate === "tool_call_update" && u.content?.length);
  assert.match(result.content[0].content.text, /^```\nfrom the server\n```$/);
}));

test("a question, allowed and refused", async () => {
  await editor(async ({ prompt, asked }) => {
    await prompt("write");
    assert.equal(asked.length, 1);
    assert.equal(readFileSync(`${root}/work/made.txt`, "utf8"), "made\n");
  });
  rmSync(`${root}/work/made.txt`);
  await editor(async ({ prompt }) => {
    assert.equal((await prompt("write")).stopReason, "end_turn");
    assert.ok(!existsSync(`${root}/work/made.txt`));
  }, () => undefined);
});

test("a plan", () => editor(async ({ prompt, updates }) => {
  await prompt("plan");
  assert.deepEqual(updates.find((u) => u.sessionUpdate === "plan").entries.map((e) => e.status), ["completed", "in_progress"]);
}));

test("cancel", () => editor(async ({ ctx, sessionId, prompt, begun }) => {
  const answer = prompt("hang");
  await begun;
  await ctx.notify(methods.agent.session.cancel, { sessionId });
  assert.equal((await answer).stopReason, "cancelled");
}));

test("a model that fails", () => editor(async ({ prompt }) => {
  await assert.rejects(prompt("fail"), /scripted auth/);
}));

test("list and load", () => editor(async ({ ctx, call, sessionId, prompt, updates }) => {
  await prompt("talk");
  const list = await ctx.request(methods.agent.session.list, { cwd: `${root}/work` });
  assert.ok(list.sessions.some((s) => s.sessionId === sessionId));
  updates.length = 0;
  await call(methods.agent.session.load, { sessionId, cwd: `${root}/work`, mcpServers: [] });
  assert.equal(said(updates), "one two three");
}));
