// The rewriting of WebAssembly modules, run by test_sharing_in_node.py: node --test memory-type.test.mjs. The engine is the reference.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { test } from "node:test";

import { MAX_PAGES, shareModule, sharingStream } from "../../../web/threads/memory-type.js";

const MODULES = JSON.parse(process.env.TALLOW_WASM_MODULES);
const HEADER = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0];
const I32 = 0x7f;

const text = (string) => [string.length, ...Buffer.from(string)];
const section = (id, ...body) => [id, body.length, ...body];
const module = (...sections) => Uint8Array.from([...HEADER, ...sections.flat()]);
const imports = (...entries) => section(2, entries.length, ...entries.flat());
const memories = (...limits) => section(5, limits.length, ...limits.flat());
const custom = (name, ...bytes) => section(0, ...text(name), ...bytes);
const ENV_MEMORY = [...text("env"), ...text("memory"), 2];

// Sections and imports of every kind; the memory is imported, with 1 to 200 pages.
const TYPES = section(1, 1, 0x60, 0, 0);
const EVERYTHING = module(
  custom("first", 1, 2, 3),
  TYPES,
  imports(
    [...text("m"), ...text("function"), 0, 0],
    [...text("m"), ...text("table"), 1, 0x70, 1, 1, 2],
    [...ENV_MEMORY, 1, 1, 0xc8, 1],
    [...text("m"), ...text("global"), 3, I32, 1],
    [...text("m"), ...text("tag"), 4, 0, 0],
  ),
  custom("between"),
  section(3, 1, 0),
  section(7, 1, ...text("run"), 0, 1),
  section(10, 1, 2, 0, 0x0b),
  custom("last", 0xff, 0, 0x80),
);
const DEFINED = module(memories([0, 3]), section(7, 1, ...text("memory"), 2, 0));

const memoryOf = (bytes) => new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports.memory;

function assertUnchanged(bytes) {
  assert.deepEqual(shareModule(bytes), { bytes, changed: false, refusal: null });
  assert.equal(shareModule(bytes).bytes, bytes);
}

async function streamed(bytes, chunkBytes, maximum = MAX_PAGES) {
  const reports = [];
  const stream = sharingStream(maximum, (outcome) => reports.push(outcome));
  const source = new ReadableStream({
    start(controller) {
      for (let i = 0; i < bytes.length; i += chunkBytes) controller.enqueue(bytes.slice(i, i + chunkBytes));
      controller.close();
    },
  });
  const chunks = [];
  for await (const chunk of source.pipeThrough(stream)) chunks.push(chunk);
  assert.equal(reports.length, 1);
  return { bytes: new Uint8Array(Buffer.concat(chunks)), ...reports[0] };
}

for (const path of MODULES) {
  test(`${basename(path)} loads with a shared memory, and the rest of it is unchanged`, async () => {
    const plain = new Uint8Array(readFileSync(path));
    const before = plain.slice();
    const { bytes, changed, refusal } = shareModule(plain);
    assert.deepEqual([changed, refusal], [true, null]);
    assert.ok(Buffer.compare(plain, before) === 0, "the input is not written to");
    assert.equal(WebAssembly.validate(bytes), WebAssembly.validate(plain));
    const first = plain.findIndex((byte, i) => byte !== bytes[i]);
    const tail = plain.length - first - 64; // the section's length is among the bytes that change
    assert.ok(Buffer.compare(plain.subarray(-Math.min(tail, plain.length / 2)), bytes.subarray(-Math.min(tail, plain.length / 2))) === 0);
    for (const chunkBytes of [977, 65536, plain.length]) {
      const whole = await streamed(plain, chunkBytes);
      assert.ok(Buffer.compare(whole.bytes, bytes) === 0, `in chunks of ${chunkBytes}`);
    }
    if (!WebAssembly.validate(plain)) return; // relaxed SIMD in an old Node
    const [was, is] = [plain, bytes].map((source) => new WebAssembly.Module(source));
    assert.deepEqual(WebAssembly.Module.imports(is), WebAssembly.Module.imports(was));
    assert.deepEqual(WebAssembly.Module.exports(is), WebAssembly.Module.exports(was));
    for (const name of ["dylink.0", "name"]) {
      assert.deepEqual(WebAssembly.Module.customSections(is, name), WebAssembly.Module.customSections(was, name));
    }
  });
}

