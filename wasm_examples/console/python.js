/** What Python needs to run cells: for this page, and for the documentation's blocks. */

const here = (/** @type {string} */ name) => new URL(name, import.meta.url);

export const APP = here("app.py");
/** Of Runtime.start. */
export const OPTIONS = {
  modules: ["displays.py", "figures.py", "heat_maps.py", "packages.py", "waits.py", "working_folder.py"].map(here),
  libraries: ["huggingface_tokenizers"],
};
