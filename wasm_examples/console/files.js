/** The files of Python's working folder: brought by the user, written by code, saved to the downloads. */

import { element, megabytes, onDrop, save } from "../../web/page/page.js";

/** @import { PageView } from "../../web/page/page.js" */
/** @import { Session } from "./session.js" */

const KILOBYTE = 1000;

export class Files {
  #session;
  #view;
  #list = element("files", HTMLElement);
  /** Takes files that are not for the working folder. @type {(file: File) => boolean} */
  #takes;

  /** @param {Session} session @param {PageView} view @param {(file: File) => boolean} takes  whether a file was taken by something else */
  constructor(session, view, takes) {
    this.#session = session;
    this.#view = view;
    this.#takes = takes;
    const choice = element("choose-files", HTMLInputElement);
    choice.onchange = () => {
      this.add([...(choice.files ?? [])]);
      choice.value = ""; // so that the same file can be chosen again
    };
    onDrop(element("drop", HTMLElement), (files) => this.add(files));
  }

  /** Put files into the working folder. @param {File[]} dropped */
  async add(dropped) {
    const files = dropped.filter((file) => !this.#takes(file));
    if (!files.length) return;
    const { status, problems } = this.#view;
    problems.hide();
    try {
      await this.#session.addFiles(files);
      status.remark(`${files.map(({ name }) => name).join(", ")}: now in Python's working folder.`);
    } catch (error) {
      problems.show(error);
    }
    await this.show();
  }

  /** Show the files that are there now. */
  async show() {
    const files = await this.#session.files().catch(() => []); // Python was restarted meanwhile
    this.#list.replaceChildren(...files.map((file) => this.#item(file)));
  }

  /** @param {{ name: string, bytes: number }} file */
  #item({ name, bytes }) {
    const item = document.createElement("li");
    const label = Object.assign(document.createElement("span"), { className: "name", textContent: name });
    const size = Object.assign(document.createElement("span"), { className: "size", textContent: bytes < KILOBYTE ? `${bytes} B` : megabytes(bytes) });
    item.append(label, size);
    item.append(this.#button("Save", name, async () => save(name.split("/").pop() ?? name, await this.#session.readFile(name))));
    item.append(this.#button("Delete", name, () => this.#session.removeFile(name)));
    return item;
  }

  /** @param {string} verb @param {string} name @param {() => Promise<unknown>} action */
  #button(verb, name, action) {
    const button = Object.assign(document.createElement("button"), { type: "button", className: "quiet", textContent: verb });
    button.setAttribute("aria-label", `${verb} ${name}`);
    button.onclick = async () => {
      try {
        await action();
      } catch (error) {
        this.#view.problems.show(error);
      }
      await this.show();
    };
    return button;
  }
}
