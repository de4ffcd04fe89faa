import { fragmentOf, readFragment } from "../../web/page/fragment.js";
import { isolate } from "../../web/page/isolation.js";
import { Figures, copyText, element, onSubmit, pageView } from "../../web/page/page.js";
import { Problem } from "../../web/worker/protocol.js";
import { Files } from "./files.js";
import { Prompt } from "./prompt.js";
import { Session } from "./session.js";
import { keepSetting, setting } from "./settings.js";
import { Terminal } from "./terminal.js";

/** @import { Notebook } from "./notebook.js" */
/** @import { Options } from "./session.js" */

const EXAMPLES = [
  ["tensors.py", "Tensors and gradients"],
  ["mlp.py", "Train a small network"],
  ["keras_fit.py", "Fit it as in Keras"],
  ["pytorch.py", "Code written for PyTorch"],
  ["kernel_speed.py", "Time the kernels"],
  ["plot.py", "Draw with matplotlib"],
];

// Programs as on model cards, with models of the page.
const SNIPPETS = [
  ["story.py", "Write a story"],
  ["stream.py", "Show it while it is written"],
  ["endings.py", "Several endings"],
  ["next_word.py", "The likeliest next words"],
  ["beams.py", "Search with beams"],
  ["tokens.py", "Text to tokens"],
  ["zero_shot.py", "Labels of one's choice"],
  ["similarity.py", "Compare sentences"],
  ["speech.py", "Speech to text"],
  ["speech_times.py", "The times of speech"],
];
const SOUND = "timer.wav"; // read by those whose code names it

const page = {
  interrupt: element("interrupt", HTMLButtonElement),
  clear: element("clear", HTMLButtonElement),
  form: element("form", HTMLFormElement),
  prompt: element("prompt", HTMLTextAreaElement),
  completions: element("completions", HTMLElement),
  copy: element("copy", HTMLButtonElement),
  forget: element("forget", HTMLButtonElement),
  share: element("share", HTMLButtonElement),
  examples: element("examples", HTMLElement),
  snippets: element("snippets", HTMLElement),
  pictures: element("pictures", HTMLInputElement),
};
const view = pageView();
const { status, problems } = view;
const terminal = new Terminal(element("output", HTMLElement));

/** The code in the page's link, or null. It is shown but not run, because anybody can write a link. */
function codeFromLink() {
  try {
    return readFragment().code ?? null;
  } catch (error) {
    problems.show(error);
    return null;
  }
}

/** @param {Prompt} prompt @param {Views} views */
function showLink(prompt, views) {
  const code = codeFromLink();
  if (code === null) return;
  views.showConsole();
  prompt.code = code;
  terminal.write({ stream: "note", text: "The code below came with the link. Read it, then press Run.\n" });
}

/** @param {Prompt} prompt */
async function share(prompt) {
  const link = new URL(location.href);
  link.hash = fragmentOf({ code: prompt.code.trim() ? prompt.code : prompt.last() });
  history.replaceState(null, "", link);
  await copyText(link.href, status, "The link was copied, and is now this page's address.");
}

/**
 * Offer programs as buttons, which put them where the user can run them.
 * @param {HTMLElement} list @param {string} folder @param {string[][]} programs  files and titles
 * @param {string} testid @param {(code: string) => Promise<void>} take
 */
function offer(list, folder, programs, testid, take) {
  list.replaceChildren(
    ...programs.map(([file, title]) => {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: title });
      button.dataset.testid = testid;
      button.onclick = async () => {
        problems.hide();
        try {
          const response = await fetch(new URL(`${folder}/${file}`, import.meta.url));
          if (!response.ok) throw new Error(`the server answers ${response.status}`);
          await take((await response.text()).trimEnd());
        } catch (error) {
          problems.show(new Problem("NoExample", `The example could not be fetched: ${error}`, "Check the connection, then try again."));
        }
      };
      const item = document.createElement("li");
      item.append(button);
      return item;
    }),
  );
}

/** Take a snippet, and bring the sound that it reads. @param {string} code @param {Views} views @param {Files} files */
async function takeSnippet(code, views, files) {
  await views.take(code);
  if (!code.includes(SOUND)) return;
  const { wavFile } = await import("./sample-sound.js");
  await files.add([await wavFile(new URL("../whisper/samples/timer.flac", import.meta.url), SOUND)]);
}

