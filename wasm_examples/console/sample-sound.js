/** A sound of the speech demo as a WAV file, which Python reads without other packages. */

import { samplesOf } from "../../web/sound/sound.js";

const RATE = 16000;

/** @param {URL} url @param {string} name @returns {Promise<File>} */
export async function wavFile(url, name) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`the server answers ${response.status}`);
  const parts = [];
  for await (const { samples } of samplesOf(new File([await response.blob()], name), new AbortController().signal)) parts.push(samples);
  const sound = await new Blob(parts).arrayBuffer();
  return new File([header(sound.byteLength), sound], name);
}

/** The header of 16-bit samples of one channel. @param {number} bytes */
function header(bytes) {
  const view = new DataView(new ArrayBuffer(44));
  const text = (/** @type {number} */ at, /** @type {string} */ letters) => [...letters].forEach((letter, i) => view.setUint8(at + i, letter.charCodeAt(0)));
  const number = (/** @type {number} */ at, /** @type {number} */ value) => view.setUint32(at, value, true);
  text(0, "RIFF");
  number(4, 36 + bytes);
  text(8, "WAVEfmt ");
  number(16, 16);
  number(20, 1 | (1 << 16)); // PCM, one channel
  number(24, RATE);
  number(28, 2 * RATE);
  number(32, 2 | (16 << 16)); // bytes of a frame, bits of a sample
  text(36, "data");
  number(40, bytes);
  return view;
}
