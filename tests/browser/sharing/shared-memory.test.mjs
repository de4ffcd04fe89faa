// WebAssembly's functions while memory is shared, run by test_sharing_in_node.py: node --test shared-memory.test.mjs.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

import { shareModule } from "../../../web/threads/memory-type.js";
import { shareMemory, SharingError } from "../../../web/threads/shared-memory.js";

// One memory of a page, exported as "memory"; the same imported from "env"; a body without a function.
const DEFINED = bytes("05 03 01 00 01  07 0a 01 06 6d656d6f7279 02 00");
const IMPORTED = bytes("02 0f 01 03 656e76 06 6d656d6f7279 02 00 01");
const BROKEN = bytes("05 03 01 00 01  0a 02 01 00");
const TWO = bytes("05 05 02 00 01 00 01");

const originals = { ...Object.getOwnPropertyDescriptors(WebAssembly) };
let sharing;

afterEach(() => sharing?.undo());

function bytes(hexadecimal) {
  return new Uint8Array(Buffer.from(`0061736d01000000${hexadecimal.replaceAll(" ", "")}`, "hex"));
}

function response(body, { type = "application/wasm", ...options } = {}) {
  return new Response(body, { headers: { "Content-Type": type }, ...options });
}

const LOADERS = {
  "new Module": (source) => new WebAssembly.Instance(new WebAssembly.Module(source)),
  compile: async (source) => new WebAssembly.Instance(await WebAssembly.compile(source)),
  instantiate: async (source) => (await WebAssembly.instantiate(source)).instance,
  "instantiate a module": async (source) => WebAssembly.instantiate(await WebAssembly.compile(source)),
  "compile an ArrayBuffer": async (source) => new WebAssembly.Instance(await WebAssembly.compile(source.buffer)),
  compileStreaming: async (source) => new WebAssembly.Instance(await WebAssembly.compileStreaming(response(source))),
  instantiateStreaming: async (source) => (await WebAssembly.instantiateStreaming(Promise.resolve(response(source)))).instance,
};

for (const [name, load] of Object.entries(LOADERS)) {
  test(`${name} gives a shared memory until it is undone`, async () => {
    sharing = shareMemory();
    assert.equal(sharing.memory, null);
    const { memory } = (await load(DEFINED)).exports;
    assert.ok(memory.buffer instanceof SharedArrayBuffer);
    assert.equal(sharing.memory, memory);
    await load(DEFINED);
    assert.equal(sharing.memory, memory, "it is the first");
    sharing.undo();
    assert.ok((await load(DEFINED)).exports.memory.buffer instanceof ArrayBuffer);
  });

  test(`${name} reports a module that has no shared memory`, async () => {
    sharing = shareMemory();
    await assert.rejects(async () => load(BROKEN), WebAssembly.CompileError);
    await assert.rejects(sharing.failure, SharingError);
  });
}

test("undo restores everything", () => {
  const before = { decode: TextDecoder.prototype.decode, random: Crypto.prototype.getRandomValues };
  shareMemory().undo();
  assert.deepEqual(Object.getOwnPropertyDescriptors(WebAssembly), originals);
  assert.deepEqual({ decode: TextDecoder.prototype.decode, random: Crypto.prototype.getRandomValues }, before);
});

test("modules are what they were", () => {
  sharing = shareMemory();
  const module = new WebAssembly.Module(IMPORTED);
  assert.ok(module instanceof WebAssembly.Module);
  assert.ok(module instanceof originals.Module.value);
  assert.equal(WebAssembly.Module.imports(module).length, 1);
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
  assert.ok(new WebAssembly.Instance(module, { env: { memory } }) instanceof WebAssembly.Instance);
  assert.throws(() => WebAssembly.Module(IMPORTED), TypeError);
});

test("share changes a module for another worker", () => {
  sharing = shareMemory();
  assert.ok(originals.Module.value.imports(new originals.Module.value(sharing.share(IMPORTED))).length);
  assert.notDeepEqual(sharing.share(IMPORTED), IMPORTED);
});

test("an imported memory that is plain is reported", async () => {
  const env = { memory: new WebAssembly.Memory({ initial: 1 }) };
  sharing = shareMemory();
  await assert.rejects(WebAssembly.instantiate(IMPORTED, { env }), WebAssembly.LinkError);
  await assert.rejects(sharing.failure, /cannot be loaded with a shared memory: LinkError/);
});

