// wllama, llama.cpp in WebAssembly, on the claim's GGUF files: greedy tokens after a short prompt.
import { LoggerWithoutDebug, Wllama } from "./index.min.js";

/** Return a function of the name of a file and a number of tokens, which resolves to wllama's own count of tokens per
 *  second: it excludes the messages between the page and wllama's worker.
 *  @param {(name: string) => Promise<ArrayBuffer>} read
 *  @param {string[]} names @param {number} threads */
export async function open(read, names, threads) {
  const models = {};
  for (const name of names.filter((name) => name.endsWith(".gguf"))) {
    const paths = { default: new URL("./wllama.wasm", location.href).href };
    models[name] = new Wllama(paths, { suppressNativeLog: true, logger: LoggerWithoutDebug });
    await models[name].loadModel([new Blob([await read(name)])], { n_threads: threads, n_ctx: 1024, n_gpu_layers: 0 });
  }
  return async (name, steps) => {
    const settings = { prompt: "t5", max_tokens: steps, temperature: 0, top_k: 1, ignore_eos: true, cache_prompt: false };
    const { timings } = await models[name].createCompletion(settings);
    if (timings.predicted_n < steps) throw new Error(`wllama: ${timings.predicted_n} of ${steps} tokens`);
    return timings.predicted_per_second;
  };
}
