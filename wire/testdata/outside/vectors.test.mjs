// Section 13: an implementation is right if it reads each frame to the JSON and writes, from the JSON, a frame that means
// the same. Not always the same bytes: the library writes a float that is whole, as a max_cost_usd of 0, as an int.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { codes, frame, kinds, parse, readJSON, unview, view } from "./protocol.mjs";

const folder = new URL("../vectors/", import.meta.url);
const names = readdirSync(folder).filter((n) => n.endsWith(".hex")).map((n) => n.slice(0, -4));

test("there is a vector for each kind and each code that the page names", () => {
  assert.ok(kinds.size > 35 && codes.length > 18, `the page names ${kinds.size} kinds and ${codes.length} codes`);
  for (const kind of kinds.keys()) assert.ok(names.includes(kind), kind);
  for (const code of codes) assert.ok(names.includes(`Error.${code}`), code);
});

for (const name of names)
  test(name, () => {
    const bytes = Buffer.from(readFileSync(new URL(`${name}.hex`, folder), "utf8").replace(/\s/g, ""), "hex");
    const json = readJSON(readFileSync(new URL(`${name}.json`, folder), "utf8"));
    assert.equal(bytes.readUInt32BE(0), bytes.length - 4, "the announced length");
    const message = parse(bytes.subarray(4));
    assert.ok(kinds.has(message.kind), `${message.kind} is not on the page`);
    assert.deepEqual(view(message), json, "frame to JSON");
    const { kind, body } = unview(json);
    assert.deepEqual(parse(frame(kind, body).subarray(4)), message, "JSON to frame");
  });
