/** The conversation on the page: what the user writes, what a model answers, here or on a server, and what this browser keeps. */

import { element, onSubmit } from "../../web/page/page.js";
import { Problem } from "../../web/worker/protocol.js";
import { saveJson, saveMarkdown } from "./export.js";
import { History } from "./history.js";
import { MessageList, isSend } from "./messages.js";
import { Settings } from "./settings.js";
import { divide } from "./thoughts.js";
import { asRead, forgetOldest, laterStarts } from "./turns.js";

/** @import { ProblemBox, Remedy, Status } from "../../web/page/page.js" */
/** @import { Conversation, Message, Step } from "./conversation.js" */
/**
 * Where the page says what happens.
 * @typedef {{ status: Status, problems: ProblemBox }} ChatView
 *
 * A model as the page needs to know it. `bytes` and `cacheBytes`, of a token, are its memory, 0 if it is not on this device.
 * @typedef {{ name: string, description: string, bytes: number, context: number, cacheBytes: number, chats: boolean, thinks: boolean, constrains: boolean, tools: boolean }} Model
 *
 * What answers: `ModelPage`, with a model in this tab, or `ServerPage`. `call("count", ...)` counts the tokens of a conversation.
 * @typedef {{
 *   model: Model | null,
 *   isWorking: boolean,
 *   runtime: {
 *     generate(options: Record<string, unknown>, { signal }: { signal: AbortSignal }): AsyncIterable<{ text: string, stats: Record<string, any> }>,
 *     call(method: string, keywords: Record<string, unknown>): Promise<any>,
 *   },
 *   work(task: (signal: AbortSignal) => Promise<void>, texts: { failed: string, remedy?: (error: unknown) => Remedy | Remedy[] | undefined }): Promise<void>,
 *   ready(waiting: string, signal: AbortSignal): Promise<boolean>,
 *   stop(): Promise<void>,
 *   stopWork(): Promise<void>,
 * }} Answerer
 */

export const page = {
  composer: element("composer", HTMLFormElement),
  prompt: element("prompt", HTMLTextAreaElement),
  stop: element("stop", HTMLButtonElement),
  examples: element("examples", HTMLElement),
  output: element("output", HTMLElement),
  empty: element("empty", HTMLElement),
  export: element("export", HTMLElement),
  announcer: element("announcer", HTMLElement),
  system: element("system", HTMLTextAreaElement),
  advice: element("advice", HTMLElement),
};

