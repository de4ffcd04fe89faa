// Write a copy of a WebAssembly module whose memory is shared:  node shared_module.mjs URL-OF-memory-type.js SOURCE TARGET

import { readFileSync, writeFileSync } from "node:fs";

const [rewriter, source, target] = process.argv.slice(2);
const { shareModule } = await import(rewriter);
const { bytes, changed } = shareModule(new Uint8Array(readFileSync(source)));
if (!changed) throw new Error(`${source} has no memory that can be shared`);
writeFileSync(target, bytes);
