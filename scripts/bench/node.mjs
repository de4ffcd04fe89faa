// node node.mjs FOLDER: measure the job in FOLDER/job.json inside Pyodide, print the result as JSON.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { measure } from "./inside.mjs";

const folder = process.argv[2];
const job = JSON.parse(readFileSync(`${folder}/job.json`, "utf8"));
const read = async (name) => {
  const bytes = readFileSync(`${folder}/${name}`);
  return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
};
const base = pathToFileURL(`${job.pyodide}/`).href;
const { loadPyodide } = await import(`${base}pyodide.mjs`);
const result = await measure((options) => loadPyodide({ packageCacheDir: job.pyodide, ...options }), base, read, job);
console.log(JSON.stringify(result));
