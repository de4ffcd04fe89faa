import { isolate } from "../../web/page/isolation.js";
import { listenForModels } from "../../web/page/model-inputs.js";
import { ModelPage } from "../../web/page/model-page.js";
import { Figures, closeOnPhone, element, pageView, showStart } from "../../web/page/page.js";
import { ShareLink } from "../../web/page/share.js";
import { StoredDownloads } from "../../web/page/stored-downloads.js";
import { loadMarkdown } from "../../web/page/markdown.js";
import { Chat, listen, page } from "./chat.js";
import { ModelList } from "./model-list.js";
import { PACKAGED, findPresets, fromFiles, fromText } from "./models.js";

/** @import { ModelView } from "../../web/page/model-page.js" */
/** @import { Model } from "./chat.js" */
/** @import { Conversation } from "./conversation.js" */
/** @import { Choice } from "./models.js" */

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
const MOST_NAME = 2000; // characters, of a model in a link

/** @type {ModelPage<Choice, Model>} */
const tab = new ModelPage(
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
      return { name, description, bytes, context, cacheBytes, chats, thinks, constrains, tools };
    },
    onModel: (model) => {
      models.mark(model?.name ?? null);
      chat.showModel(model);
    },
  },
);
const chat = new Chat(view, tab, adviceOn);

/** What to say about a model that goes on with a conversation, empty for nothing. @param {Model | null | undefined} model @param {Conversation} conversation */
function adviceOn(model, conversation) {
  if (!model) return "";
  const last = conversation.path().findLast(({ role }) => role === "assistant")?.model;
  if (model.chats) return "";
  const isPackaged = model.name === PACKAGED.name; // which a new visit begins with
  if (isPackaged && last && last !== model.name) return `${last} wrote the last answer. Choose it again to go on with it: this model only tells stories.`;
  if (isPackaged) return "This model tells stories and knows nothing else. Choose another one to chat.";
  return "This model has no chat template: it continues your text as if it were one document.";
}

/** Let the user choose other models than those of the list. */
function listenForOthers() {
  const call = chat.call.bind(chat);
  const loadFiles = (/** @type {Map<string, File>} */ files) => {
    try {
      tab.load(fromFiles(files, call));
    } catch (error) {
      view.problems.show(error);
    }
  };
  listenForModels(
    {
      form: element("hub-form", HTMLFormElement),
      name: element("model-url", HTMLInputElement),
      files: [element("model-file", HTMLInputElement), element("model-folder", HTMLInputElement)],
      curtain: element("drop", HTMLElement),
    },
    { name: (text) => tab.load(fromText(text, call)), files: loadFiles, drop: loadFiles },
    view.problems,
  );
}

/**
 * Share the message, the system prompt and the settings. A link names the model, which the user then loads, and opens a new
 * conversation.
 */
async function share() {
  const linked = () => tab.choice?.link ?? ""; // what links call the chosen model
  const [name, choices] = [element("model-url", HTMLInputElement), element("choices", HTMLDetailsElement)];
  const model = {
    get value() {
      return linked();
    },
    set value(text) {
      if (text === linked()) return;
      name.value = text;
      for (const details of [choices, ...choices.querySelectorAll("details")]) details.open = true;
    },
    accepts: (/** @type {string} */ text) => text.length <= MOST_NAME,
  };
  const elements = { button: element("share", HTMLButtonElement), note: element("share-note", HTMLElement) };
  if (location.hash) await chat.history.start();
  const fields = { message: page.prompt, system: page.system, model, ...chat.settings.shared };
  const opened = new ShareLink(fields, elements);
  const open = () => {
    page.system.dispatchEvent(new Event("change"));
    const isOther = name.value && name.value !== linked();
    if (isOther && !elements.note.textContent) elements.note.textContent = `The link is for the model ${name.value}. Press Load to use it.`;
  };
  opened.onOpen = async () => {
    const { value } = page.system;
    await chat.history.start(); // which empties the system prompt
    page.system.value = value;
    open();
  };
  if (location.hash) open();
}

listen(chat, view);
listenForOthers();
tab.load(PACKAGED);
closeOnPhone(element("choices", HTMLDetailsElement));
isolate();
loadMarkdown().then(
  () => chat.refresh(),
  (error) => console.warn("Markdown is shown as it is written:", error),
);
await chat.history.restore();
await share();
models.show(await findPresets(), (preset) => tab.load(preset));
await view.downloads.refresh();
