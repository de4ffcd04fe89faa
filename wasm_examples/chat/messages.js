/** The messages of a conversation on the page: their text, their figures, and the buttons to copy, edit, write again and branch. */

import { megabytes } from "../../web/page/page.js";
import { GrowingMarkdown, showMarkdown } from "../../web/page/markdown.js";
import { divide } from "./thoughts.js";

/** @import { Called, Conversation, Message, Step } from "./conversation.js" */
/** @typedef {{ edit(message: Message, content: string): void, answer(message: Message): void, again(message: Message): void, choose(message: Message): void, remember(): void, goOn(message: Message): void }} Handlers */

const NEAR_END = 80; // pixels: a list that is scrolled this close to its end follows the text
const LEAST_PAUSE_MS = 60; // between two renderings of the text that is written
const SHARE = 5; // and at least this many times the duration of the last one

export class MessageList {
  #list;
  #scroller;
  #handlers;
  /** @type {Map<string, View>} */
  #views = new Map();

  /** @param {HTMLElement} list  an <ol> @param {HTMLElement} scroller  what scrolls it @param {Handlers} handlers */
  constructor(list, scroller, handlers) {
    this.#list = list;
    this.#scroller = scroller;
    this.#handlers = handlers;
  }

  /** Show the chosen messages of a conversation. @param {Conversation} conversation */
  show(conversation) {
    const views = conversation.path().map((message) => {
      const view = this.#views.get(message.id) ?? new View(message, this.#handlers);
      view.showPlace(conversation.siblings(message));
      view.item.classList.toggle("unread", Boolean(message.isForgotten));
      return view;
    });
    this.#views = new Map(views.map((view) => [view.message.id, view]));
    this.#list.replaceChildren(...views.map((view) => view.item));
    const firstRead = views.findIndex(({ message }) => !message.isForgotten);
    if (firstRead > 0) this.#list.insertBefore(this.#forgotten(), views[firstRead].item);
    this.#scroller.scrollTop = this.#scroller.scrollHeight;
  }

  /** The line below the messages that the model has forgotten. */
  #forgotten() {
    const line = make("li", "forgotten hint");
    line.dataset.testid = "forgotten";
    line.append("The model no longer reads the messages above. ", button("Read all again", "remember", () => this.#handlers.remember()));
    return line;
  }

  /** Show the current text of a message. @param {Message} message */
  update(message) {
    const { scrollTop, clientHeight, scrollHeight } = this.#scroller;
    const follows = scrollTop + clientHeight > scrollHeight - NEAR_END;
    this.#views.get(message.id)?.update(() => {
      if (follows) this.#scroller.scrollTop = this.#scroller.scrollHeight;
    });
  }

  /** Show all text of a message again. @param {Message} message */
  showAgain(message) {
    this.#views.get(message.id)?.refresh();
  }

  /** Show all text again, as when Markdown can be rendered from now on. */
  refresh() {
    for (const view of this.#views.values()) view.refresh();
  }
}

class View {
  message;
  item = document.createElement("li");
  #text = make("div", "text");
  #markdown = new GrowingMarkdown(this.#text);
  #thought = new Thought();
  #steps = make("div", "steps");
  #figures = make("p", "hint measured");
  #place = make("span", "place");
  #handlers;
  #timer = 0;
  #pause = LEAST_PAUSE_MS;
  #rendered = -Infinity;

