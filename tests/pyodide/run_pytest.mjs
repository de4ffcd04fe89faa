// Run pytest inside Pyodide in Node:  node run_pytest.mjs CONFIG.json
//
// CONFIG.json: {
//   pyodide: folder of the Pyodide distribution,
//   snapshot: URL of a snapshot of Python's memory to start from, or null: then a plain start,
//   shared:  whether Python's memory is a shared one, as on pages that are cross-origin isolated,
//   stdlib:  path of the archive with Python's own library,
//   wheels:  paths of wheels to install, NumPy's first if there is no snapshot,
//   modules: { name in Python: path of a JavaScript module },
//   mounts:  { path inside: path outside },
//   files:   { path inside: text },
//   env:     { name: value },
//   path:    folders where Python finds more packages,
//   cwd:     path inside,
//   args:    pytest's arguments,
//   threads: number of threads for kernels; several need a shared memory
// }
// The exit status is pytest's.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

import { shareMemory } from "../../web/threads/shared-memory.js";
import { start } from "../../web/boot/start.js";

const config = JSON.parse(readFileSync(process.argv[2], "utf8"));
const base = pathToFileURL(`${config.pyodide}/`).href;
const options = {
  packageBaseUrl: base,
  packageCacheDir: config.pyodide, // else Node keeps a second copy of each wheel in ./node_modules
  env: { HOME: "/home/pyodide", PYTHONDONTWRITEBYTECODE: "1", ...config.env },
};
const { pyodide, sharing } = await (config.snapshot ? startFromSnapshot() : startPlain());
if (pyodide._module.HEAPU8.buffer instanceof SharedArrayBuffer !== config.shared) throw new Error("Python's memory is of the other type");
const wheels = config.wheels.map((path) => pathToFileURL(path).href);
await pyodide.loadPackage(wheels, { messageCallback: () => {} });

for (const [name, path] of Object.entries(config.modules)) pyodide.registerJsModule(name, await import(pathToFileURL(path).href));
for (const [inside, outside] of Object.entries(config.mounts)) pyodide.mountNodeFS(inside, outside);
for (const [inside, text] of Object.entries(config.files)) pyodide.FS.writeFile(inside, text);
if (config.threads > 1) await (await import("./threads.mjs")).beginThreads(pyodide, sharing.memory, config.threads);

const main = pyodide.runPython(`
def main(cwd, path, args):
    import importlib
    import os
    import sys
    sys.path += path
    import pytest
    importlib.invalidate_caches()  # for packages in what has been mounted
    os.chdir(cwd)
    return int(pytest.main(list(args)))
main
`);
process.exit(main(config.cwd, config.path, config.args));

async function startPlain() {
  const sharing = config.shared ? shareMemory() : null;
  const { loadPyodide } = await import(`${base}pyodide.mjs`);
  const loading = loadPyodide({ ...options, stdLibURL: config.stdlib });
  return { sharing, pyodide: await (sharing ? Promise.race([loading, sharing.failure]) : loading) };
}

async function startFromSnapshot() {
  if (!config.shared) globalThis.crossOriginIsolated = false;
  const checkSource = readFileSync(new URL("../../web/boot/memory_check.py", import.meta.url), "utf8");
  const indexURL = `${config.pyodide}/`;
  const started = await start({ ...options, indexURL, checkSource, snapshot: { url: config.snapshot, sha256: null } });
  if (started.snapshot !== true) throw new Error(`no start from the snapshot: ${started.snapshot}`);
  return started;
}