test("a memory that JavaScript makes is shared, and modules import it", async () => {
  for (const load of [
    async (imports) => WebAssembly.instantiate(IMPORTED, imports),
    async (imports) => WebAssembly.instantiate(await WebAssembly.compile(IMPORTED), imports),
    async (imports) => new WebAssembly.Instance(new WebAssembly.Module(IMPORTED), imports),
    async (imports) => WebAssembly.instantiateStreaming(response(IMPORTED), imports),
  ]) {
    sharing = shareMemory();
    const memory = new WebAssembly.Memory({ initial: 1 });
    assert.ok(memory instanceof WebAssembly.Memory);
    assert.ok(memory.buffer instanceof SharedArrayBuffer);
    assert.equal(sharing.memory, null);
    await load({ env: { memory } });
    assert.equal(sharing.memory, memory);
    sharing.undo();
  }
});

test("a memory that JavaScript makes keeps its maximum", () => {
  sharing = shareMemory();
  for (const shared of [true, false]) {
    const memory = new WebAssembly.Memory({ initial: 1, maximum: 2, shared });
    memory.grow(1);
    assert.throws(() => memory.grow(1), RangeError);
  }
});

test("a module that is refused is reported, and loads as it is", async () => {
  sharing = shareMemory();
  await WebAssembly.compile(TWO).catch(() => {}); // an engine without several memories refuses it, too
  await assert.rejects(sharing.failure, /2 memories/);
});

test("once there is a shared memory, nothing is reported", async () => {
  sharing = shareMemory();
  await WebAssembly.instantiate(DEFINED);
  await assert.rejects(WebAssembly.compile(BROKEN), WebAssembly.CompileError);
  assert.equal(await Promise.race([sharing.failure, Promise.resolve("nothing")]), "nothing");
});

test("a copy whose memory is shared is fetched in place of a module", async () => {
  const { fetch } = globalThis;
  const requests = [];
  const answer = async (url) => {
    requests.push(String(url));
    return Object.defineProperty(response(shareModule(DEFINED).bytes), "url", { value: String(url) });
  };
  Object.defineProperty(globalThis, "fetch", { value: answer, configurable: true, writable: true });
  try {
    sharing = shareMemory({ "https://host/plain.wasm": "https://host/shared.wasm" });
    const { instance } = await WebAssembly.instantiateStreaming(globalThis.fetch(new URL("https://host/plain.wasm"), {}));
    assert.equal(sharing.memory, instance.exports.memory);
    assert.ok(sharing.memory.buffer instanceof SharedArrayBuffer);
    await globalThis.fetch("https://host/other.wasm");
    sharing.undo();
    await globalThis.fetch("https://host/plain.wasm");
    assert.deepEqual(requests, ["https://host/shared.wasm", "https://host/other.wasm", "https://host/plain.wasm"]);
  } finally {
    Object.defineProperty(globalThis, "fetch", { value: fetch, configurable: true, writable: true });
  }
});

test("errors are the engine's", async () => {
  const wrong = [
    () => WebAssembly.compile(7),
    () => WebAssembly.compile(),
    () => WebAssembly.compile(new Uint8Array(10)),
    () => WebAssembly.instantiate(DEFINED, 7),
    () => WebAssembly.compileStreaming(response(DEFINED, { type: "text/html" })),
    () => WebAssembly.compileStreaming(response("", { status: 404 })),
    () => WebAssembly.compileStreaming(response(new Uint8Array(10))),
    () => WebAssembly.compileStreaming(7),
    () => WebAssembly.compileStreaming(Promise.reject(new RangeError("no network"))),
    async () => new WebAssembly.Module("text"),
    async () => new WebAssembly.Instance(7),
    async () => new WebAssembly.Memory(),
    async () => new WebAssembly.Memory({ initial: 3, maximum: 2 }),
    async () => WebAssembly.Memory({ initial: 1 }),
  ];
  for (const load of wrong) {
    const expected = await load().catch((error) => error);
    assert.ok(expected instanceof Error);
    sharing = shareMemory();
    await assert.rejects(load(), { name: expected.name, message: expected.message });
    sharing.undo();
  }
});

test("memory that cannot be shared is an error, and changes nothing", () => {
  const { SharedArrayBuffer } = globalThis;
  const Memory = class {
    constructor() {
      throw new RangeError();
    }
  };
  const changes = [
    [globalThis, "SharedArrayBuffer", undefined, /no shared memory/],
    [globalThis, "crossOriginIsolated", false, /not cross-origin isolated/],
    [WebAssembly, "Memory", Memory, /cannot reserve/],
  ];
  for (const [owner, name, value, message] of changes) {
    const before = Object.getOwnPropertyDescriptor(owner, name);
    Object.defineProperty(owner, name, { value, configurable: true, writable: true });
    try {
      assert.throws(shareMemory, { name: "SharingError", message });
    } finally {
      if (before) Object.defineProperty(owner, name, before);
      else delete owner[name];
    }
    assert.deepEqual(Object.getOwnPropertyDescriptors(WebAssembly), originals);
  }
  assert.equal(globalThis.SharedArrayBuffer, SharedArrayBuffer);
});