/** @param {Session} session @param {Prompt} prompt @param {Views} views */
function listen(session, prompt, views) {
  onSubmit(page.form, () => {
    prompt.submit();
    prompt.focus();
  });
  page.interrupt.onclick = () => session.interrupt();
  page.clear.onclick = () => {
    terminal.clear();
    prompt.focus();
  };
  page.copy.onclick = () => copyText(terminal.text(), status, "The output was copied.");
  page.share.onclick = () => share(prompt);
  page.forget.onclick = () => {
    prompt.forget();
    status.remark("The history was deleted.");
  };
  addEventListener("hashchange", () => showLink(prompt, views));
  addEventListener("keydown", (event) => {
    const selected = getSelection()?.toString() || page.prompt.selectionStart !== page.prompt.selectionEnd;
    if (event.key === "c" && event.ctrlKey && !selected) session.interrupt();
  });
}

/** The two views of one session. The notebook's module loads when it is shown first. */
class Views {
  #session;
  #prompt;
  /** @type {Promise<Notebook> | undefined} */
  #notebook;
  #buttons = { console: element("show-console", HTMLButtonElement), notebook: element("show-notebook", HTMLButtonElement) };
  #parts = { console: element("console-view", HTMLElement), notebook: element("notebook", HTMLElement) };

  /** @param {Session} session @param {Prompt} prompt */
  constructor(session, prompt) {
    this.#session = session;
    this.#prompt = prompt;
    this.#buttons.console.onclick = () => this.showConsole();
    this.#buttons.notebook.onclick = () => this.openNotebook();
  }

  showConsole() {
    this.#show("console");
  }

  /** Put code where the user can run it. @param {string} code */
  async take(code) {
    if (this.#parts.notebook.hidden) {
      this.#prompt.code = code;
      this.#prompt.focus();
    } else (await this.#notebook)?.add(code);
  }

  /** @param {"console" | "notebook"} name */
  #show(name) {
    for (const [other, part] of Object.entries(this.#parts)) part.hidden = other !== name;
    for (const [other, button] of Object.entries(this.#buttons)) button.setAttribute("aria-pressed", String(other === name));
    keepSetting("view", name);
  }

  /** Show the notebook; with a file, that one. @param {File} [file] */
  async openNotebook(file) {
    try {
      this.#notebook ??= import("./notebook.js").then(({ Notebook }) => Notebook.open(this.#parts.notebook, this.#session, view, runOptions));
      const notebook = await this.#notebook;
      this.#show("notebook");
      if (file) await notebook.read(file);
    } catch (error) {
      this.#notebook = undefined;
      problems.show(error);
    }
  }
}

/** @returns {Options} */
function runOptions() {
  return { shows_tensors: page.pictures.checked };
}

const session = new Session(view, new Figures(element("stats", HTMLElement), ["Threads"]));
const prompt = new Prompt(page.prompt, page.completions, {
  isComplete: (code) => session.isComplete(code),
  complete: (code) => session.complete(code),
  run: (code) => session.run(code, terminal, runOptions()),
});
const views = new Views(session, prompt);
const files = new Files(session, view, (file) => {
  const isNotebook = file.name.endsWith(".ipynb");
  if (isNotebook) views.openNotebook(file);
  return isNotebook;
});
session.onBusy = (isBusy) => (page.interrupt.disabled = !isBusy);
session.onRan = () => files.show();
session.onRestart = (text) => terminal.write({ stream: "note", text: `${text}\n` });
page.pictures.checked = setting("tensors") !== "text";
page.pictures.onchange = () => keepSetting("tensors", page.pictures.checked ? "pictures" : "text");
listen(session, prompt, views);
offer(page.examples, "examples", EXAMPLES, "example", (code) => views.take(code));
offer(page.snippets, "snippets", SNIPPETS, "snippet", (code) => takeSnippet(code, views, files));
showLink(prompt, views);
if (setting("view") === "notebook" && !location.hash) views.openNotebook();
else prompt.focus();
isolate();
