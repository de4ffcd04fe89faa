/**
 * Change the memory of a WebAssembly module from a plain one to a shared one, in the module's bytes.
 *
 * The type of a memory is in one of two sections: in the import section if the module imports its memory, else in the memory
 * section. No other byte of the module depends on it: loads and stores are the same instructions for both types.
 * Source: https://webassembly.github.io/spec/core/binary/modules.html
 */

/** The pages of 64 KiB that 32-bit addresses reach. */
export const MAX_PAGES = 65536;

const HEADER = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00]; // "\0asm", version 1
const SECTION = { import: 2, memory: 5, last: 13 };
const IMPORTED = { function: 0, table: 1, memory: 2, global: 3, tag: 4 };
// Flags in a memory's limits. Others mean 64-bit addresses, or pages of another size.
const HAS_MAXIMUM = 1;
const SHARED = 2;
// These types of values are followed by the type that they refer to.
const REFERENCES = [0x63, 0x64];

/** The bytes end too early. */
class Truncated extends Error {
  /** @param {number} needed  bytes from the start of the module */
  constructor(needed) {
    super();
    this.needed = needed;
  }
}

/** The bytes are no valid module, or a newer format: the engine has to judge them. */
class Unknown extends Error {}

/** The module has a memory that cannot become a shared one. */
class Unshareable extends Error {}

/**
 * `changed` is false if the module has no plain memory, or if the memory stays plain, for the reason `refusal`.
 * @typedef {{ changed: boolean, refusal: string | null }} Outcome
 * @typedef {{ start: number, end: number, section: Section, limits: number[] }} Edit
 * @typedef {{ start: number, body: number, end: number }} Section
 */

/**
 * Return a module with a shared memory, as a copy. The bytes come back as they are if they are no complete module: the engine
 * reports what is wrong.
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @param {number} [maximum]  in pages: of a memory that the module defines; its own maximum, if that is smaller
 * @returns {Outcome & { bytes: Uint8Array<ArrayBuffer> }}
 */
export function shareModule(bytes, maximum = MAX_PAGES) {
  try {
    return rewritten(bytes, maximum, true);
  } catch (error) {
    if (error instanceof Truncated) return { bytes, changed: false, refusal: null };
    throw error;
  }
}

/**
 * Return a stream that changes a module as it arrives. It holds back the sections in front of the memory's, and passes on
 * everything after it as it comes, so that the engine compiles during the download.
 * @param {number} maximum  as in `shareModule`
 * @param {(outcome: Outcome) => void} report  called once
 * @returns {TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>}
 */
export function sharingStream(maximum, report) {
  /** @type {Uint8Array<ArrayBuffer>[] | null} */
  let held = [];
  let size = 0;
  let needed = HEADER.length;
  return new TransformStream({
    transform(chunk, controller) {
      if (!held) return controller.enqueue(chunk);
      held.push(chunk);
      size += chunk.length;
      if (size < needed) return; // reading the head again for every chunk would take quadratic time
      held = [joined(held)];
      try {
        const { bytes, ...outcome } = rewritten(held[0], maximum, false);
        held = null;
        report(outcome);
        controller.enqueue(bytes);
      } catch (error) {
        if (!(error instanceof Truncated)) throw error;
        needed = error.needed;
      }
    },
    flush(controller) {
      if (!held) return;
      const { bytes, ...outcome } = shareModule(joined(held), maximum);
      report(outcome);
      controller.enqueue(bytes);
    },
  });
}

/**
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @param {number} maximum
 * @param {boolean} isWhole  whether `bytes` is the whole module; else its head is enough
 * @throws {Truncated}
 */
function rewritten(bytes, maximum, isWhole) {
  try {
    const edit = findEdit(new Reader(bytes), maximum, isWhole);
    return { bytes: edit ? applied(edit, bytes) : bytes, changed: edit !== null, refusal: null };
  } catch (error) {
    if (error instanceof Unknown) return { bytes, changed: false, refusal: null };
    if (error instanceof Unshareable) return { bytes, changed: false, refusal: error.message };
    throw error;
  }
}

/**
 * Find what has to change.
 * @param {Reader} reader  at the start of the module
 * @param {number} maximum
 * @param {boolean} isWhole
 * @returns {Edit | null}
 * @throws {Truncated | Unknown | Unshareable}
 */
function findEdit(reader, maximum, isWhole) {
  if (HEADER.some((byte) => reader.byte() !== byte)) throw new Unknown();
  /** @type {(Edit | null)[]} */
  const memories = [];
  while (!(isWhole && reader.isAtEnd)) {
    const start = reader.position;
    const id = reader.byte();
    if (id > SECTION.last) throw new Unknown();
    if (id > SECTION.memory && !isWhole) break; // sections come in this order
    const size = reader.u32();
    const section = { start, body: reader.position, end: reader.position + size };
    reader.require(section.end);
    if (id === SECTION.import) memories.push(...readImports(reader, section));
    if (id === SECTION.memory) memories.push(...readMemories(reader, section, maximum));
    reader.position = section.end;
  }
  if (memories.length > 1) throw new Unshareable(`the module has ${memories.length} memories`);
  return memories[0] ?? null;
}

