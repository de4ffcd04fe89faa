import { isolate } from "../../web/isolation.js";
import { ProblemBox, ProgressBar, Status, element } from "../../web/page.js";
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
// Code that catches KeyboardInterrupt, a single long operation, or any code where a page cannot interrupt, is given this
// long before a restart is offered.
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
const status = new Status(element("status", HTMLElement));
const problems = new ProblemBox(element("error", HTMLElement));
const progress = new ProgressBar(element("progress", HTMLElement));
const terminal = new Terminal(element("output", HTMLElement));

/** A Python session and what it was asked to run, one cell after the other. */
class Session {
  #runtime = Runtime.create();
  #started = this.#start();
  /** @type {string[]} */
  #queue = [];
  #running = false;
  #booted = false;
  /** @type {number | undefined}  the timer of the offer to restart */
  #patience;
  #isOffered = false;

  /** Boot Python. @returns {Promise<boolean>} whether it runs */
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
      status.say(`Ready: tallow ${started.tallow}, Python ${started.python}, kernels ${kernels}.`);
      return true;
    } catch (error) {
      if (runtime === this.#runtime) {
        status.say("Python is not running.");
        problems.show(error, { label: "Try again", action: () => location.reload() });
      }
      return false;
    } finally {
      progress.hide();
    }
  }

  /** Run a cell when those before it are through. @param {string} code */
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
      if (runtime === this.#runtime) problems.show(error); // else it was replaced, and the page says so
    } finally {
      if (runtime === this.#runtime) {
        this.#endPatience();
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
    // Python answers when the cell is through; by then there is something else to complete.
    if (this.#running || !(await this.#started)) return { names: [], start: code.length };
    return this.#runtime.call("complete", { source: code });
  }

  /** Stop the cell that runs, and those that wait for it. */
  async interrupt() {
    if (!this.#running) return status.remark("Nothing is running.");
    this.#queue = [];
    if (!this.#booted) return status.say("Python is starting. Queued code will not run.");
    const runtime = this.#runtime;
    status.say("Interrupting.");
    // Whether anything ends the cell is seen at its end alone: also code that goes on answers while it awaits.
    this.#patience ??= window.setTimeout(() => this.#offerRestart(), PATIENCE_MS);
    runtime.interrupt(); // code that computes, where the page can
    await runtime.call("cancel").catch(() => {}); // code that waits; the runtime may be closed meanwhile
  }

  #offerRestart() {
    this.#patience = undefined;
    this.#isOffered = true;
    const why = globalThis.crossOriginIsolated ? "The code does not answer." : "The code does not answer: this page is not cross-origin isolated, so it cannot interrupt code that computes.";
    const problem = new Problem("NoAnswer", why, "Wait for it, or restart Python; its variables are then gone.");
    problems.show(problem, { label: "Restart Python", action: () => this.restart("Python did not answer.") });
  }

  /** The cell has ended: nothing is left to offer. */
  #endPatience() {
    clearTimeout(this.#patience);
    this.#patience = undefined;
    if (this.#isOffered) problems.hide();
    this.#isOffered = false;
  }

  /** End Python, whatever it does, and begin a new session. @param {string} reason */
  restart(reason) {
    const runtime = this.#runtime;
    this.#queue = [];
    this.#booted = false;
    this.#endPatience();
    this.#runtime = Runtime.create();
    this.#started = this.#start();
    runtime.close();
    problems.hide();
    terminal.write({ stream: "note", text: `${reason} Python was restarted: its variables are gone.\n` });
    status.say("Python is starting again.");
  }
}

/** The code of a link, or null. It is shown and not run: a link may come from anybody. */
function codeOfLink() {
  const match = /^#code=(.*)$/.exec(location.hash);
  if (!match) return null;
  try {
    return decodeURIComponent(match[1]);
  } catch {
    problems.show(new Problem("BadLink", "The link's code is damaged.", "Ask for the link again; it may have been cut."));
    return null;
  }
}

/** @param {Prompt} prompt */
function showLink(prompt) {
  const code = codeOfLink();
  if (code === null) return;
  prompt.code = code;
  terminal.write({ stream: "note", text: "The code below came with the link. Read it, then press Run.\n" });
}

/** @param {Prompt} prompt */
async function share(prompt) {
  const link = new URL(location.href);
  link.hash = `code=${encodeURIComponent(prompt.code.trim() ? prompt.code : prompt.last())}`;
  history.replaceState(null, "", link);
  await copy(link.href, "The link is copied, and is this page's address now.");
}

/** @param {string} text @param {string} done */
async function copy(text, done) {
  try {
    await navigator.clipboard.writeText(text);
    status.remark(done);
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
  page.form.onsubmit = (event) => {
    event.preventDefault();
    prompt.submit();
    prompt.focus();
  };
  page.interrupt.onclick = () => session.interrupt();
  page.clear.onclick = () => {
    terminal.clear();
    prompt.focus();
  };
  page.copy.onclick = () => copy(terminal.text(), "The output is copied.");
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
