// What Node and the page do alike: boot Pyodide, unpack tallow and the measuring modules, measure, and return the result.

/** @typedef {{ name: string, options: object, checkpoints: string[], steps: number, repeats: number }} Job */

/** @param {(options: object) => Promise<any>} loadPyodide
 *  @param {string} base URL or path of the Pyodide distribution
 *  @param {(name: string) => Promise<ArrayBuffer>} read a file that the job names
 *  @param {Job} job */
export async function measure(loadPyodide, base, read, job) {
  const pyodide = await loadPyodide({ packageBaseUrl: base });
  await pyodide.loadPackage("numpy", { messageCallback: () => {} });
  pyodide.FS.mkdirTree("/bench");
  pyodide.unpackArchive(await read("bench.zip"), "zip", { extractDir: "/bench" });
  for (const name of job.checkpoints) pyodide.FS.writeFile(`/bench/${name}`, new Uint8Array(await read(name)));
  pyodide.globals.set("job", JSON.stringify(job));
  const result = pyodide.runPython(`
import importlib, json, os, sys
os.chdir("/bench")
sys.path.insert(0, "/bench")
job = json.loads(job)
result = importlib.import_module(f"bench.{job['name']}").measure(job["options"])
if "tallow" in sys.modules:
    from tallow import kernels
    result["library"] = str(kernels.info().library)
json.dumps(result)
`);
  return JSON.parse(result);
}

/** Tokens per second of each repeat of run.c, for each checkpoint.
 *  @param {(name: string) => Promise<ArrayBuffer>} read
 *  @param {Job} job */
export async function measureRunC(read, job) {
  const module = await WebAssembly.compile(await read("run_c.wasm"));
  const speeds = {};
  for (const name of job.checkpoints) {
    // What run.c imports is for files and the terminal; nothing of it is called while tokens are made.
    const imports = {};
    for (const { module: space, name: fn } of WebAssembly.Module.imports(module)) (imports[space] ??= {})[fn] = () => 0;
    const { exports } = await WebAssembly.instantiate(module, imports);
    exports._initialize?.();
    const checkpoint = new Uint8Array(await read(name));
    const at = exports.bench_load(checkpoint.length, 0);
    new Uint8Array(exports.memory.buffer, at, checkpoint.length).set(checkpoint);
    exports.bench_load(checkpoint.length, 1);
    exports.bench_generate(Math.min(16, job.steps)); // lets the engine compile
    speeds[name] = [];
    for (let i = 0; i < job.repeats; i++) {
      const start = performance.now();
      exports.bench_generate(job.steps);
      speeds[name].push((job.steps * 1000) / (performance.now() - start));
    }
  }
  return speeds;
}