/** @param {Reader} reader @param {Section} section */
function readImports(reader, section) {
  const memories = [];
  for (let count = reader.u32(); count > 0; count--) {
    reader.skip(reader.u32()); // the names of the module and of the import
    reader.skip(reader.u32());
    const kind = reader.byte();
    if (kind === IMPORTED.memory) memories.push(readMemory(reader, section, MAX_PAGES));
    else if (kind === IMPORTED.function) reader.u32();
    else if (kind === IMPORTED.table) skipTable(reader);
    else if (kind === IMPORTED.global) skipGlobal(reader);
    else if (kind === IMPORTED.tag) skipTag(reader);
    else throw new Unknown();
    if (reader.position > section.end) throw new Unknown();
  }
  if (reader.position !== section.end) throw new Unknown();
  return memories;
}

/** @param {Reader} reader @param {Section} section @param {number} maximum */
function readMemories(reader, section, maximum) {
  const memories = [];
  for (let count = reader.u32(); count > 0; count--) {
    memories.push(readMemory(reader, section, maximum));
    if (reader.position > section.end) throw new Unknown();
  }
  if (reader.position !== section.end) throw new Unknown();
  return memories;
}

/**
 * Read a memory's type. A shared memory needs a maximum. That of an import only has to be at least the memory's own.
 * @param {Reader} reader @param {Section} section @param {number} maximum
 * @returns {Edit | null}  null if it is shared already
 */
function readMemory(reader, section, maximum) {
  const start = reader.position;
  const flags = reader.byte();
  if (flags > (HAS_MAXIMUM | SHARED)) throw new Unshareable("the module's memory has 64-bit addresses or pages of another size");
  const minimum = reader.u32();
  const own = flags & HAS_MAXIMUM ? reader.u32() : MAX_PAGES;
  if (flags & SHARED) return null;
  if (minimum > maximum) throw new Unshareable(`the module's memory begins with ${minimum} pages, and ${maximum} can be shared`);
  const limits = [HAS_MAXIMUM | SHARED, ...u32Bytes(minimum), ...u32Bytes(Math.min(own, maximum))];
  return { start, end: reader.position, section, limits };
}

/** @param {Reader} reader */
function skipTable(reader) {
  skipType(reader);
  const flags = reader.byte();
  if (flags > (HAS_MAXIMUM | SHARED)) throw new Unknown();
  reader.u32();
  if (flags & HAS_MAXIMUM) reader.u32();
}

/** @param {Reader} reader */
function skipGlobal(reader) {
  skipType(reader);
  reader.byte();
}

/** @param {Reader} reader */
function skipTag(reader) {
  reader.byte();
  reader.u32();
}

/** Skip the type of a value. @param {Reader} reader */
function skipType(reader) {
  if (REFERENCES.includes(reader.byte())) reader.s33();
}

/** Return a copy of `bytes` with the edit, and with the section's new length. @param {Edit} edit @param {Uint8Array<ArrayBuffer>} bytes */
function applied({ start, end, section, limits }, bytes) {
  const size = section.end - section.body - (end - start) + limits.length;
  return joined([
    bytes.subarray(0, section.start + 1),
    Uint8Array.from(u32Bytes(size)),
    bytes.subarray(section.body, start),
    Uint8Array.from(limits),
    bytes.subarray(end),
  ]);
}

/** @param {Uint8Array<ArrayBuffer>[]} chunks */
function joined(chunks) {
  const all = new Uint8Array(chunks.reduce((size, chunk) => size + chunk.length, 0));
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.length;
  }
  return all;
}

/** The LEB128 encoding of an unsigned integer. @param {number} value */
function u32Bytes(value) {
  const bytes = [];
  for (; value > 0x7f; value = Math.floor(value / 128)) bytes.push((value & 0x7f) | 0x80);
  return [...bytes, value];
}

/** Reads the binary format. */
class Reader {
  position = 0;
  #bytes;

  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    this.#bytes = bytes;
  }

  get isAtEnd() {
    return this.position === this.#bytes.length;
  }

  /** @param {number} end  @throws {Truncated} the bytes end before it */
  require(end) {
    if (end > this.#bytes.length) throw new Truncated(end);
  }

  byte() {
    this.require(this.position + 1);
    return this.#bytes[this.position++];
  }

  /** @param {number} count */
  skip(count) {
    this.require(this.position + count);
    this.position += count;
  }

  /** Read an unsigned 32-bit integer in LEB128: at most five bytes, and no bits above the 32nd. */
  u32() {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = this.byte();
      if (shift === 28 && byte > 0x0f) throw new Unknown();
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
  }

  /** Skip a signed 33-bit integer in LEB128. */
  s33() {
    for (let length = 1; this.byte() > 0x7f; length++) if (length === 5) throw new Unknown();
  }
}
