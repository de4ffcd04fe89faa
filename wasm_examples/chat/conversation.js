/**
 * A conversation with branches: a tree of messages. An edited message, or an answer that is written again, is another child of the
 * same parent; of the children of a message, one is chosen. The path of chosen messages is what the page shows and the model reads.
 *
 * @typedef {"user" | "assistant"} Role
 *
 * `parent` is the id of the message before it; null for the first ones. `chosen` is the id of the chosen child. Of an answer:
 * `model` is the name of the model, `stats` are its counts (see Counts in answers.py), `isUnfinished` is true until it ends. `isForgotten`
 * is true of a message that the model no longer reads, since its context was full. `steps` are the parts before `content` that ended with calls of tools, as Step in tools.py.
 * The result of a call is null until the user has written it: on the page of a server, tools are the user's.
 * @typedef {{ name: string, arguments: string, result: string | null, failed: boolean }} Called
 * @typedef {{ content: string, calls: Called[] }} Step
 * @typedef {{ id: string, parent: string | null, role: Role, content: string, created: number, chosen: string | null,
 *   model?: string, stats?: Record<string, number>, isUnfinished?: boolean, isForgotten?: boolean, steps?: Step[] }} Message
 *
 * As it is stored. `first` is the id of the chosen first message.
 * @typedef {{ id: string, title: string, created: number, updated: number, system: string, first: string | null,
 *   messages: Record<string, Message> }} Saved
 */

const TITLE_LENGTH = 60;
const UNTITLED = "New conversation";

export class Conversation {
  /** @type {Saved} */
  saved;

  /** @param {Saved} [saved]  nothing for a new conversation */
  constructor(saved) {
    const now = Date.now();
    this.saved = saved ?? { id: crypto.randomUUID(), title: UNTITLED, created: now, updated: now, system: "", first: null, messages: {} };
  }

  get isEmpty() {
    return this.saved.first === null;
  }

  /** The chosen messages, from the first one. @returns {Message[]} */
  path() {
    const path = [];
    const { messages, first } = this.saved;
    for (let next = first; next && messages[next]; next = messages[next].chosen) path.push(messages[next]);
    return path;
  }

  /** The chosen messages up to this one. @param {Message} message @returns {Message[]} */
  pathTo(message) {
    const path = [message];
    for (let before = this.#parent(message); before; before = this.#parent(before)) path.unshift(before);
    return path;
  }

  /** Add a message and choose it. @param {Message | undefined} parent  undefined for a first one @param {Role} role @param {string} content @returns {Message} */
  add(parent, role, content) {
    const message = { id: crypto.randomUUID(), parent: parent?.id ?? null, role, content, created: Date.now(), chosen: null };
    this.saved.messages[message.id] = message;
    if (this.saved.title === UNTITLED && role === "user") this.saved.title = titleOf(content);
    this.choose(message);
    return message;
  }

  /** Remove a message without children, and choose the one before it. @param {Message} message */
  remove(message) {
    const siblings = this.siblings(message);
    delete this.saved.messages[message.id];
    const other = siblings[siblings.indexOf(message) - 1] ?? siblings.find((each) => each !== message);
    this.#setChosen(message, other?.id ?? null);
  }

  /** The messages in its place, itself included, from the oldest. @param {Message} message @returns {Message[]} */
  siblings({ parent }) {
    return Object.values(this.saved.messages)
      .filter((each) => each.parent === parent)
      .sort((a, b) => a.created - b.created);
  }

  /** Choose a message among those in its place. @param {Message} message */
  choose(message) {
    this.#setChosen(message, message.id);
  }

  /** @param {Message} message @param {string | null} id */
  #setChosen(message, id) {
    const parent = this.#parent(message);
    if (parent) parent.chosen = id;
    else this.saved.first = id;
    this.saved.updated = Date.now();
  }

  /** @param {Message} message */
  #parent({ parent }) {
    return parent === null ? undefined : this.saved.messages[parent];
  }
}

/** @param {string} content */
function titleOf(content) {
  const line = content.trim().replace(/\s+/g, " ");
  return line.length > TITLE_LENGTH ? `${line.slice(0, TITLE_LENGTH - 1)}…` : line || UNTITLED;
}
