/** Tells a llama2.c checkpoint from a tokenizer by its first bytes, so that both can be dropped at once. */

/** @typedef {"model" | "tokenizer"} Kind */

// The length of the longest piece, then per piece: a float32 score, its length, its UTF-8 text.
const FIRST_PIECE_LENGTH_AT = 8;
const FIRST_PIECE_AT = 12;

/**
 * Where a tokenizer has the text of its first piece, a checkpoint has small integers, which are full of zero bytes.
 * @param {Blob} file
 * @returns {Promise<Kind>}
 */
export async function kindOf(file) {
  const head = new DataView(await file.slice(0, 64).arrayBuffer());
  if (head.byteLength < FIRST_PIECE_AT) return "model";
  const longest = head.getInt32(0, true);
  const length = head.getInt32(FIRST_PIECE_LENGTH_AT, true);
  const end = FIRST_PIECE_AT + length;
  if (length < 2 || length > longest || end > head.byteLength) return "model";
  const piece = new Uint8Array(head.buffer, FIRST_PIECE_AT, length);
  return piece.includes(0) ? "model" : "tokenizer";
}
