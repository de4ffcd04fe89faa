// onnxruntime-web on what whisper_onnx.py wrote, one thread: the encoder, and greedy steps of the decoder.
import * as ort from "./ort.wasm.min.mjs";

const LAYERS = 4, HEADS = 6, WIDTH = 64, BINS = 80, FRAMES = 3000;

/** @param {(name: string) => Promise<ArrayBuffer>} read */
export async function sessions(read) {
  ort.env.wasm.numThreads = 1;
  const open = async (name) => ort.InferenceSession.create(new Uint8Array(await read(name)));
  const [encoder, cross, step] = [await open("encoder.onnx"), await open("cross.onnx"), await open("step.onnx")];
  const mel = new ort.Tensor("float32", new Float32Array(BINS * FRAMES).map(Math.random), [1, BINS, FRAMES]);
  const { audio } = await encoder.run({ mel });
  const past = () => new ort.Tensor("float32", new Float32Array(LAYERS * HEADS * WIDTH), [LAYERS, 1, HEADS, 1, WIDTH]);
  return {
    encode: async () => void (await encoder.run({ mel })),
    decode: async (count) => {
      const { cross_keys, cross_values } = await cross.run({ audio });
      let [keys, values, next] = [past(), past(), 50258];
      for (let i = 0; i < count; i++) {
        const token = new ort.Tensor("int64", BigInt64Array.of(BigInt(next)), [1, 1]);
        const position = new ort.Tensor("int64", BigInt64Array.of(BigInt(i)), [1]);
        const made = await step.run({ token, position, keys, values, cross_keys, cross_values });
        [keys, values] = [made.new_keys, made.new_values];
        next = made.logits.data.reduce((best, value, at, all) => (value > all[best] ? at : best), 0);
      }
    },
  };
}
