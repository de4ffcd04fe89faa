// What Node and the page do alike: boot Pyodide, unpack tallow and the measuring modules, measure, and return the result.

/** @typedef {{ name: string, options: object, checkpoints: string[], runC: boolean, threads: number }} Job */

/** @param {(options: object) => Promise<any>} loadPyodide
 *  @param {string} base URL or path of the Pyodide distribution
 *  @param {(name: string) => Promise<ArrayBuffer>} read a file that the job names
 *  @param {Job} job
 *  @param {Record<string, any>} [rivals] other libraries, which `measure` in Python takes by name */
export async function measure(loadPyodide, base, read, job, rivals) {
  return (await session(loadPyodide, base, read, job, rivals))();
}

/** Boot Pyodide, and return a function that measures, once or again: the parameters are those of `measure`.
 *  @param {(options: object) => Promise<any>} loadPyodide @param {string} base
 *  @param {(name: string) => Promise<ArrayBuffer>} read @param {Job} job
 *  @param {Record<string, any>} [rivals] */
export async function session(loadPyodide, base, read, job, rivals = {}) {
  const pyodide = await loadPyodide({ packageBaseUrl: base });
  await pyodide.loadPackage("numpy", { messageCallback: () => {} });
  pyodide.FS.mkdirTree("/bench");
  pyodide.unpackArchive(await read("bench.zip"), "zip", { extractDir: "/bench" });
  for (const name of job.checkpoints) pyodide.FS.writeFile(`/bench/${name}`, new Uint8Array(await read(name)));
  pyodide.globals.set("job_text", JSON.stringify(job));
  if (job.runC) rivals = { ...rivals, run_c: await runC(read, job.checkpoints) };
  pyodide.globals.set("rivals", pyodide.toPy(rivals, { depth: 1 }));
  return async () => JSON.parse(await pyodide.runPythonAsync(MEASURE));
}

const MEASURE = `
import importlib, json, os, sys
os.chdir("/bench")
sys.path.insert(0, "/bench")
job = json.loads(job_text)
module = importlib.import_module(f"bench.{job['name']}")
if job["threads"] > 1:
    await importlib.import_module("bench.threads").start(job["threads"])
result = module.measure(job["options"], **rivals)
if "tallow" in sys.modules:
    from tallow import kernels
    result["library"] = str(kernels.info().library)
json.dumps(result)
`;

/** run.c on each checkpoint: a function that makes tokens from the named one and returns its tokens per second.
 *  @param {(name: string) => Promise<ArrayBuffer>} read
 *  @param {string[]} checkpoints */
async function runC(read, checkpoints) {
  // As tallow does with its kernels: relaxed SIMD where the engine knows it, which Node 20 does not.
  const relaxed = await read("run_c-relaxed-simd.wasm");
  const module = await WebAssembly.compile(WebAssembly.validate(relaxed) ? relaxed : await read("run_c-simd128.wasm"));
  const generate = {};
  for (const name of checkpoints.filter((name) => !name.endsWith(".gguf"))) {
    // What run.c imports is for files and the terminal; nothing of it is called while tokens are made.
    const imports = {};
    for (const { module: space, name: fn } of WebAssembly.Module.imports(module)) (imports[space] ??= {})[fn] = () => 0;
    const { exports } = await WebAssembly.instantiate(module, imports);
    exports._initialize?.();
    const checkpoint = new Uint8Array(await read(name));
    const at = exports.bench_load(checkpoint.length, 0);
    new Uint8Array(exports.memory.buffer, at, checkpoint.length).set(checkpoint);
    exports.bench_load(checkpoint.length, 1);
    generate[name] = exports.bench_generate;
  }
  return (name, steps) => {
    generate[name](8); // lets the engine compile
    const start = performance.now();
    generate[name](steps);
    return (steps * 1000) / (performance.now() - start);
  };
}
