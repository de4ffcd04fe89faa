/** A text field for Python with colours: the coloured code lies under the field, whose own text is transparent. */

import { coloured } from "./colours.js";

export class Editor {
  #field;
  #colours = document.createElement("pre");
  #isPlain;
  #shown = "";

  /** @param {HTMLTextAreaElement} field @param {() => boolean} isPlain  whether the text has no colours now */
  constructor(field, isPlain) {
    this.#field = field;
    this.#isPlain = isPlain;
    const box = Object.assign(document.createElement("div"), { className: "editor" });
    this.#colours.className = "python";
    this.#colours.setAttribute("aria-hidden", "true");
    const focused = document.activeElement === field;
    field.replaceWith(box);
    box.append(this.#colours, field);
    if (focused) field.focus();
    field.addEventListener("input", () => this.update());
    field.addEventListener("scroll", () => this.#scroll());
  }

  /** Show the field's text, which a script has changed. */
  update() {
    const { value } = this.#field;
    this.#field.rows = value.split("\n").length;
    const key = `${this.#isPlain()} ${value}`;
    if (key === this.#shown) return;
    this.#shown = key;
    this.#colours.replaceChildren(this.#isPlain() ? value : coloured(value));
    this.#scroll();
  }

  #scroll() {
    this.#colours.style.transform = `translate(${-this.#field.scrollLeft}px, ${-this.#field.scrollTop}px)`;
  }
}
