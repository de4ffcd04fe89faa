import { isolate } from "../../web/page/isolation.js";
import { listenForModels } from "../../web/page/model-inputs.js";
import { ModelPage } from "../../web/page/model-page.js";
import { Figures, closeOnPhone, element, onSubmit, pageView, showStart } from "../../web/page/page.js";
import { ShareLink } from "../../web/page/share.js";
import { StoredDownloads } from "../../web/page/stored-downloads.js";
import { saveJson, saveMarkdown } from "./export.js";
import { History } from "./history.js";
import { loadMarkdown } from "../../web/page/markdown.js";
import { MessageList, isSend } from "./messages.js";
import { ModelList } from "./model-list.js";
import { PACKAGED, findPresets, fromFiles, fromText } from "./models.js";
import { Settings } from "./settings.js";
import { divide } from "./thoughts.js";

/** @import { ModelView } from "../../web/page/model-page.js" */
/** @import { Conversation, Message, Step } from "./conversation.js" */
/** @import { Choice } from "./models.js" */
/** @typedef {{ name: string, description: string, bytes: number, cacheBytes: number, chats: boolean, thinks: boolean, constrains: boolean, tools: boolean }} Model */

const page = {
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
const models = new ModelList();
/** @type {ModelView} */
const view = {
  ...pageView(),
  stop: page.stop,
  modelName: element("model-name", HTMLElement),
  noModel: "No model. Choose one.",
  figures: new Figures(element("stats", HTMLElement), ["Model load", "Kernels", "Threads"]),
  downloads: new StoredDownloads(element("downloads", HTMLElement), (urls) => models.markStored(urls)),
};
const { status, problems } = view;
const MOST_NAME = 2000; // characters, of a model in a link

/** Loads models and answers, one of each at a time. */
class Chat {
  settings = new Settings();
  #list = new MessageList(element("messages", HTMLElement), page.output, {
    edit: (message, content) => this.#say(this.#parentOf(message), content),
    answer: (message) => this.#answer(message),
    again: (message) => this.#answer(/** @type {Message} */ (this.#parentOf(message))),
    choose: (message) => this.#choose(message),
  });
  history = new History(status, (conversation) => this.#show(conversation));
  /** @type {ModelPage<Choice, Model>} */
  #page = new ModelPage(
    view,
    {
      url: new URL("app.py", import.meta.url),
      modules: ["answers.py", "calculator.py", "chats.py", "storyteller.py", "tools.py"].map((name) => new URL(name, import.meta.url)),
      parts: ["stories"],
      packages: ["jinja2"],
      libraries: ["huggingface_tokenizers"],
    },
    {
      onStart: (started) => showStart(view.figures, started),
      onLoad: ({ name }, { info, bytes }) => {
        const { layers, width, context, parameters, cacheBytes, chats, thinks, constrains, tools } = info;
        const size = parameters >= 1e6 ? `${(parameters / 1e6).toFixed(0)} million` : parameters.toLocaleString("en");
        const description = `${name}: ${size} parameters, ${layers} layers of ${width}, context of ${context.toLocaleString("en")} tokens`;
        return { name, description, bytes, cacheBytes, chats, thinks, constrains, tools };
      },
      onModel: (model) => this.#showModel(model),
    },
  );

  constructor() {
    this.load(PACKAGED);
  }

  /** Call Python. @param {string} method @param {Record<string, unknown>} keywords */
  call(method, keywords) {
    return this.#page.runtime.call(method, keywords);
  }

  /** Load a model in place of the one that is loading or loaded. @param {Choice} choice */
  load(choice) {
    this.#page.load(choice);
  }

  /** What links call the chosen model. */
  get link() {
    return this.#page.choice?.link ?? "";
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

  /** Answer a message of the user, in place of the answer that is being written. @param {Message} question */
  #answer(question) {
    const conversation = this.history.current;
    this.#page.work((signal) => this.#write(conversation, question, signal), {
      failed: "No answer.",
      remedy: () => ({ label: "Try again", action: () => this.#answer(question) }),
    });
  }

  /** @param {Conversation} conversation @param {Message} question @param {AbortSignal} signal */
  async #write(conversation, question, signal) {
    const options = this.settings.read(this.#page.model?.constrains ?? false);
    const usable = await this.#page.ready("The answer starts when the model has loaded.", signal);
    const { model } = this.#page;
    if (!usable || !model) return; // the page says why
    const messages = asRead(conversation.pathTo(question));
    const { system } = conversation.saved;
    if (system && model.chats) messages.unshift({ role: "system", content: system });
    status.say("Reading");
    document.body.classList.add("burning");
    page.output.setAttribute("aria-busy", "true");
    const answer = conversation.add(question, "assistant", "");
    Object.assign(answer, { model: model.name, isUnfinished: true });
    this.#showMessages();
    let written = ""; // in all steps
    try {
      for await (const { text, stats } of this.#page.runtime.generate({ messages, ...options }, { signal })) {
        const { steps = [], ...counts } = stats;
        if (counts.tokens === 1) status.say("Writing");
        const memory = model.bytes + model.cacheBytes * (counts.prompt_tokens + counts.tokens);
        written += text;
        answer.content = written.slice(lengthOf(steps));
        answer.steps = steps;
        answer.stats = { ...counts, seed: options.seed, memory };
        this.#list.update(answer);
        if (answer.content || steps.length) this.history.saveSometimes(conversation);
      }
      status.say("Done.");
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
    this.#page?.stopWork();
    problems.hide();
    page.system.value = conversation.saved.system;
    this.#showMessages();
  }

  #showMessages() {
    this.#list.show(this.history.current);
    const { isEmpty } = this.history.current;
    page.empty.hidden = page.examples.hidden = !isEmpty;
    page.export.hidden = isEmpty;
  }

  /** @param {Model | null} model */
  #showModel(model) {
    models.mark(model?.name ?? null);
    this.settings.offer(model ?? { chats: false, thinks: false, constrains: false, tools: false });
    page.advice.hidden = !model || model.chats;
    if (!model) return;
    page.advice.textContent =
      model.name === PACKAGED.name
        ? "This model tells stories and knows nothing else. Choose another one to chat."
        : "This model has no chat template: it continues your text as if it were one document.";
  }

  /** Show the text again, with Markdown. */
  refresh() {
    this.#list.refresh();
  }
}

