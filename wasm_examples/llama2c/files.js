/** Distinguish GGUF files, llama2.c checkpoints and tokenizers by their first bytes, so that any can be dropped. One that is a GGUF file by name only is refused as such. */

/** @typedef {"GGUF file" | "model" | "tokenizer"} Kind  as the files are named in app.py */

const GGUF = "GGUF";

// A tokenizer has the length of the longest piece, then for each piece a float32 score, its length and its UTF-8 text.
const FIRST_PIECE_LENGTH_AT = 8;
const FIRST_PIECE_AT = 12;

// A checkpoint has seven sizes, each an int32, or begins with a magic number.
const SIZES = 7;
const MAX_SIZE = 2 ** 24;
const CHECKPOINT = 0x616b3432; // "ak42"

/**
 * Return the kind of a file, or null for any other file; "model" is a llama2.c checkpoint.
 * @param {File} file
 * @returns {Promise<Kind | null>}
 */
export async function kindOf(file) {
  if (/\.gguf$/i.test(file.name) || (await file.slice(0, GGUF.length).text()) === GGUF) return "GGUF file";
  const head = new DataView(await file.slice(0, 64).arrayBuffer());
  if (isTokenizer(head)) return "tokenizer";
  return isCheckpoint(head) ? "model" : null;
}

/** At the text of a tokenizer's first piece, a checkpoint has small integers with zero bytes. @param {DataView} head */
function isTokenizer(head) {
  if (head.byteLength < FIRST_PIECE_AT) return false;
  const longest = head.getInt32(0, true);
  const length = head.getInt32(FIRST_PIECE_LENGTH_AT, true);
  if (length < 2 || length > longest || FIRST_PIECE_AT + length > head.byteLength) return false;
  return !new Uint8Array(head.buffer, FIRST_PIECE_AT, length).includes(0);
}

/** @param {DataView} head */
function isCheckpoint(head) {
  if (head.byteLength < 4 * SIZES) return false;
  if (head.getUint32(0, true) === CHECKPOINT) return true;
  for (let i = 0; i < SIZES; i++) {
    const size = Math.abs(head.getInt32(4 * i, true)); // the vocabulary's is negative if the classifier has its own weights
    if (size < 1 || size > MAX_SIZE) return false;
  }
  return true;
}
