"""One module per speed claim. Its function `measure` runs in CPython, or in Pyodide in Node or Chromium."""
