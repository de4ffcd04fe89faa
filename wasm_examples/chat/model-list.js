/** The list of models to choose from, with their sizes and whether they fit this device. */

import { element, megabytes } from "../../web/page/page.js";
import { memoryOfDevice } from "./models.js";

/** @import { Preset } from "./models.js" */

const GIGABYTE = 1e9;

export class ModelList {
  #list = element("presets", HTMLElement);

  /** @param {Preset[]} presets @param {(preset: Preset) => void} onChoose */
  show(presets, onChoose) {
    const most = memoryOfDevice();
    this.#list.replaceChildren(
      ...presets.map((preset) => {
        const { name, about, bytes, memory, url } = preset;
        const button = document.createElement("button");
        button.type = "button";
        button.dataset.testid = "preset";
        button.dataset.name = name;
        button.dataset.url = url;
        button.setAttribute("aria-pressed", "false");
        const size = part("span", "size", bytes ? megabytes(bytes) : "built in");
        const details = part("small", "", about);
        const fits = memory <= most;
        const needs = memory ? `needs ${(memory / GIGABYTE).toFixed(1)} GB` : "";
        const fit = part("small", fits ? "fits" : "large", fits ? [needs, "fits this device"].filter(Boolean).join(", ") : `${needs}, more than this device may have`);
        fit.dataset.fit = fit.textContent ?? "";
        button.append(name, size, details, fit);
        button.onclick = () => onChoose(preset);
        const item = document.createElement("li");
        item.append(button);
        return item;
      }),
    );
  }

  /** Mark the model in memory. @param {string | null} name */
  mark(name) {
    for (const button of this.#list.querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(button.dataset.name === name));
    }
  }

  /** Mark the models that the browser stores. @param {Set<string>} urls */
  markStored(urls) {
    for (const button of this.#list.querySelectorAll("button")) {
      const fit = /** @type {HTMLElement} */ (button.querySelector("[data-fit]"));
      fit.textContent = urls.has(button.dataset.url ?? "") ? `${fit.dataset.fit}, kept in this browser` : (fit.dataset.fit ?? "");
    }
  }
}

/** @param {string} tag @param {string} className @param {string} text */
function part(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.textContent = text;
  return made;
}
