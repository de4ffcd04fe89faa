/** The inputs of a model: a form for each, by kind. */

import { samplesOf } from "../../web/sound/sound.js";
import { Problem } from "../../web/worker/protocol.js";
import { PictureField } from "./picture-field.js";

/**
 * An input of a model. `shape` has names or null for dims that the file leaves open; `kinds` are those that fit, the likeliest first;
 * `size` is that of a picture, whose dims may be open; `scale` its likeliest range.
 * @typedef {{ name: string, dtype: string, scale: string, shape: (number | string | null)[], kinds: Kind[], size: { height: number | null, width: number | null, channels: number | null } }} Input
 * @typedef {"picture" | "sound" | "text" | "numbers"} Kind
 * @typedef {(method: string, keywords: Record<string, unknown>) => Promise<any>} Call  calls Python
 * @typedef {{ element: HTMLElement, give(call: Call, signal: AbortSignal): Promise<unknown>, close?(): void }} Field
 */

/** @type {Record<Kind, string>} */
const KINDS = { picture: "Picture", sound: "Sound", text: "Text", numbers: "Numbers" };
const FILLS = { random: "Random, from 0 to 1", zeros: "Zeros", ones: "Ones", range: "0, 1, 2, …", list: "These numbers" };

export class Inputs {
  #place;
  /** @type {InputForm[]} */
  #forms = [];

  /** @param {HTMLElement} place */
  constructor(place) {
    this.#place = place;
  }

