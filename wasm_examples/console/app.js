import { fragmentOf, readFragment } from "../../web/fragment.js";
import { isolate } from "../../web/isolation.js";
import { Figures, element, onSubmit, pageView, showStartFailure } from "../../web/page.js";
import { Problem } from "../../web/protocol.js";
import { Runtime } from "../../web/tallow.js";
import { Prompt } from "./prompt.js";
import { Terminal } from "./terminal.js";

const EXAMPLES = [
  ["tensors.py", "Tensors and gradients"],
  ["mlp.py", "Train a small network"],
  ["keras_fit.py", "Fit it as in Keras"],
  ["pytorch.py", "Code written for PyTorch"],
  ["kernel_speed.py", "Time the kernels"],
];
// An interrupt has no effect on code that catches KeyboardInterrupt, on a single long operation, and on a page that is not
// isolated. If the code still runs after this long, the page offers a restart.
const PATIENCE_MS = 3000;

const page = {
  interrupt: element("interrupt", HTMLButtonElement),
  clear: element("clear", HTMLButtonElement),
  form: element("form", HTMLFormElement),
  prompt: element("prompt", HTMLTextAreaElement),
  completions: element("completions", HTMLElement),
  copy: element("copy", HTMLButtonElement),
  share: element("share", HTMLButtonElement),
  examples: element("examples", HTMLElement),
};
const view = pageView();
const { status, problems, progress } = view;
const figures = new Figures(element("stats", HTMLElement), ["Threads"]);
const terminal = new Terminal(element("output", HTMLElement));

/** A Python session, which runs cells one after the other. */
class Session {
  #runtime = Runtime.create();
  #started = this.#start();
  /** @type {string[]} */
  #queue = [];
  #running = false;
  #booted = false;
  /** @type {number | undefined} */
  #restartTimer;
  #isRestartOffered = false;

  /** Boot Python. @returns {Promise<boolean>}  whether it runs */
  async #start() {
    const runtime = this.#runtime;
    try {
      const started = await runtime.start(new URL("app.py", import.meta.url), {
        modules: [new URL("waits.py", import.meta.url)],
        libraries: ["huggingface_tokenizers"],
        onProgress: (report) => progress.show(report),
      });
      const kernels = await runtime.call("kernels");
      this.#booted = true;
      figures.showThreads(started, (count) => runtime.setThreads(count));
      status.say(`Ready: tallow ${started.tallow}, Python ${started.python}, kernels ${kernels}.`);
      return true;
    } catch (error) {
      if (runtime === this.#runtime) showStartFailure(view, error);
      return false;
    } finally {
      progress.hide();
    }
  }

