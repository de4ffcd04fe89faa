/** The settings of the page, which this browser keeps. */

import { element, readNumber } from "../../web/page/page.js";
import { readSeed, sharedSeed } from "../../web/page/seed.js";
import { Problem } from "../../web/worker/protocol.js";

/** @import { Field } from "../../web/page/share.js" */
/** @typedef {{ type: string, function: Record<string, unknown> }} Tool  as in OpenAI's API */
/** @typedef {{ temperature: number, top_p: number, seed: number, max_tokens: number, context: number, schema: string | null, thinks: boolean, tools: boolean, functions?: Tool[] }} Options  functions are a server's alone */

const KEY = "tallow-chat-settings";
const NAMES = ["temperature", "top-p", "max-tokens", "seed", "context", "json", "schema", "thinks", "tools", "functions"];
const ON = "on";
const MOST_SCHEMA = 20_000; // characters, in a link

export class Settings {
  /** Those that the page has: on that of a server, the context is the server's, and tools are functions that the user answers for. */
  #fields = Object.fromEntries(NAMES.filter((name) => document.getElementById(name)).map((name) => [name, field(name)]));
  #knowsTools = false;

  constructor() {
    this.#restore();
    for (const input of Object.values(this.#fields)) input.addEventListener("change", () => this.#keep());
    const { json, schema } = this.#fields;
    json.addEventListener("change", () => this.#showForm());
    schema.spellcheck = false;
    this.#showForm();
  }

  /** What links contain. Settings that a link sets are not kept, until the user changes one. @returns {Record<string, Field>} */
  get shared() {
    const { temperature, "top-p": top_p, "max-tokens": max_tokens, context, seed, json, schema, tools } = this.#fields;
    const showForm = () => this.#showForm();
    return {
      temperature,
      top_p,
      max_tokens,
      context,
      seed: sharedSeed(/** @type {HTMLInputElement} */ (seed)),
      schema: {
        get value() {
          return isChecked(json) ? schema.value || "{}" : "";
        },
        set value(text) {
          if (isCheckbox(json)) json.checked = text !== "";
          if (text) schema.value = text;
          showForm();
        },
        accepts: (text) => text.length <= MOST_SCHEMA,
      },
      tools: {
        get value() {
          return isChecked(tools) ? ON : "";
        },
        set value(text) {
          if (isCheckbox(tools)) tools.checked = text === ON;
          showForm();
        },
        accepts: (text) => text === ON || text === "",
      },
    };
  }

  /** Show which settings the model has. @param {{ chats: boolean, thinks: boolean, constrains: boolean, tools: boolean }} traits */
  offer({ chats, thinks, constrains, tools }) {
    element("thinks-box", HTMLElement).hidden = !thinks;
    element("json-box", HTMLElement).hidden = !constrains;
    if (this.#fields.tools) element("tools-box", HTMLElement).hidden = !chats;
    if (this.#fields.functions) element("functions-box", HTMLElement).hidden = !tools;
    this.#knowsTools = tools;
    this.#showForm();
  }

  /** The options of `Demo.generate`. @param {boolean} constrains  whether the model can write JSON @returns {Options} */
  read(constrains) {
    const { temperature, "top-p": topP, "max-tokens": maxTokens, seed, context, json, schema, thinks, tools, functions } = this.#fields;
    const number = (/** @type {HTMLElement} */ input, kind = {}) => readNumber(/** @type {HTMLInputElement} */ (input), kind);
    const isJson = constrains && isChecked(json);
    if (isJson) checkSchema(/** @type {HTMLTextAreaElement} */ (schema));
    return {
      temperature: number(temperature),
      top_p: number(topP, { above: 0 }),
      max_tokens: number(maxTokens, { whole: true }),
      seed: readSeed(/** @type {HTMLInputElement} */ (seed)),
      context: context ? number(context, { whole: true }) : Infinity,
      schema: isJson ? schema.value : null,
      thinks: isChecked(thinks),
      tools: isChecked(tools),
      ...(functions && this.#knowsTools && !isJson ? { functions: readFunctions(/** @type {HTMLTextAreaElement} */ (functions)) } : {}),
    };
  }

  /** Show what belongs to the form of the answer: text, which may contain calls of tools, or JSON. */
  #showForm() {
    const { json, tools } = this.#fields;
    element("schema-box", HTMLElement).hidden = !isChecked(json);
    if (!tools) return;
    const reason = this.#knowsTools ? (isChecked(json) ? "An answer in JSON has no calls." : "") : "This model's chat template does not tell it of tools.";
    tools.disabled = reason !== "";
    const note = element("no-tools", HTMLElement);
    note.hidden = reason === "";
    note.textContent = reason;
  }

  #keep() {
    const values = Object.entries(this.#fields).map(([name, input]) => [name, isCheckbox(input) ? input.checked : input.value]);
    try {
      localStorage.setItem(KEY, JSON.stringify(Object.fromEntries(values)));
    } catch {
      // storage is full or forbidden: the settings last as long as the page
    }
  }

  #restore() {
    try {
      for (const [name, value] of Object.entries(JSON.parse(localStorage.getItem(KEY) ?? "{}"))) {
        const input = this.#fields[name];
        if (!input) continue;
        if (isCheckbox(input)) input.checked = value === true;
        else input.value = String(value);
      }
    } catch {
      // as above, or another version of the page has written them
    }
  }
}

/** @param {HTMLTextAreaElement} schema */
function checkSchema(schema) {
  if (!schema.value.trim()) return;
  try {
    JSON.parse(schema.value);
  } catch (error) {
    schema.focus();
    throw new Problem("BadSchema", `The schema is not JSON: ${error instanceof Error ? error.message : error}`, "Correct it, or leave it empty for any JSON object.");
  }
}

/** The functions that a model may call: a list as in OpenAI's API, or of their descriptions alone. @param {HTMLTextAreaElement} field @returns {Tool[]} */
function readFunctions(field) {
  if (!field.value.trim()) return [];
  try {
    const entries = [JSON.parse(field.value)].flat();
    if (!entries.every((entry) => (entry?.function ?? entry)?.name)) throw new Error("each function needs a name");
    return entries.map((entry) => (entry.function ? entry : { type: "function", function: entry }));
  } catch (error) {
    field.focus();
    throw new Problem("BadFunctions", `The functions cannot be read: ${error instanceof Error ? error.message : error}`, "Correct them, or leave the field empty.");
  }
}

/** @param {string} name @returns {HTMLInputElement | HTMLTextAreaElement} */
function field(name) {
  const found = document.getElementById(name);
  if (!(found instanceof HTMLInputElement || found instanceof HTMLTextAreaElement)) throw new Error(`#${name} is missing`);
  return found;
}

/** @param {HTMLElement} input @returns {input is HTMLInputElement} */
function isCheckbox(input) {
  return input instanceof HTMLInputElement && input.type === "checkbox";
}

/** @param {HTMLElement} input */
function isChecked(input) {
  return isCheckbox(input) && input.checked;
}
