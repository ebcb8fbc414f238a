# A workspace of npm with one package inside, and tests for node's own runner.
mkdir -p src test scripts packages/util docs public
cat > package.json <<'EOF'
{
  "name": "todo-api", "version": "1.2.0", "private": true, "type": "module",
  "workspaces": ["packages/util"],
  "scripts": {
    "build": "node scripts/build.js", "test": "node --test", "lint": "node --check src/index.js",
    "start": "node src/index.js --once", "clean": "rm -rf dist", "docs": "node scripts/docs.js > docs/api.md"
  },
  "dependencies": { "@todo/util": "1.0.0" }
}
EOF
echo '{ "name": "@todo/util", "version": "1.0.0", "type": "module", "main": "index.js" }' > packages/util/package.json
echo 'export const slug = (s) => s.toLowerCase().replace(/\W+/g, "-");' > packages/util/index.js
cat > src/todo.js <<'EOF'
import { slug } from "@todo/util";
// TODO: keep them in a file
export class Todos {
  #list = [];
  add(title) { const t = { id: slug(title), title, done: false }; this.#list.push(t); return t; }
  done(id) { const t = this.#list.find((x) => x.id === id); if (t) t.done = true; return Boolean(t); }
  get open() { return this.#list.filter((t) => !t.done).length; }
}
EOF
cat > src/index.js <<'EOF'
import { createServer } from "node:http";
import { Todos } from "./todo.js";
const todos = new Todos();
const server = createServer((req, res) => { res.end(JSON.stringify({ open: todos.open }) + "\n"); });
server.listen(0, "127.0.0.1", async () => {
  const r = await fetch(`http://127.0.0.1:${server.address().port}/`);
  console.log(await r.text());
  if (process.argv.includes("--once")) server.close();
});
EOF
cat > test/todo.test.js <<'EOF'
import test from "node:test";
import assert from "node:assert";
import { createServer } from "node:http";
import { Todos } from "../src/todo.js";
test("adds", () => { const t = new Todos(); assert.equal(t.add("Buy milk").id, "buy-milk"); assert.equal(t.open, 1); });
test("is done", () => { const t = new Todos(); t.add("a"); assert.ok(t.done("a")); assert.equal(t.open, 0); });
test("serves", async () => {
  const s = createServer((q, r) => r.end("ok")); await new Promise((f) => s.listen(0, f));
  assert.equal(await (await fetch(`http://localhost:${s.address().port}`)).text(), "ok"); s.close();
});
EOF
cat > scripts/build.js <<'EOF'
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
mkdirSync("dist", { recursive: true });
writeFileSync("dist/bundle.js", ["src/todo.js", "src/index.js"].map((f) => readFileSync(f, "utf8")).join("\n"));
console.log("built");
EOF
echo 'console.log("# API\n\nGET / returns how many are open.");' > scripts/docs.js
echo '<!doctype html><title>todo</title><p>Hello' > public/index.html
echo '{ "port": 8080, "log": "info" }' > config.json
printf 'node_modules/\ndist/\n*.log\ncoverage/\n' > .gitignore
printf '# todo-api\n\n    npm test\n' > README.md
mkdir -p ~/.npm/_cacache ~/.npm/_logs # as after the first time that npm ran
npm install --offline --no-audit --no-fund --loglevel=error
