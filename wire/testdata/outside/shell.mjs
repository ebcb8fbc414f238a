// A shell to lend: one bash process for each command, whose folder is kept. It plays the client's side of section 10.
import { spawn } from "node:child_process";
import { fingerprint } from "./protocol.mjs";

export class Shell {
  constructor(client, cwd) {
    Object.assign(this, { client, cwd, changes: 0, held: null, running: null, ran: [] });
    client.on("AcquireShellLease", (m) => {
      this.held = m.lease_id;
      client.send("ShellLeaseAcquired", { ...ref(m), cwd: this.cwd, state: this.digest() });
    });
    client.on("ExecuteLeasedCommand", (m) => this.execute(m));
    client.on("CancelLeasedCommand", (m) => {
      if (this.running?.id === m.execution_id) this.running.cancel();
    });
    client.on("RestoreShellState", (m) => this.restore(m));
    client.on("ReleaseShellLease", (m) => {
      if (this.held === m.lease_id) this.held = null;
      client.send("ShellLeaseReleased", { ...ref(m), reason: "released" });
    });
  }

  digest() {
    return fingerprint(this.cwd, String(this.changes), "");
  }

  // tell tells the state, and which borrowed command it may be the work of.
  tell(...executions) {
    this.client.send("ShellState", {
      digest: this.digest(), cwd: this.cwd, aliases: {}, functions: [], options: [], hashed: {}, disabled: [], loaded: [], env: { set: {}, unset: [] },
      executions,
    });
  }

  execute(m) {
    const done = (status, more = {}) =>
      this.client.send("CommandCompleted", {
        ...ref(m), execution_id: m.execution_id, output: new Uint8Array(), truncated: null, exit_code: null, signal: "", status, cwd: this.cwd,
        duration_ms: 0, leftovers: [], notes: [], ...more,
      });
    if (m.lease_id !== this.held || m.fingerprint !== fingerprint(m.command, m.cwd, this.digest())) return done("refused");
    const begun = Date.now();
    const child = spawn("bash", ["-c", `${m.command}\nstatus=$?; pwd >&3; exit $status`], {
      cwd: m.cwd, stdio: ["ignore", "pipe", "pipe", "pipe"], detached: true,
    });
    this.ran.push(m.command);
    let cancelled = false;
    this.running = {
      id: m.execution_id,
      cancel: () => {
        cancelled = true;
        process.kill(-child.pid, "SIGKILL");
      },
    };
    this.client.send("CommandStarted", { ...ref(m), execution_id: m.execution_id, keyboard: false });
    let output = Buffer.alloc(0);
    let where = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (data) => {
        this.client.send("CommandOutput", { ...ref(m), execution_id: m.execution_id, offset: output.length, data: new Uint8Array(data) });
        output = Buffer.concat([output, data]);
      });
    child.stdio[3].on("data", (data) => (where += data));
    child.on("close", (code, signal) => {
      this.running = null;
      const before = this.cwd;
      this.cwd = where.trim() || m.cwd;
      done(cancelled ? "cancelled" : "ok", {
        output: new Uint8Array(output), exit_code: code, signal: signal ?? "", cwd: this.cwd, duration_ms: Date.now() - begun,
      });
      if (this.cwd !== before) {
        Object.assign(this, { before, changer: m.execution_id });
        this.changes++;
        this.tell(this.changer);
      }
    });
  }

  restore(m) {
    let output = "";
    this.client.send("CommandStarted", { ...ref(m), execution_id: m.execution_id, keyboard: false });
    if (this.before) {
      this.cwd = this.before;
      this.before = null;
      this.changes++;
      output = `moved to ${this.cwd}`;
      this.tell(this.changer);
    }
    this.client.send("CommandCompleted", {
      ...ref(m), execution_id: m.execution_id, output: new TextEncoder().encode(output), truncated: null, exit_code: null, signal: "",
      status: "ok", cwd: this.cwd, duration_ms: 0, leftovers: [], notes: [],
    });
  }
}

const ref = (m) => ({ lease_id: m.lease_id, fence: m.fence, request_id: "" });