  /** Show the forms of a model. @param {Input[]} inputs */
  show(inputs) {
    for (const form of this.#forms) form.close();
    this.#forms = inputs.map((input) => new InputForm(input));
    this.#place.replaceChildren(...this.#forms.map(({ element }) => element));
  }

  /** Pass what the forms hold to Python. @param {Call} call @param {AbortSignal} signal @throws {Problem} a form is not complete */
  async give(call, signal) {
    for (const form of this.#forms) await form.give(call, signal);
  }

  /** The picture of the first input that has one, for what is drawn over it. @returns {HTMLCanvasElement | null} */
  get picture() {
    return this.#forms.map((form) => form.picture).find(Boolean) ?? null;
  }

  /** Use a file that was dropped, where it fits. @param {File} file @returns {boolean}  whether it does */
  take(file) {
    return this.#forms.some((form) => form.take(file));
  }
}

class InputForm {
  element = document.createElement("fieldset");
  #input;
  /** @type {Field} */
  #field;
  #body = document.createElement("div");

  /** @param {Input} input */
  constructor(input) {
    this.#input = input;
    this.element.dataset.testid = `input-${input.name}`;
    const legend = Object.assign(document.createElement("legend"), { textContent: input.name });
    const dims = Object.assign(document.createElement("p"), { className: "hint mono", textContent: `${input.dtype} ${input.shape.map((dim) => dim ?? "?").join(" × ") || "scalar"}` });
    this.element.append(legend, dims);
    if (input.kinds.length > 1) this.element.append(this.#kindChoice());
    this.#body.className = "input-body";
    this.element.append(this.#body);
    this.#field = this.#show(input.kinds[0]);
  }

  get picture() {
    return this.#field instanceof PictureField ? this.#field.shown : null;
  }

  /** @param {Call} call @param {AbortSignal} signal */
  give(call, signal) {
    return this.#field.give(call, signal);
  }

  close() {
    this.#field.close?.();
  }

  /** @param {File} file */
  take(file) {
    if (!("take" in this.#field)) return false;
    return /** @type {{ take(file: File): boolean }} */ (/** @type {unknown} */ (this.#field)).take(file);
  }

  #kindChoice() {
    const { kinds, name } = this.#input;
    return choice("Kind", `kind-${name}`, Object.fromEntries(kinds.map((kind) => [kind, KINDS[kind]])), (kind) => {
      this.close();
      this.#field = this.#show(/** @type {Kind} */ (kind));
    }).label;
  }

  /** @param {Kind} kind @returns {Field} */
  #show(kind) {
    const field = {
      picture: () => new PictureField(this.#input),
      sound: () => new SoundField(this.#input),
      text: () => new TextField(this.#input),
      numbers: () => new NumbersField(this.#input),
    }[kind]();
    this.#body.replaceChildren(field.element);
    return field;
  }
}

class SoundField {
  element = document.createElement("div");
  #input;
  /** @type {File | null} */
  #file = null;
  #picker = Object.assign(document.createElement("input"), { type: "file", accept: "audio/*,video/*" });

  /** @param {Input} input */
  constructor(input) {
    this.#input = input;
    this.#picker.dataset.testid = `sound-${input.name}`;
    this.#picker.onchange = () => (this.#file = this.#picker.files?.[0] ?? null);
    this.element.append(labelled("An audio or video file; it is mixed to one channel of 16 kHz", this.#picker));
  }

  /** @param {File} file */
  take(file) {
    if (!/^(audio|video)\//.test(file.type)) return false;
    this.#file = file;
    return true;
  }

  /** @param {Call} call @param {AbortSignal} signal */
  async give(call, signal) {
    const { name } = this.#input;
    if (!this.#file) throw new Problem("NoSound", `The input ${name} has no sound yet.`, "Choose a file, or another kind of input.");
    /** @type {Int16Array[]} */
    const parts = [];
    for await (const { samples } of samplesOf(this.#file, signal)) parts.push(samples);
    const samples = new Int16Array(parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of parts) {
      samples.set(part, at);
      at += part.length;
    }
    await call("give_sound", { name, samples });
  }
}

class TextField {
  element = document.createElement("div");
  #input;
  #text = document.createElement("textarea");

  /** @param {Input} input */
  constructor(input) {
    this.#input = input;
    this.#text.rows = 2;
    this.#text.dir = "auto";
    this.#text.maxLength = 20_000;
    this.#text.value = "Once upon a time there was a little";
    this.#text.dataset.testid = `text-${input.name}`;
    this.element.append(labelled("Text", this.#text));
  }

  /** @param {Call} call */
  give(call) {
    return call("give_text", { name: this.#input.name, text: this.#text.value });
  }
}

class NumbersField {
  element = document.createElement("div");
  #input;
  #fill;
  #list = document.createElement("textarea");
  /** @type {Map<number, HTMLInputElement>}  of the dims that the file leaves open, by axis */
  #dims = new Map();

  /** @param {Input} input */
  constructor(input) {
    this.#input = input;
    const isInteger = /int|bool/.test(input.dtype);
    this.#fill = choice("Values", `fill-${input.name}`, FILLS, (fill) => (list.hidden = fill !== "list"));
    this.#fill.select.value = /mask/.test(input.name) ? "ones" : isInteger ? "zeros" : "random";
    this.#list.rows = 2;
    this.#list.placeholder = "1, 2, 3";
    this.#list.dataset.testid = `numbers-${input.name}`;
    const list = labelled("Numbers, row by row", this.#list);
    list.hidden = true;
    const fields = document.createElement("div");
    fields.className = "fields";
    fields.append(this.#fill.label);
    input.shape.forEach((dim, axis) => typeof dim === "number" || fields.append(this.#dimField(dim ?? `dim ${axis}`, axis)));
    this.element.className = "input-body";
    this.element.append(fields, list);
  }

  /** @param {string} name @param {number} axis */
  #dimField(name, axis) {
    const field = Object.assign(document.createElement("input"), { type: "number", min: "0", max: "1000000", step: "1", value: axis ? "8" : "1" });
    field.dataset.testid = `dim-${this.#input.name}-${axis}`;
    this.#dims.set(axis, field);
    return labelled(name, field);
  }

  /** @param {Call} call */
  give(call) {
    const { name, shape } = this.#input;
    const dims = shape.map((dim, axis) => (typeof dim === "number" ? dim : Number(this.#dims.get(axis)?.value)));
    const wrong = dims.findIndex((dim) => !Number.isSafeInteger(dim) || dim < 0);
    if (wrong >= 0) throw new Problem("BadNumber", `The dim ${shape[wrong] ?? wrong} of ${name} is not a whole number.`, "Write one, such as 1.");
    return call("give_numbers", { name, fill: this.#fill.select.value, dims, text: this.#list.value });
  }
}

/** A choice with its label. @param {string} text @param {string} testid @param {Record<string, string>} options  texts by value @param {(value: string) => void} onChange */
export function choice(text, testid, options, onChange) {
  const select = document.createElement("select");
  select.dataset.testid = testid;
  select.append(...Object.entries(options).map(([value, name]) => new Option(name, value)));
  select.onchange = () => onChange(select.value);
  return { label: labelled(text, select), select };
}

/** @param {string} text @param {HTMLElement} control */
export function labelled(text, control) {
  const label = document.createElement("label");
  label.append(text, " ", control);
  return label;
}
