/** The inputs of a page that choose a model by name, by local files or a local folder, and by dropping files. */

import { chosenFiles, droppedFiles } from "./model-files.js";
import { onDrop, onSubmit } from "./page.js";
import { Problem } from "../worker/protocol.js";

/** @import { ProblemBox } from "./page.js" */

/**
 * @param {{ form: HTMLFormElement, name: HTMLInputElement, files: HTMLInputElement[], curtain: HTMLElement }} elements
 *   `name` is a field of `form`; `curtain` covers the page during a drag, see onDrop in page.js
 * @param {{ name(text: string): void, files(files: Map<string, File>): void, drop(files: Map<string, File>): unknown }} on
 *   the handlers of a submitted name, of chosen files and of dropped files; files are by path
 * @param {ProblemBox} problems  shows the errors that the handlers throw
 */
export function listenForModels({ form, name, files, curtain }, on, problems) {
  onSubmit(form, () => {
    try {
      on.name(name.value);
    } catch (error) {
      name.focus();
      problems.show(error);
    }
  });
  for (const input of files) {
    input.onchange = () => {
      const chosen = chosenFiles(input);
      if (chosen.size) on.files(chosen);
    };
    input.onclick = () => (input.value = ""); // otherwise, choosing the same files again would not be a change
  }
  onDrop(curtain, async (_, transfer) => {
    try {
      const dropped = await droppedFiles(transfer);
      if (dropped.size) await on.drop(dropped);
    } catch (error) {
      problems.show(new Problem("ReadError", `The dropped files could not be read: ${error}`, "Choose them instead."));
    }
  });
}
