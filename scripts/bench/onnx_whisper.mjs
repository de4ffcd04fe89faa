// onnxruntime-web on what whisper_onnx.py wrote: the encoder, and greedy steps of the decoder.
import * as ort from "./ort.wasm.min.mjs";

const LAYERS = 4, HEADS = 6, WIDTH = 64, BINS = 80, FRAMES = 3000;

/** @param {(name: string) => Promise<ArrayBuffer>} read @param {number} threads */
export async function open(read, threads) {
  ort.env.wasm.numThreads = threads;
  const load = async (name) => ort.InferenceSession.create(new Uint8Array(await read(name)));
  const [encoder, cross, step] = [await load("encoder.onnx"), await load("cross.onnx"), await load("step.onnx")];
  const mel = new ort.Tensor("float32", new Float32Array(BINS * FRAMES).map(Math.random), [1, BINS, FRAMES]);
  const { audio } = await encoder.run({ mel });
  const caches = (kind) => [...Array(LAYERS).keys()].flatMap((i) => [`${kind}_keys_${i}`, `${kind}_values_${i}`]);
  const [past, present] = [caches("past"), caches("present")];
  const empty = () => new ort.Tensor("float32", new Float32Array(HEADS * WIDTH), [1, HEADS, 1, WIDTH]);
  return {
    encode: async () => void (await encoder.run({ mel })),
    decode: async (count) => {
      const feeds = await cross.run({ audio });
      for (const name of past) feeds[name] = empty();
      let next = 50258;
      for (let i = 0; i < count; i++) {
        feeds.token = new ort.Tensor("int64", BigInt64Array.of(BigInt(next)), [1, 1]);
        feeds.position = new ort.Tensor("int64", BigInt64Array.of(BigInt(i)), [1]);
        const made = await step.run(feeds);
        for (const [j, name] of past.entries()) feeds[name] = made[present[j]];
        const logits = made.logits.data;
        next = 0;
        for (let j = 1; j < logits.length; j++) if (logits[j] > logits[next]) next = j;
      }
    },
  };
}
