/** Save the text as a file. */

import { save } from "../../web/page.js";
import { view } from "./elements.js";

const { status, problems } = view;
export const NOTHING = "There is no text yet.";

/** @param {string} kind  the ending of the file @param {string} text @param {string} sound  its file name @param {() => Promise<string>} write  returns the content */
export async function saveText(kind, text, sound, write) {
  if (!text) return status.remark(NOTHING);
  try {
    const name = `${sound.replace(/\.[^.]*$/, "")}.${kind}`;
    save(name, await write());
    status.remark(`Saved ${name}.`);
  } catch (error) {
    problems.show(error);
  }
}
