/** The page at the root of `tallow serve`: the conversation of the chat page, and the server's models. */

import { ProblemBox, Status, element, onSubmit } from "../../web/page/page.js";
import { loadMarkdown } from "../../web/page/markdown.js";
import { Chat, listen, page } from "../chat/chat.js";
import { ServerPage } from "./server-page.js";

/** @import { Model } from "../chat/chat.js" */

const KEY = "tallow-server-key"; // in sessionStorage: until the tab is closed
const view = { status: new Status(element("status", HTMLElement)), problems: new ProblemBox(element("error", HTMLElement)), stop: page.stop };
const [choice, key] = [element("model", HTMLSelectElement), element("key", HTMLInputElement)];
/** @returns {Record<string, string>} */
const headers = () => (key.value ? { Authorization: `Bearer ${key.value}` } : {});
const server = new ServerPage(view, headers);
const chat = new Chat(view, server, (model) => {
  if (!model || model.chats) return "";
  return `${model.name} has no chat template: it continues your text as if it were one document. To chat, serve a chat model: tallow serve --model NAME.`;
});
/** @type {Model[]} */
let models = [];

/** Ask the server for its models. */
async function findModels() {
  const { status, problems } = view;
  try {
    models = await server.models();
    problems.hide();
  } catch (error) {
    models = [];
    problems.show(error, { label: "Try again", action: findModels });
  }
  const before = choice.value;
  choice.replaceChildren(...models.map(({ name }) => new Option(name, name, false, name === before)));
  choice.disabled = models.length < 2;
  show();
  if (models.length) status.say("Ready.");
  else status.say("The server has no model that writes.");
}

/** Show the chosen model. */
function show() {
  server.model = models.find(({ name }) => name === choice.value) ?? null;
  element("model-name", HTMLElement).textContent = server.model?.description ?? "No model.";
  chat.showModel(server.model);
}

try {
  key.value = sessionStorage.getItem(KEY) ?? "";
} catch {
  // storage is forbidden: the key lasts as long as the page
}
onSubmit(element("key-form", HTMLFormElement), () => key.blur());
key.onchange = () => {
  try {
    sessionStorage.setItem(KEY, key.value);
  } catch {
    // as above
  }
  findModels();
};
choice.onchange = () => {
  server.stopWork();
  show();
};
listen(chat, view);
loadMarkdown().then(
  () => chat.refresh(),
  (error) => console.warn("Markdown is shown as it is written:", error),
);
await chat.history.restore();
await findModels();
