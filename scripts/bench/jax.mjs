// jax-js on WebAssembly: products of matrices.

/** Return a function of two shapes, which returns one that computes a product of random matrices and waits for it.
 *  @param {number} threads */
export async function open(threads) {
  // It has a thread for each core.
  Object.defineProperty(navigator, "hardwareConcurrency", { value: threads });
  const { blockUntilReady, init, numpy } = await import("./jax/index.js");
  await init("wasm");
  const random = ([m, n]) => numpy.array(new Float32Array(m * n).map(() => Math.random() - 0.5), { shape: [m, n], device: "wasm" });
  return async (...shapes) => {
    const [a, b] = shapes.map(random);
    return async () => void (await blockUntilReady(numpy.matmul(a.ref, b.ref))).dispose();
  };
}
