// Run bytecode_writer.py in Pyodide:  node bytecode_writer.mjs PYODIDE WRITER FOLDER PREFIX
//
// PYODIDE: folder of the Pyodide distribution; WRITER: path of bytecode_writer.py; FOLDER holds source.zip and gets
// target.zip; PREFIX: as in the function called.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [distribution, writer, folder, prefix] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${distribution}/pyodide.mjs`).href);
// Without the columns of each instruction, which Python shows below lines of tracebacks: a fifth of the bytes that pages load.
const pyodide = await loadPyodide({ env: { PYTHONNODEBUGRANGES: "1" } });
pyodide.mountNodeFS("/archives", folder);
pyodide.FS.writeFile("/home/pyodide/bytecode_writer.py", readFileSync(writer));
pyodide.pyimport("bytecode_writer").compile_file("/archives/source.zip", "/archives/target.zip", prefix);