  /** Run a cell after the cells before it. @param {string} code */
  async run(code) {
    problems.hide();
    this.#queue.push(code);
    if (this.#running) return;
    this.#running = true;
    document.body.classList.add("busy");
    try {
      if (!(await this.#started)) return;
      for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) await this.#run(next);
    } finally {
      this.#running = false;
      document.body.classList.remove("busy");
    }
  }

  /** @param {string} code */
  async #run(code) {
    terminal.begin(code);
    const runtime = this.#runtime;
    status.say("Running.");
    document.body.classList.add("burning");
    try {
      await runtime.call("run", { source: code }, { onEvent: (piece) => terminal.write(piece) });
    } catch (error) {
      if (runtime !== this.#runtime) return; // it was replaced, and the page says so
      if (error instanceof Problem && error.name === "KeyboardInterrupt") {
        terminal.write({ stream: "error", text: "KeyboardInterrupt\n" }); // before the first statement
      } else problems.show(error);
    } finally {
      if (runtime === this.#runtime) {
        this.#withdrawRestart();
        status.say("Ready.");
      }
      terminal.flush();
      document.body.classList.remove("burning");
    }
  }

  /** @param {string} code @returns {Promise<boolean>} */
  async isComplete(code) {
    return (await this.#started) && this.#runtime.call("is_complete", { source: code });
  }

  /** @param {string} code @returns {Promise<{ names: string[], start: number }>} */
  async complete(code) {
    // Python would answer after the cell, when the text has changed.
    if (this.#running || !(await this.#started)) return { names: [], start: code.length };
    return this.#runtime.call("complete", { source: code });
  }

  /** Interrupt the running cell and drop the queued cells. */
  interrupt() {
    if (!this.#running) return status.remark("Nothing is running.");
    this.#queue = [];
    if (!this.#booted) return status.say("Python is starting. Queued code will not run.");
    status.say("Interrupting.");
    // Only the end of the cell shows that it was interrupted: code that catches the interrupt still answers calls.
    this.#restartTimer ??= window.setTimeout(() => this.#offerRestart(), PATIENCE_MS);
    this.#runtime.interrupt();
  }

  #offerRestart() {
    this.#restartTimer = undefined;
    this.#isRestartOffered = true;
    const why = globalThis.crossOriginIsolated ? "The code does not answer." : "The code does not answer: this page is not cross-origin isolated, so it cannot interrupt a computation.";
    const problem = new Problem("NoAnswer", why, "Wait, or restart Python, which deletes its variables.");
    problems.show(problem, { label: "Restart Python", action: () => this.restart("Python did not answer.") });
  }

  /** Withdraw the offer, because the cell has ended. */
  #withdrawRestart() {
    clearTimeout(this.#restartTimer);
    this.#restartTimer = undefined;
    if (this.#isRestartOffered) problems.hide();
    this.#isRestartOffered = false;
  }

  /** Terminate Python and start a new session. @param {string} reason */
  restart(reason) {
    const runtime = this.#runtime;
    this.#queue = [];
    this.#booted = false;
    this.#withdrawRestart();
    this.#runtime = Runtime.create();
    this.#started = this.#start();
    runtime.close();
    problems.hide();
    terminal.write({ stream: "note", text: `${reason} Python was restarted: its variables are gone.\n` });
    status.say("Python is starting again.");
  }
}

/** The code in the page's link, or null. It is shown but not run, because anybody can write a link. */
function codeFromLink() {
  try {
    return readFragment().code ?? null;
  } catch (error) {
    problems.show(error);
    return null;
  }
}

/** @param {Prompt} prompt */
function showLink(prompt) {
  const code = codeFromLink();
  if (code === null) return;
  prompt.code = code;
  terminal.write({ stream: "note", text: "The code below came with the link. Read it, then press Run.\n" });
}

/** @param {Prompt} prompt */
async function share(prompt) {
  const link = new URL(location.href);
  link.hash = fragmentOf({ code: prompt.code.trim() ? prompt.code : prompt.last() });
  history.replaceState(null, "", link);
  await copy(link.href, "The link was copied, and is now this page's address.");
}

/** @param {string} text @param {string} remark  shown afterwards */
async function copy(text, remark) {
  try {
    await navigator.clipboard.writeText(text);
    status.remark(remark);
  } catch (error) {
    problems.show(new Problem("NoClipboard", `The browser does not let the page copy: ${error}`, "Select the text and copy it."));
  }
}

/** @param {Prompt} prompt */
function showExamples(prompt) {
  page.examples.replaceChildren(
    ...EXAMPLES.map(([file, title]) => {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: title });
      button.dataset.testid = "example";
      button.onclick = async () => {
        problems.hide();
        try {
          const response = await fetch(new URL(`examples/${file}`, import.meta.url));
          if (!response.ok) throw new Error(`the server answers ${response.status}`);
          prompt.code = (await response.text()).trimEnd();
          prompt.focus();
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

/** @param {Session} session @param {Prompt} prompt */
function listen(session, prompt) {
  onSubmit(page.form, () => {
    prompt.submit();
    prompt.focus();
  });
  page.interrupt.onclick = () => session.interrupt();
  page.clear.onclick = () => {
    terminal.clear();
    prompt.focus();
  };
  page.copy.onclick = () => copy(terminal.text(), "The output was copied.");
  page.share.onclick = () => share(prompt);
  addEventListener("hashchange", () => showLink(prompt));
  addEventListener("keydown", (event) => {
    const selected = getSelection()?.toString() || page.prompt.selectionStart !== page.prompt.selectionEnd;
    if (event.key === "c" && event.ctrlKey && !selected) session.interrupt();
  });
}

const session = new Session();
const prompt = new Prompt(page.prompt, page.completions, session);
listen(session, prompt);
showExamples(prompt);
showLink(prompt);
prompt.focus();
isolate();
