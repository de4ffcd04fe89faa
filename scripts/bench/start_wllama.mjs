// The page that scripts/bench.py start compares with: wllama writes the first word of a story, on one thread.

import { Wllama } from "./esm/index.min.js";

try {
  const { model } = await (await fetch("./job.json")).json();
  const wllama = new Wllama({ default: new URL("./esm/wasm/wllama.wasm", location.href).href }, { suppressNativeLog: true });
  await wllama.loadModelFromUrl(new URL(model, location.href).href, { n_threads: 1, n_ctx: 256 });
  const ready = performance.now() / 1000;
  const stream = await wllama.createCompletion({ prompt: "Once upon a time", max_tokens: 8, temperature: 1, top_p: 0.9, stream: true });
  for await (const chunk of stream) {
    if (!window.result && chunk.choices[0].text) window.result = { ready, done: performance.now() / 1000 };
  }
} catch (error) {
  window.failure = String(error?.stack ?? error);
}
