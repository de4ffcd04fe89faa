/** `pipeline(task, model)` with arguments in the order of transformers.js; Python computes the results. */

import { Problem } from "../worker/protocol.js";
import { samplesOf } from "../sound/sound.js";
import { keywords, session } from "./session.js";

/** @import { Pipeline, PipelineOptions, TextStreamerOptions } from "./types.d.ts" */
/** @typedef {Record<string, any>} Named */

/** The arguments of a call before its options, by task; all others have one. */
const POSITIONS = {
  "question-answering": ["question", "context"],
  "zero-shot-classification": ["inputs", "candidate_labels"],
  "zero-shot-image-classification": ["inputs", "candidate_labels"],
};
const SOUNDS = ["automatic-speech-recognition"];
const PICTURES = ["image-classification", "image-feature-extraction", "zero-shot-image-classification"];

/** Passes generated text on, piece by piece. */
export class TextStreamer {
  /** @param {unknown} tokenizer @param {TextStreamerOptions} [options] */
  constructor(tokenizer, { skip_prompt = false, skip_special_tokens = true, callback_function = (text) => console.log(text) } = {}) {
    this.options = { skip_prompt, skip_special_tokens };
    this.write = callback_function;
  }
}

/** @param {string} task @param {string | null} [model] @param {PipelineOptions} [options] @returns {Promise<Pipeline>} */
export async function pipeline(task, model = null, { device = null, dtype = null, revision = null, progress_callback, ...options } = {}) {
  if (device === "webgpu") throw new Problem("NoDevice", "pipeline() computes on the CPU.", "Leave out device.");
  const { runtime } = await session(options);
  progress_callback?.({ status: "initiate", name: model ?? task });
  const number = await runtime.call("open_pipeline", keywords({ task, model, dtype, revision }), { onEvent: (file) => progress_callback?.(file) });
  progress_callback?.({ status: "ready", task, model: model ?? task });
  const names = POSITIONS[/** @type {keyof typeof POSITIONS} */ (task)] ?? ["inputs"];
  const call = async (/** @type {any[]} */ ...given) => {
    const positional = Object.fromEntries(names.map((name, i) => [name, given[i]]));
    const { streamer, ...others } = given[names.length] ?? {};
    if ("inputs" in positional) positional.inputs = await readable(task, positional.inputs);
    const run = { number, options: keywords({ ...positional, ...others }), streams: streamer?.options };
    return tensors(await runtime.call("run_pipeline", keywords(run), { onEvent: (text) => streamer?.write(text) }));
  };
  return Object.assign(call, { task, tokenizer: { task }, dispose: () => runtime.call("drop", { model: number }) });
}

/** Inputs as Python reads them: samples of sounds, and the bytes of pictures. @param {string} task @param {any} inputs @returns {Promise<any>} */
async function readable(task, inputs) {
  if (Array.isArray(inputs)) return Promise.all(inputs.map((each) => readable(task, each)));
  if (SOUNDS.includes(task)) return samples(inputs);
  if (PICTURES.includes(task)) return new Uint8Array(await (await blobOf(inputs)).arrayBuffer());
  return inputs;
}

/** @param {string | URL | Blob | Float32Array | Float64Array} sound */
async function samples(sound) {
  if (ArrayBuffer.isView(sound)) return Float32Array.from(/** @type {Float32Array} */ (sound));
  const blob = await blobOf(sound);
  const file = blob instanceof File ? blob : new File([blob], "The sound");
  const parts = [];
  for await (const { samples } of samplesOf(file, new AbortController().signal)) parts.push(samples);
  const integers = new Int16Array(await new Blob(parts).arrayBuffer());
  return Float32Array.from(integers, (value) => value / 32768);
}

/** @param {string | URL | Blob} source @returns {Promise<Blob>} */
async function blobOf(source) {
  if (source instanceof Blob) return source;
  const response = await fetch(source);
  if (!response.ok) throw new Problem("NoFile", `${source} answers ${response.status}.`, "Check the address.");
  return response.blob();
}

/** Results with tensors as objects with `data`, `dims`, `size` and `tolist()`. @param {any} result @returns {any} */
function tensors(result) {
  if (Array.isArray(result)) return result.map(tensors);
  if (!result?.dims) return result;
  return { ...result, size: result.data.length, tolist: () => nested(Array.from(result.data), result.dims) };
}

/** @param {any[]} values @param {number[]} dims @returns {any[]} */
function nested(values, dims) {
  if (dims.length < 2) return values;
  const size = values.length / dims[0];
  return Array.from({ length: dims[0] }, (_, i) => nested(values.slice(i * size, (i + 1) * size), dims.slice(1)));
}