/**
 * Messages as the model reads them: without thoughts, and in turns, because many chat templates refuse two messages of one side.
 * @param {Message[]} messages
 */
function asRead(messages) {
  /** @type {{ role: string, content: string, steps?: Step[] }[]} */
  const turns = [];
  for (const { role, content, steps = [] } of messages) {
    const text = role === "user" ? content : divide(content).answer;
    const last = turns.at(-1);
    if (last?.role === role) last.content += `\n\n${text}`;
    else if (steps.length) turns.push({ role, content: text, steps: steps.map((step) => ({ ...step, content: divide(step.content).answer })) });
    else turns.push({ role, content: text });
  }
  return turns;
}

/** The length of the text in steps. @param {Step[]} steps */
function lengthOf(steps) {
  return steps.reduce((length, { content }) => length + content.length, 0);
}

/** @param {Chat} chat */
function listen(chat) {
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
  const call = chat.call.bind(chat);
  const loadFiles = (/** @type {Map<string, File>} */ files) => {
    try {
      chat.load(fromFiles(files, call));
    } catch (error) {
      problems.show(error);
    }
  };
  listenForModels(
    {
      form: element("hub-form", HTMLFormElement),
      name: element("model-url", HTMLInputElement),
      files: [element("model-file", HTMLInputElement), element("model-folder", HTMLInputElement)],
      curtain: element("drop", HTMLElement),
    },
    { name: (text) => chat.load(fromText(text, call)), files: loadFiles, drop: loadFiles },
    problems,
  );
}

/**
 * Share the message, the system prompt and the settings. A link names the model, which the user then loads, and opens a new
 * conversation.
 * @param {Chat} chat
 */
async function share(chat) {
  const [name, choices] = [element("model-url", HTMLInputElement), element("choices", HTMLDetailsElement)];
  const model = {
    get value() {
      return chat.link;
    },
    set value(text) {
      if (text === chat.link) return;
      name.value = text;
      for (const details of [choices, ...choices.querySelectorAll("details")]) details.open = true;
    },
    accepts: (/** @type {string} */ text) => text.length <= MOST_NAME,
  };
  const elements = { button: element("share", HTMLButtonElement), note: element("share-note", HTMLElement) };
  if (location.hash) await chat.history.start();
  const fields = { message: page.prompt, system: page.system, model, ...chat.settings.shared };
  const link = new ShareLink(fields, elements);
  const open = () => {
    page.system.dispatchEvent(new Event("change"));
    const isOther = name.value && name.value !== chat.link;
    if (isOther && !elements.note.textContent) elements.note.textContent = `The link is for the model ${name.value}. Press Load to use it.`;
  };
  link.onOpen = async () => {
    const { value } = page.system;
    await chat.history.start(); // which empties the system prompt
    page.system.value = value;
    open();
  };
  if (location.hash) open();
}

const chat = new Chat();
listen(chat);
closeOnPhone(element("choices", HTMLDetailsElement));
isolate();
loadMarkdown().then(
  () => chat.refresh(),
  (error) => console.warn("Markdown is shown as it is written:", error),
);
await chat.history.restore();
await share(chat);
models.show(await findPresets(), (preset) => chat.load(preset));
await view.downloads.refresh();