  /** @param {Message} message @param {Handlers} handlers */
  constructor(message, handlers) {
    this.message = message;
    this.#handlers = handlers;
    this.item.className = message.role;
    this.item.dataset.testid = message.role;
    const author = make("h3", "author");
    author.textContent = message.role === "user" ? "You" : (message.model ?? "Model");
    this.#text.dataset.testid = "text";
    this.#text.dir = "auto";
    this.#figures.dataset.testid = "figures";
    const tools = make("div", "tools");
    tools.append(this.#place, this.#copyButton());
    if (message.role === "user") {
      const answer = button("Answer", "answer", () => handlers.answer(message));
      answer.classList.add("unanswered");
      tools.append(button("Edit", "edit", () => this.#edit()), answer);
    } else tools.append(button("Regenerate", "again", () => handlers.again(message)));
    this.item.append(author, this.#steps, this.#thought.element, this.#text, this.#figures, tools);
    this.#render();
  }

  /** Show which of the messages in this place it is. @param {Message[]} siblings */
  showPlace(siblings) {
    this.#place.hidden = siblings.length < 2;
    const at = siblings.indexOf(this.message);
    const step = (/** @type {string} */ sign, /** @type {string} */ name, /** @type {number} */ by) => {
      const to = siblings[at + by];
      const arrow = button(sign, name, () => to && this.#handlers.choose(to));
      arrow.setAttribute("aria-label", name === "previous" ? "Previous version" : "Next version");
      arrow.disabled = !to;
      return arrow;
    };
    const count = document.createElement("span");
    count.textContent = `${at + 1}/${siblings.length}`;
    this.#place.replaceChildren(step("‹", "previous", -1), count, step("›", "next", 1));
  }

  /** Show all text again. */
  refresh() {
    this.#steps.replaceChildren();
    this.update();
  }

  /** Show the current text, soon. @param {() => void} [then] */
  update(then) {
    if (this.#timer && this.message.isUnfinished) return;
    clearTimeout(this.#timer);
    const wait = this.message.isUnfinished ? Math.max(0, this.#rendered + this.#pause - performance.now()) : 0;
    const render = () => {
      this.#timer = 0;
      this.#render();
      then?.();
    };
    if (wait) this.#timer = window.setTimeout(render, wait);
    else render();
  }

  #render() {
    const started = performance.now();
    const { role, content, stats, isUnfinished, steps = [] } = this.message;
    if (role === "user") this.#text.textContent = content;
    else {
      for (const step of steps.slice(this.#steps.childElementCount)) this.#steps.append(showStep(step, () => this.#handlers.goOn(this.message)));
      this.#markdown.show(this.#thought.show(content, Boolean(isUnfinished)));
    }
    this.#figures.hidden = !stats;
    if (stats) this.#figures.textContent = describe(stats);
    this.item.classList.toggle("writing", Boolean(isUnfinished));
    this.#rendered = performance.now();
    this.#pause = Math.max(LEAST_PAUSE_MS, SHARE * (this.#rendered - started));
  }

  #copyButton() {
    const copy = button("Copy", "copy", async () => {
      const { content, role } = this.message;
      let said = "Copied";
      try {
        await navigator.clipboard.writeText(role === "user" ? content : divide(content).answer);
      } catch {
        said = "Not allowed";
      }
      copy.textContent = said;
      setTimeout(() => (copy.textContent = "Copy"), 1500);
    });
    return copy;
  }

  /** Put a field with its text in place of the message. */
  #edit() {
    const form = document.createElement("form");
    form.className = "edit";
    const field = document.createElement("textarea");
    field.dir = "auto";
    field.value = this.message.content;
    field.rows = Math.min(10, field.value.split("\n").length + 1);
    field.setAttribute("aria-label", "Edit your message");
    field.dataset.testid = "edit-text";
    const actions = make("div", "actions");
    const send = button("Send", "edit-send", () => form.requestSubmit());
    send.className = "primary";
    const cancel = button("Cancel", "edit-cancel", () => form.replaceWith(this.#text));
    cancel.className = "";
    actions.append(send, cancel);
    form.append(field, actions);
    form.onsubmit = (event) => {
      event.preventDefault();
      form.replaceWith(this.#text);
      if (field.value.trim()) this.#handlers.edit(this.message, field.value.trim());
    };
    field.onkeydown = (event) => {
      if (event.key === "Escape") {
        event.stopPropagation();
        cancel.click();
      } else if (isSend(event)) {
        event.preventDefault();
        form.requestSubmit();
      }
    };
    this.#text.replaceWith(form);
    field.focus();
  }
}

/** The thoughts of an answer, folded. */
class Thought {
  element = document.createElement("details");
  #summary = document.createElement("summary");
  #text = make("div", "text");
  #markdown = new GrowingMarkdown(this.#text);

  constructor() {
    this.element.className = "thought";
    this.element.dataset.testid = "thought";
    this.element.hidden = true;
    this.#text.dir = "auto";
    this.element.append(this.#summary, this.#text);
  }

  /** Show the thoughts in a text. @param {string} content @param {boolean} isUnfinished @returns {string} the text after them */
  show(content, isUnfinished) {
    const { thought, answer, isThinking } = divide(content);
    this.element.hidden = thought === null;
    this.#summary.textContent = isThinking && isUnfinished ? "Thinking" : "Thoughts";
    if (thought) this.#markdown.show(thought);
    return answer;
  }
}

/** A part of an answer that ends with calls of tools. @param {Step} step @param {() => void} goOn  after the user has written the results */
function showStep({ content, calls }, goOn) {
  const [box, text, thought] = [make("div", "step"), make("div", "text"), new Thought()];
  text.dir = "auto";
  showMarkdown(text, thought.show(content, false));
  const folded = calls.map((called) => {
    const { name, arguments: given, result, failed } = called;
    const call = document.createElement("details");
    call.className = "call";
    call.dataset.testid = "call";
    const summary = document.createElement("summary");
    summary.textContent = failed ? `Called ${name}, which failed` : `Called ${name}`;
    const question = make("pre", "");
    question.textContent = given;
    call.append(summary, question);
    if (result === null) {
      call.open = true;
      call.append(resultField(called));
    } else {
      const answer = make("pre", failed ? "failed" : "");
      answer.textContent = result;
      call.append(answer);
    }
    return call;
  });
  box.append(thought.element, text, ...folded);
  const fields = [...box.querySelectorAll("textarea")];
  if (fields.length) {
    const pending = calls.filter(({ result }) => result === null);
    const send = button("Send the results", "results", () => {
      pending.forEach((called, i) => (called.result = fields[i].value));
      goOn();
    });
    send.className = "primary";
    box.append(send);
  }
  return box;
}

/** A field for the result of a call. @param {Called} called */
function resultField({ name }) {
  const field = document.createElement("textarea");
  field.rows = 2;
  field.dataset.testid = "result";
  field.placeholder = "What the tool returns";
  field.setAttribute("aria-label", `Result of ${name}`);
  return field;
}

/** Whether a key sends the text: Enter, but not with Shift, and not while an input method composes. @param {KeyboardEvent} event */
export function isSend(event) {
  return event.key === "Enter" && !event.shiftKey && !event.isComposing;
}

/** The figures of an answer. @param {Record<string, number>} stats */
function describe({ tokens, tokens_per_s: rate, prompt_tokens, reused, read, prompt_s, limit, seed, memory }) {
  if (!tokens) return `Reading ${read.toLocaleString("en")} of ${prompt_tokens.toLocaleString("en")} tokens`;
  const counted = (/** @type {number} */ count) => `${count.toLocaleString("en")} ${count === 1 ? "token" : "tokens"}`;
  const parts = [counted(tokens)];
  if (rate) parts.push(`${rate < 10 ? rate.toFixed(1) : Math.round(rate)} tokens/s`);
  parts.push(`prompt of ${prompt_tokens.toLocaleString("en")}, ${reused ? `${counted(reused)} reused, ` : ""}${prompt_s.toFixed(prompt_s < 1 ? 2 : 1)} s`);
  if (memory) parts.push(`${megabytes(memory)} of memory`);
  parts.push(`seed ${seed}`);
  if (tokens >= limit) parts.push("ended at the limit of tokens");
  return parts.join(" · ");
}

/** @param {string} label @param {string} name @param {() => void} action */
function button(label, name, action) {
  const made = document.createElement("button");
  made.type = "button";
  made.className = "quiet";
  made.dataset.testid = name;
  made.textContent = label;
  made.onclick = action;
  return made;
}

/** @param {string} tag @param {string} className */
function make(tag, className) {
  const made = document.createElement(tag);
  made.className = className;
  return made;
}
