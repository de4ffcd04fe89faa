// onnxruntime-web on a model of one node, MatMul. Each run copies the operands into its memory: it has no other way.
import * as ort from "./ort.wasm.min.mjs";

const FLOAT = 1;

/** @param {(name: string) => Promise<ArrayBuffer>} read @param {number} threads
 *  Return a function of two shapes, which returns one that computes a product of random matrices. */
export async function open(read, threads) {
  ort.env.wasm.numThreads = threads;
  return async (...shapes) => {
    const [[m, n], [, p]] = shapes;
    const session = await ort.InferenceSession.create(model([m, n], [n, p], [m, p]));
    const [a, b] = shapes.map((shape) => new ort.Tensor("float32", new Float32Array(shape[0] * shape[1]).map(() => Math.random() - 0.5), shape));
    return async () => void (await session.run({ a, b }));
  };
}

/** The bytes of y = a · b as onnx.proto's ModelProto. @param {number[][]} shapes */
function model(...shapes) {
  const [a, b, y] = ["a", "b", "y"].map((name, i) => value(name, shapes[i]));
  const node = [text(1, "a"), text(1, "b"), text(2, "y"), text(4, "MatMul")];
  const graph = [message(1, ...node), text(2, "matmul"), message(11, a), message(11, b), message(12, y)];
  return Uint8Array.from([...number(1, 8), ...message(7, ...graph), ...message(8, number(2, 13))]);
}

/** The fields of a ValueInfoProto. @param {string} name @param {number[]} shape */
function value(name, shape) {
  const dims = shape.map((size) => message(1, number(1, size)));
  return [...text(1, name), ...message(2, message(1, number(1, FLOAT), message(2, ...dims)))];
}

const number = (field, n) => [field << 3, ...varint(n)];
const text = (field, string) => message(field, [...new TextEncoder().encode(string)]);
const message = (field, ...parts) => [(field << 3) | 2, ...varint(parts.flat().length), ...parts.flat()];
const varint = (n) => (n < 128 ? [n] : [(n & 127) | 128, ...varint(n >> 7)]);
