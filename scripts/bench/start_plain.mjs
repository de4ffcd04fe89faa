// A page with a plain Pyodide: NumPy first, then the time to install and import tallow's wheel.

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
  window.result = { install: (times[1] - times[0]) / 1000, import: (times[2] - times[1]) / 1000 };
} catch (error) {
  window.failure = String(error?.stack ?? error);
}
