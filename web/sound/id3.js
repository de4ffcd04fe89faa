/** Find the end of an ID3 tag, which has the title and the artist, before the sound of a file. Source: https://id3.org/id3v2.4.0-structure */

const BYTES = 10;

/** The offset behind the tag; 0 if there is none. @param {Blob} file @returns {Promise<number>} */
export async function tagEnd(file) {
  const head = new Uint8Array(await file.slice(0, BYTES).arrayBuffer());
  const isTag = head.length === BYTES && String.fromCharCode(...head.subarray(0, 3)) === "ID3" && head[3] >= 2 && head[3] <= 4;
  return isTag ? head.subarray(6).reduce((size, byte) => (size << 7) | (byte & 127), 0) + BYTES : 0;
}
