// node install_by_micropip.mjs PYODIDE_FOLDER WHEEL_URL: what JupyterLite, marimo and PyScript do with the address of a wheel.
import { pathToFileURL } from "node:url";

const [folder, url] = process.argv.slice(2);
const base = pathToFileURL(`${folder}/`).href;
const { loadPyodide } = await import(`${base}pyodide.mjs`);
const pyodide = await loadPyodide({ packageBaseUrl: base, packageCacheDir: folder });
await pyodide.loadPackage("micropip", { messageCallback: () => {} });
pyodide.globals.set("url", url);
const said = await pyodide.runPythonAsync(`
import micropip
await micropip.install(url)
import tallow as tl
from tallow import kernels
f"{(tl.ones(3) @ tl.ones(3)).item()} {kernels.info().summary}"
`);
console.log(said);
