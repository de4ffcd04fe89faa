/**
 * Models and Python for any page: the module of the npm package.
 *
 *     import { embed, load, pipeline, python, transcribe } from "tallow";
 *     const lm = await load("story");
 *     for await (const piece of lm.generate("Once")) document.body.append(piece);
 *
 * types.d.ts documents the functions. Python starts in a worker at the first call; all later calls use that worker.
 */

import { findFiles, parseGguf, parseModel } from "../page/model-files.js";
import { aborted } from "../page/page.js";
import { Problem } from "../worker/protocol.js";
import { samplesOf } from "../sound/sound.js";
import { keywords, session } from "./session.js";

/** @import { EmbedOptions, GenerateOptions, LanguageModel, LoadOptions, Options, PythonOptions, TranscribeOptions } from "./types.d.ts" */
/** @import { Runtime } from "../page/tallow.js" */
/** @import { Source } from "../worker/protocol.js" */
/** @typedef {"text" | "speech" | "vectors"} Kind  as in tasks.py */
/** @import { Session } from "./session.js" */

export { TextStreamer, pipeline } from "./pipeline.js";
export { close } from "./session.js";
export { Problem };

const STORY = "story";
const EXAMPLE_GGUF = "Qwen/Qwen3-0.6B-GGUF:Qwen3-0.6B-Q8_0.gguf";
const ENCODER = "sentence-transformers/all-MiniLM-L6-v2";
const WHISPER = "openai/whisper-tiny";
const HEADS = { config: "config.json", modules: "modules.json" };

/** @param {string | URL | Blob} [model] @param {LoadOptions} [options] @returns {Promise<LanguageModel>} */
export async function load(model = STORY, options = {}) {
  const { onProgress, signal = new AbortController().signal } = options;
  const { runtime } = await session(options);
  const { model: number, parameters } =
    model === STORY
      ? await runtime.call("load_packaged", { kind: "text" })
      : (await runtime.load(await textFiles(model, signal), { onProgress, signal })).info;
  return {
    parameters,
    /** @param {string} prompt @param {GenerateOptions} [options] */
    async *generate(prompt, { signal, ...sampling } = {}) {
      yield* run(runtime, { kind: "text", model: number, prompt: String(prompt), ...keywords(sampling) }, signal);
    },
    close: () => runtime.call("drop", { model: number }),
  };
}

/** @param {Blob} sound @param {TranscribeOptions} [options] */
export async function transcribe(sound, { model, language, task, onText, ...options } = {}) {
  const { signal = new AbortController().signal } = options;
  const file = sound instanceof File ? sound : new File([sound], "The sound");
  const current = await session(options);
  const number = await kept(current, "speech", model, options);
  const parts = [];
  for await (const { samples } of samplesOf(file, signal)) parts.push(samples);
  const samples = new Int16Array(await new Blob(parts).arrayBuffer());
  const steps = run(current.runtime, { kind: "speech", model: number, samples, ...keywords({ language, task }) }, signal);
  return resultOf(steps, (text) => onText?.(text));
}

/** @param {string | string[]} texts @param {EmbedOptions} [options] */
export async function embed(texts, { model = ENCODER, ...options } = {}) {
  const list = typeof texts === "string" ? [texts] : texts;
  const current = await session(options);
  const number = await kept(current, "vectors", model, options);
  const vectors = await resultOf(run(current.runtime, { kind: "vectors", model: number, texts: list }, options.signal));
  return typeof texts === "string" ? vectors[0] : vectors;
}

/** @param {string} code @param {PythonOptions} [options] */
export async function python(code, { variables = {}, onOutput, ...options } = {}) {
  const { runtime } = await session(options);
  const { value, fault } = await runtime.call("python", { code, variables }, { onEvent: onOutput });
  if (fault) throw Problem.from(fault);
  return value;
}

/** The number of a model, which is loaded at its first use. @param {Session} session @param {Kind} kind @param {string | undefined} name @param {Options} options */
function kept({ runtime, models }, kind, name, { onProgress, signal }) {
  const key = `${kind} ${name ?? ""}`;
  let number = models.get(key);
  if (!number) {
    number = loadFolder(runtime, kind, name, onProgress);
    models.set(key, number);
    number.catch(() => models.delete(key));
  }
  return signal ? Promise.race([number, aborted(signal)]) : number; // others may wait for the same model
}

/** Load a model from its folder; without a name, that of the package. @param {Runtime} runtime @param {Kind} kind @param {string | undefined} name @param {Options["onProgress"]} onProgress @returns {Promise<number>} */
async function loadFolder(runtime, kind, name, onProgress) {
  if (name === undefined) return (await runtime.call("load_packaged", { kind })).model;
  const { location } = parseModel(name, kind === "speech" ? WHISPER : ENCODER);
  const ask = (/** @type {Record<string, string | undefined>} */ texts) => runtime.call("file_names", { kind, ...keywords(texts) });
  const files = await findFiles(location, HEADS, ask, new AbortController().signal);
  return (await runtime.load(prefixed(kind, files), { onProgress })).info.model;
}

/** The file of a language model. @param {string | URL | Blob} model @param {AbortSignal} signal @returns {Promise<Record<string, Source>>} */
async function textFiles(model, signal) {
  if (model instanceof Blob) {
    const file = model instanceof File ? model : new File([model], "model.gguf");
    return prefixed("text", { [file.name]: { file } });
  }
  const { name, find } = parseGguf(`${model}`, EXAMPLE_GGUF);
  return prefixed("text", { [name]: await find(signal) });
}

/** @param {Kind} kind @param {Record<string, Source>} files @returns {Record<string, Source>} */
function prefixed(kind, files) {
  return Object.fromEntries(Object.entries(files).map(([path, source]) => [`${kind}/${path}`, source]));
}

/**
 * Run a model: yield texts, and return the result.
 * @param {Runtime} runtime @param {Record<string, unknown>} task @param {AbortSignal} [signal]
 * @returns {AsyncGenerator<string, any>}
 */
async function* run(runtime, task, signal) {
  signal?.throwIfAborted();
  const number = await runtime.call("begin", task);
  try {
    for await (const { text } of runtime.generate({ run: number }, { signal })) yield text;
    return await runtime.call("result", { run: number });
  } finally {
    runtime.call("end", { run: number }).catch(() => {}); // nothing to free if Python was ended
  }
}

/** @param {AsyncGenerator<string, any>} steps @param {(text: string) => void} [onText] */
async function resultOf(steps, onText = () => {}) {
  for (;;) {
    const { done, value } = await steps.next();
    if (done) return value;
    onText(value);
  }
}