/** Writes answers, one at a time. */
export class Chat {
  settings = new Settings();
  #list = new MessageList(element("messages", HTMLElement), page.output, {
    edit: (message, content) => this.#say(this.#parentOf(message), content),
    answer: (message) => this.#answer(message),
    again: (message) => this.#answer(/** @type {Message} */ (this.#parentOf(message))),
    choose: (message) => this.#choose(message),
    goOn: (message) => this.#answer(/** @type {Message} */ (this.#parentOf(message)), false, message),
    remember: () => this.#remember(),
  });
  history;
  #view;
  #page;
  #advise;

  /**
   * @param {ChatView} view
   * @param {Answerer} answerer
   * @param {(model: Model | null, conversation: Conversation) => string} advise  what to say about a model that goes on with a conversation, empty for nothing
   */
  constructor(view, answerer, advise) {
    this.#view = view;
    this.#page = answerer;
    this.#advise = advise;
    this.history = new History(view.status, (conversation) => this.#show(conversation));
  }

  /** Call Python. @param {string} method @param {Record<string, unknown>} keywords */
  call(method, keywords) {
    return this.#page.runtime.call(method, keywords);
  }

  /** Send a message. @param {string} content */
  send(content) {
    this.#say(this.history.current.path().at(-1), content);
  }

  /** Stop loading and writing. */
  stop() {
    this.#page.stop();
  }

  get isWorking() {
    return this.#page.isWorking;
  }

  /** Open a new conversation. */
  async startNew() {
    await this.history.start();
    page.prompt.focus();
  }

  /** @param {Message} message */
  #parentOf(message) {
    return this.history.current.pathTo(message).at(-2);
  }

  /** Add a message of the user after another one, and answer it. @param {Message | undefined} parent @param {string} content */
  #say(parent, content) {
    const message = this.history.current.add(parent, "user", content);
    this.#showMessages();
    this.history.save();
    this.#answer(message);
  }

  /**
   * Answer a message of the user, in place of the answer that is being written.
   * @param {Message} question @param {boolean} [forgets]  whether the model forgets the oldest messages first; the page still shows them
   * @param {Message} [begun]  an answer with results of tools, to go on with
   */
  #answer(question, forgets = false, begun = undefined) {
    const conversation = this.history.current;
    this.#page.work((signal) => this.#write(conversation, question, forgets, begun, signal), {
      failed: "No answer.",
      remedy: (error) => {
        const again = { label: "Try again", action: () => this.#answer(question, false, begun) };
        const canForget = isFull(error) && laterStarts(conversation.pathTo(question)).length > 0;
        return canForget ? [{ label: "Forget the oldest messages", action: () => this.#answer(question, true, begun) }, again] : again;
      },
    });
  }

  /** Let the model read all messages again. */
  #remember() {
    for (const message of this.history.current.path()) delete message.isForgotten;
    this.#showMessages();
    this.history.save();
  }

  /** @param {Conversation} conversation @param {Message} question @param {boolean} forgets @param {Message | undefined} begun @param {AbortSignal} signal */
  async #write(conversation, question, forgets, begun, signal) {
    const options = this.settings.read(this.#page.model?.constrains ?? false);
    const usable = await this.#page.ready("The answer starts when the model has loaded.", signal);
    const { model } = this.#page;
    if (!usable || !model) return; // the page says why
    const system = model.chats ? conversation.saved.system : "";
    const path = conversation.pathTo(question);
    if (forgets) {
      await forgetOldest(path, Math.min(options.context, model.context), (rest) => this.call("count", { messages: asRead(rest, system), ...options }));
      signal.throwIfAborted();
    }
    const messages = asRead(begun ? [...path, begun] : path, system);
    this.#view.status.say("Reading");
    document.body.classList.add("burning");
    page.output.setAttribute("aria-busy", "true");
    const answer = begun ?? conversation.add(question, "assistant", "");
    Object.assign(answer, { model: model.name, isUnfinished: true });
    this.#showMessages();
    this.#list.showAgain(answer);
    let written = (begun?.steps ?? []).map(({ content }) => content).join(""); // in all steps
    try {
      for await (const { text, stats } of this.#page.runtime.generate({ messages, ...options }, { signal })) {
        const { steps = [], ...counts } = stats;
        if (counts.tokens === 1) this.#view.status.say("Writing");
        const memory = model.bytes + model.cacheBytes * (counts.prompt_tokens + counts.tokens);
        written += text;
        answer.content = written.slice(lengthOf(steps));
        answer.steps = steps;
        answer.stats = { ...counts, seed: options.seed, memory };
        this.#list.update(answer);
        if (answer.content || steps.length) this.history.saveSometimes(conversation);
      }
      const waits = answer.steps?.some(({ calls }) => calls.some(({ result }) => result === null));
      this.#view.status.say(waits ? "The model waits for the results of its calls." : "Done.");
      page.announcer.textContent = divide(answer.content).answer;
    } finally {
      document.body.classList.remove("burning");
      page.output.removeAttribute("aria-busy");
      answer.isUnfinished = false;
      if (answer.content || answer.steps?.length || answer.stats?.tokens || answer.chosen) this.#list.update(answer);
      else conversation.remove(answer);
      if (conversation === this.history.current) this.#showMessages();
      await this.history.save(conversation);
    }
  }

  /** Show another version of a message. @param {Message} message */
  #choose(message) {
    this.history.current.choose(message);
    this.#showMessages();
    this.history.save();
  }

  /** @param {Conversation} conversation */
  #show(conversation) {
    this.#page.stopWork();
    this.#view.problems.hide();
    page.system.value = conversation.saved.system;
    this.#showMessages();
  }

  #showMessages() {
    this.#list.show(this.history.current);
    const { isEmpty } = this.history.current;
    this.#showAdvice();
    page.empty.hidden = page.examples.hidden = !isEmpty;
    page.export.hidden = isEmpty;
  }

  /** Offer what a model can do, null if there is none. @param {Model | null} model */
  showModel(model) {
    this.settings.offer(model ?? { chats: false, thinks: false, constrains: false, tools: false });
    this.#showAdvice();
  }

  #showAdvice() {
    const advice = this.#advise(this.#page.model, this.history.current);
    page.advice.hidden = !advice;
    page.advice.textContent = advice;
  }

  /** Show the text again, with Markdown. */
  refresh() {
    this.#list.refresh();
  }
}

/** Whether a conversation has filled the context. @param {unknown} error */
function isFull(error) {
  return error instanceof Problem && error.name === "ContextFull";
}

/** The length of the text in steps. @param {Step[]} steps */
function lengthOf(steps) {
  return steps.reduce((length, { content }) => length + content.length, 0);
}

/** Let the user write, stop, begin anew and export. @param {Chat} chat @param {ChatView} view */
export function listen(chat, { status }) {
  const send = () => {
    const content = page.prompt.value.trim();
    if (!content) return status.remark("Write a message first.");
    page.prompt.value = "";
    chat.send(content);
  };
  onSubmit(page.composer, send);
  page.prompt.onkeydown = (event) => {
    if (!isSend(event)) return;
    event.preventDefault();
    send();
  };
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && chat.isWorking) chat.stop();
  });
  for (const button of page.examples.querySelectorAll("button")) {
    button.onclick = () => chat.send(button.textContent ?? "");
  }
  page.stop.onclick = () => chat.stop();
  page.system.onchange = () => {
    chat.history.current.saved.system = page.system.value.trim();
    chat.history.save();
  };
  element("new", HTMLButtonElement).onclick = () => chat.startNew();
  element("export-json", HTMLButtonElement).onclick = () => saveJson(chat.history.current);
  element("export-markdown", HTMLButtonElement).onclick = () => saveMarkdown(chat.history.current);
}
