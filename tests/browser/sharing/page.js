/** Boot Pyodide here, or with the query "?worker" in a worker. */

if (location.search === "?worker") new Worker("boot.js", { type: "module" });
else import("./boot.js");
