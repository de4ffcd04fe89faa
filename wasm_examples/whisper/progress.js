/** The progress and the speed of a transcription. */

import { hearing, view } from "./elements.js";
import { clock } from "./spectrogram.js";

/** @typedef {{ position_s: number, duration_s: number, seconds: number, windows: number, encode_s: number, tokens: number, decode_s: number }} Stats */

// Encoding a window takes about as long as decoding it.
const ENCODER_SHARE = 0.5;

/** Show an event that Python sends while it hears a window. @param {any} event @param {{ window_s: number, duration_s: number }} lengths  0 while unknown */
export function showStage({ stage, share, position_s }, { window_s, duration_s }) {
  if (stage === "spectrogram") return hearing.update("Computing the spectrogram", share);
  const end_s = Math.min(duration_s, position_s + window_s) || position_s + window_s;
  const isWriting = stage === "decode";
  const done_s = (isWriting ? ENCODER_SHARE : share * ENCODER_SHARE) * (end_s - position_s);
  hearing.update(`${isWriting ? "Writing" : "Hearing"} ${clock(position_s)} to ${clock(Math.ceil(end_s))}`, duration_s ? Math.min(1, (position_s + done_s) / duration_s) : null);
}

/** @param {Stats} stats */
export function showSpeed({ position_s, duration_s, seconds, windows, encode_s, tokens, decode_s }) {
  const { figures } = view;
  figures.show("Heard", `${clock(position_s)} of ${clock(duration_s)}`);
  if (seconds) figures.show("Speed", `${(position_s / seconds).toFixed(1)} × real time`);
  if (windows) figures.show("Encoder", `${Math.round((1000 * encode_s) / windows)} ms per window`);
  if (decode_s) figures.show("Decoder", `${Math.round(tokens / decode_s)} tokens/s`);
}
