// A page with a plain Pyodide: NumPy first, then the times to install and import tallow's wheel, and to import `pipeline`.

import { loadPyodide } from "./pyodide.mjs";

try {
  const { wheel } = await (await fetch("./job.json")).json();
  const pyodide = await loadPyodide({ packages: ["numpy", "micropip"] });
  pyodide.globals.set("url", new URL(wheel, location.href).href);
  await pyodide.runPythonAsync("import numpy, micropip");
  const times = [performance.now()];
  await pyodide.runPythonAsync("await micropip.install(url)");
  times.push(performance.now());
  await pyodide.runPythonAsync("import tallow");
  times.push(performance.now());
  await pyodide.runPythonAsync("from tallow.transformers import pipeline");
  times.push(performance.now());
  const [install, imported, pipeline] = times.slice(1).map((time, i) => (time - times[i]) / 1000);
  window.result = { install, import: imported, pipeline };
} catch (error) {
  window.failure = String(error?.stack ?? error);
}
