/** Distinguish GGUF files, llama2.c checkpoints and tokenizers by their first bytes, so that any can be dropped. One that is a GGUF file by name only is refused as such. */

/** @typedef {"GGUF file" | "model" | "tokenizer"} Kind  as the files are named in app.py */

const GGUF = "GGUF";

// A tokenizer has the length of the longest piece, then for each piece a float32 score, its length and its UTF-8 text.
const FIRST_PIECE_LENGTH_AT = 8;
const FIRST_PIECE_AT = 12;

/**
 * Return the kind of a file; "model" is a llama2.c checkpoint. At the text of a tokenizer's first piece, a checkpoint has small integers with zero bytes.
 * @param {File} file
 * @returns {Promise<Kind>}
 */
export async function kindOf(file) {
  if (/\.gguf$/i.test(file.name) || (await file.slice(0, GGUF.length).text()) === GGUF) return "GGUF file";
  const head = new DataView(await file.slice(0, 64).arrayBuffer());
  if (head.byteLength < FIRST_PIECE_AT) return "model";
  const longest = head.getInt32(0, true);
  const length = head.getInt32(FIRST_PIECE_LENGTH_AT, true);
  const end = FIRST_PIECE_AT + length;
  if (length < 2 || length > longest || end > head.byteLength) return "model";
  const piece = new Uint8Array(head.buffer, FIRST_PIECE_AT, length);
  return piece.includes(0) ? "model" : "tokenizer";
}
