/**
 * Links with the state of a page's form. The state is in the fragment, which browsers do not send to the server.
 *
 *     const link = new ShareLink({ prompt: page.prompt, seed: page.seed }, { button, note });
 *     link.onOpen = () => show();
 *
 * A link fills the form and starts nothing, because anybody can write a link.
 */

import { fragmentOf, readFragment } from "./fragment.js";
import { Problem } from "../worker/protocol.js";

/**
 * A control of a form. `accepts` is for what is not a control of HTML: whether `value` may be set to this text.
 * @typedef {{ value: string, accepts?: (text: string) => boolean }} Field
 */

const MAX_CHARACTERS = 20_000; // in a field whose maximum is not in the page

export class ShareLink {
  /** Called when the user opens another link, or goes back or forward, after the form has been filled. */
  onOpen = () => {};
  #fields;
  #note;
  /** @type {Record<string, string>} */
  #defaults;

  /**
   * Fill the fields from the page's address.
   * @param {Record<string, Field>} fields  by their names in links; their current values are those of a page without a link
   * @param {{ button: HTMLElement, note: HTMLElement }} elements  `button` copies a link, `note` shows what happened
   */
  constructor(fields, { button, note }) {
    this.#fields = fields;
    this.#note = note;
    this.#defaults = this.#values();
    button.onclick = () => this.#copy();
    if (location.hash) this.#open();
    addEventListener("hashchange", () => {
      this.#open();
      this.onOpen();
    });
  }

  #open() {
    let values;
    try {
      values = readFragment();
      this.#check(values);
      this.#note.textContent = "";
    } catch (error) {
      values = {};
      const { message } = /** @type {Error} */ (error);
      this.#note.textContent = `${message} The page shows its defaults. Ask for the link again; it may have been cut off.`;
    }
    for (const [name, value] of Object.entries({ ...this.#defaults, ...values })) this.#fields[name].value = value;
  }

  /** @param {Record<string, string>} values */
  #check(values) {
    for (const [name, text] of Object.entries(values)) {
      if (!Object.hasOwn(this.#fields, name)) throw new Problem("BadLink", `The link is damaged: this page has no “${name.slice(0, 40)}”.`);
      if (!accepts(this.#fields[name], text)) throw new Problem("BadLink", `The link is damaged: its ${name} cannot be used.`);
    }
  }

  async #copy() {
    const link = new URL(location.href);
    link.hash = fragmentOf(this.#values());
    if (link.href !== location.href) history.pushState(null, "", link);
    try {
      await navigator.clipboard.writeText(link.href);
      this.#note.textContent = "The link was copied, and is now this page's address.";
    } catch {
      this.#note.textContent = "The browser does not let the page copy. The link is now this page's address.";
    }
  }

  #values() {
    return Object.fromEntries(Object.entries(this.#fields).map(([name, { value }]) => [name, value]));
  }
}

/** Whether a field can have this value. @param {Field} field @param {string} text */
function accepts(field, text) {
  if (field.accepts) return field.accepts(text);
  if (field instanceof HTMLSelectElement) return [...field.options].some(({ value }) => value === text);
  if (field instanceof HTMLTextAreaElement) return fits(field, text);
  if (!(field instanceof HTMLInputElement)) return true;
  const probe = /** @type {HTMLInputElement} */ (field.cloneNode());
  probe.value = text; // which the browser changes if the field cannot have it
  const { rangeOverflow, rangeUnderflow } = probe.validity;
  return fits(field, text) && probe.value === text && !(text === "" && field.type === "number") && !rangeOverflow && !rangeUnderflow;
}

/** @param {HTMLInputElement | HTMLTextAreaElement} field @param {string} text */
function fits({ maxLength }, text) {
  return text.length <= (maxLength < 0 ? MAX_CHARACTERS : maxLength);
}
