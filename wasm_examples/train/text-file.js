/** Read a file of the user's as text. */

import { megabytes } from "../../web/page/page.js";
import { Problem } from "../../web/worker/protocol.js";

const MAX_BYTES = 4_000_000;
const HINT = "Choose a text file in UTF-8, such as a .txt file.";

/** @param {File} file @returns {Promise<string>} @throws {Problem} the file is too large, empty or not text */
export async function readText(file) {
  if (file.size > MAX_BYTES) throw new Problem("TooLarge", `${file.name} has ${megabytes(file.size)}.`, `A tab learns from ${megabytes(MAX_BYTES)} at most: choose a part of it.`);
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw new Problem("NotText", `${file.name} is not a text in UTF-8.`, HINT);
  }
  if (text.includes("\0")) throw new Problem("NotText", `${file.name} is not a text: it contains zero bytes.`, HINT);
  if (!text.trim()) throw new Problem("Empty", `${file.name} is empty.`, HINT);
  return text;
}
