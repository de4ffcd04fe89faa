/** What Python needs to run cells: for this page, and for the documentation's blocks. */

const here = (/** @type {string} */ name) => new URL(name, import.meta.url);

export const APP = here("app.py");
/** Of Runtime.start. */
export const OPTIONS = {
  // Those in a folder are imported late: snapshots have what the others import.
  modules: ["pictures/displays.py", "pictures/figures.py", "pictures/heat_maps.py", "magics.py", "packages.py", "pypi/installing.py", "waits.py", "working_folder.py"].map(here),
  libraries: ["huggingface_tokenizers"],
};