test("a memory that is defined gets the maximum that it needs", () => {
  const memory = memoryOf(shareModule(DEFINED).bytes);
  assert.ok(memory.buffer instanceof SharedArrayBuffer);
  assert.equal(memory.buffer.byteLength, 3 * 65536);
  memory.grow(100);
  assert.throws(() => memoryOf(shareModule(DEFINED, 50).bytes).grow(48), RangeError);
  memoryOf(shareModule(DEFINED, 50).bytes).grow(47);
});

test("a memory keeps its own maximum if that is smaller", () => {
  const memory = memoryOf(shareModule(module(memories([1, 3, 5]), section(7, 1, ...text("memory"), 2, 0))).bytes);
  memory.grow(2);
  assert.throws(() => memory.grow(1), RangeError);
});

test("an imported memory has to be shared", () => {
  const { bytes } = shareModule(EVERYTHING);
  const env = (shared) => ({
    env: { memory: new WebAssembly.Memory({ initial: 1, maximum: 200, shared }) },
    m: {
      function() {},
      table: new WebAssembly.Table({ initial: 1, maximum: 2, element: "anyfunc" }),
      global: new WebAssembly.Global({ value: "i32", mutable: true }, 0),
      tag: new WebAssembly.Tag({ parameters: [] }),
    },
  });
  assert.ok(new WebAssembly.Instance(new WebAssembly.Module(bytes), env(true)).exports.run);
  assert.throws(() => new WebAssembly.Instance(new WebAssembly.Module(bytes), env(false)), WebAssembly.LinkError);
});

test("custom sections are kept", () => {
  const [was, is] = [EVERYTHING, shareModule(EVERYTHING).bytes].map((bytes) => new WebAssembly.Module(bytes));
  for (const name of ["first", "between", "last"]) {
    assert.equal(WebAssembly.Module.customSections(is, name).length, 1);
    assert.deepEqual(WebAssembly.Module.customSections(is, name), WebAssembly.Module.customSections(was, name));
  }
});

test("a length with padding stays readable", () => {
  const padded = module([5, 0x87, 0x80, 0x80, 0x80, 0, 1, 1, 0x83, 0x80, 0, 0x85, 0], section(7, 1, ...text("memory"), 2, 0));
  assert.ok(WebAssembly.validate(padded));
  assert.equal(memoryOf(shareModule(padded).bytes).buffer.byteLength, 3 * 65536);
});

test("what has no plain memory is unchanged", () => {
  for (const bytes of [module(), module(TYPES), module(imports()), module(memories()), module(memories([3, 1, 2]))]) {
    assert.ok(WebAssembly.validate(bytes));
    assertUnchanged(bytes);
  }
});

test("several memories, 64-bit memories and memories that are too large are refused", async () => {
  const refused = [
    [module(memories([0, 1], [0, 1])), "2 memories"],
    [module(imports([...ENV_MEMORY, 0, 1]), memories([3, 1, 1])), "2 memories"],
    [module(memories([4, 1])), "64-bit"],
    [module(imports([...ENV_MEMORY, 5, 1, 2])), "64-bit"],
    [module(memories([0, 51])), "51 pages"],
  ];
  for (const [bytes, reason] of refused) {
    for (const outcome of [shareModule(bytes, 50), await streamed(bytes, 1, 50)]) {
      assert.deepEqual([...outcome.bytes], [...bytes]);
      assert.equal(outcome.changed, false);
      assert.match(outcome.refusal, new RegExp(reason));
    }
  }
});

