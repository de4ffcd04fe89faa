/** Save the text as a file. */

import { save } from "../../web/page/page.js";
import { view } from "./elements.js";

const { status, problems } = view;

/** @param {string} kind  the ending of the file @param {string} sound  its file name @param {() => Promise<string>} write  returns the content */
export async function saveText(kind, sound, write) {
  try {
    const name = `${sound.replace(/\.[^.]*$/, "")}.${kind}`;
    save(name, await write());
    status.remark(`Saved ${name}.`);
  } catch (error) {
    problems.show(error);
  }
}
