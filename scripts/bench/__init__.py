"""One module per claim; its `measure` runs in the place that is measured: CPython, or Pyodide in Node or Chromium."""