test("what is no valid module is unchanged", () => {
  const tooLong = [0x81, 0x80, 0x80, 0x80, 0x80, 0];
  const tooLarge = [0x81, 0x80, 0x80, 0x80, 0x10];
  const invalid = [
    new Uint8Array(),
    Uint8Array.from(Buffer.from("<!doctype html>")),
    Uint8Array.from([...HEADER.slice(0, 4), 0x0d, 0, 1, 0]), // a component
    module(memories([0, ...tooLong])),
    module(memories([0, ...tooLarge])),
    module(memories([1, 1, ...tooLarge])),
    module(memories([2, 1])).slice(0, -1),
    module([5, ...tooLong, 1, 0, 1]),
    module(section(5, ...tooLong, 0, 1)),
    module(section(5, 1, 0, 1, 0)), // a byte too many
    module(section(5, 2, 0, 1)), // a memory too few
    module(section(2, 1, ...ENV_MEMORY)),
    module(section(2, 1, ...ENV_MEMORY, 0, 1, 0)),
    module(section(2, 0xff, 0xff, 0xff, 0xff, 0x0f, ...ENV_MEMORY, 0, 1)),
    module(imports([...ENV_MEMORY.slice(0, -1), 9, 0, 1])), // an unknown kind
    module(imports([0xff, 0xff, 0xff, 0xff, 0x0f, ...ENV_MEMORY, 0, 1])),
    module(memories([0, 1]), section(14, 0)), // an unknown section
    module([5, 100, 1, 0, 1]),
  ];
  for (const bytes of invalid) {
    assert.ok(!WebAssembly.validate(bytes));
    assertUnchanged(bytes);
  }
});

test("a module that is cut off is unchanged, unless the cut is between two sections", async () => {
  const ends = [];
  for (let at = HEADER.length; at < EVERYTHING.length; at += 2 + EVERYTHING[at + 1]) ends.push(at);
  for (let length = 0; length < EVERYTHING.length; length++) {
    const cut = EVERYTHING.slice(0, length);
    if (!ends.includes(length)) assertUnchanged(cut);
    const { bytes, changed } = await streamed(cut, 1);
    if (changed) assert.deepEqual([...bytes], [...shareModule(EVERYTHING).bytes.slice(0, bytes.length)]);
    else assert.deepEqual([...bytes], [...cut]);
  }
});

test("a stream passes on what follows the memory at once", async () => {
  const stream = sharingStream(MAX_PAGES, () => {});
  const [writer, reader] = [stream.writable.getWriter(), stream.readable.getReader()];
  const code = EVERYTHING.length - 20;
  writer.write(EVERYTHING.slice(0, 30));
  writer.write(EVERYTHING.slice(30, code));
  const head = (await reader.read()).value;
  assert.deepEqual([...head], [...shareModule(EVERYTHING).bytes.subarray(0, head.length)]);
  writer.write(EVERYTHING.slice(code));
  assert.deepEqual([...(await reader.read()).value], [...EVERYTHING.slice(code)]);
});

test("damaged modules do no harm", async () => {
  let state = 1;
  const random = (below) => (state = (state * 48271) % 0x7fffffff) % below; // Lehmer's generator
  let valid = 0;
  for (let round = 0; round < 20_000; round++) {
    const bytes = round % 4 ? (round % 2 ? EVERYTHING : DEFINED).slice() : Uint8Array.from({ length: random(60) }, () => random(256));
    if (round % 8 === 0) bytes.set(HEADER.slice(0, bytes.length));
    for (let edits = random(4); bytes.length && edits >= 0; edits--) bytes[random(bytes.length)] = random(256);
    const shared = shareModule(bytes);
    if (!shared.changed) assert.equal(shared.bytes, bytes);
    if (round % 16 === 0) await streamed(bytes, 1 + random(20));
    if (!WebAssembly.validate(bytes)) continue;
    valid++;
    assert.ok(WebAssembly.validate(shared.bytes), Buffer.from(bytes).toString("hex"));
  }
  assert.ok(valid > 500, `${valid} were valid`);
});
