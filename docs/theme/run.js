/**
 * A Run button on each block of Python that runs in a tab, and a link that opens it in the console. Python is loaded when one is pressed first. The blocks of a
 * page share one namespace: Run runs the blocks above first, if they have not run.
 */

/** @import { Runtime } from "../../web/page/tallow.js" */
/** @import { Piece, Terminal } from "../../wasm_examples/console/terminal.js" */

// Code that has not ended so long after Stop is ended together with its Python.
const PATIENCE_MS = 2000;
const SITE = new URL(document.querySelector('meta[name="tallow-site"]')?.getAttribute("content") ?? "", document.baseURI);
const CONSOLE = new URL("wasm_examples/console/", SITE);

/** A block of code, its button and its output. */
class Block {
  hasRun = false;
  #code;
  #button = Object.assign(document.createElement("button"), { type: "button", textContent: "Run" });
  #status = Object.assign(document.createElement("span"), { className: "run-status" });
  #link = Object.assign(document.createElement("a"), { textContent: "Open in console" });
  #output = Object.assign(document.createElement("div"), { className: "run-output", hidden: true });
  /** @type {Terminal | undefined} */
  #terminal;

  /** @param {HTMLElement} place @param {{ run(block: Block): void, stop(): void }} page */
  constructor(place, page) {
    this.#code = place.querySelector("code");
    const bar = Object.assign(document.createElement("div"), { className: "run-bar" });
    this.#link.dataset.testid = "open";
    bar.append(this.#status, this.#link, this.#button);
    place.append(bar, this.#output);
    this.#status.setAttribute("role", "status");
    this.#output.setAttribute("role", "log");
    this.#output.setAttribute("aria-label", "Output");
    this.#output.tabIndex = 0; // it scrolls
    this.#button.dataset.testid = "run";
    this.#status.dataset.testid = "status";
    this.#output.dataset.testid = "output";
    this.#button.onclick = () => (this.#button.classList.contains("running") ? page.stop() : page.run(this));
  }

  get code() {
    return this.#code?.textContent ?? "";
  }

  /** Link to the console with this code, after that of the blocks above. @param {Block[]} above */
  link(above) {
    const code = [...above, this].map(({ code }) => code.trim()).join("\n\n");
    this.#link.href = `${CONSOLE.href}#code=${encodeURIComponent(code)}`; // as fragment.js writes it
  }

  /** @param {string} text */
  say(text) {
    if (this.#status.textContent !== text) this.#status.textContent = text;
  }

  /** @param {boolean} isRunning */
  setRunning(isRunning) {
    this.#button.textContent = isRunning ? "Stop" : "Run";
    this.#button.classList.toggle("running", isRunning);
  }

  /** Start with an empty output. @param {typeof Terminal} Kind */
  begin(Kind) {
    this.#output.hidden = true;
    this.#output.replaceChildren();
    this.#terminal = new Kind(this.#output);
  }

  /** @param {Piece} piece */
  write(piece) {
    this.#output.hidden = false;
    this.#terminal?.write(piece);
  }

  end() {
    this.#terminal?.flush();
    this.setRunning(false);
  }
}

/** The blocks of this page, and the Python that runs them. */
class Page {
  #blocks;
  /** @type {Promise<{ runtime: Runtime, Terminal: typeof Terminal }> | undefined} */
  #python;
  /** @type {Runtime | undefined}  as soon as it can be closed */
  #runtime;
  /** @type {Block[]} */
  #queue = [];
  #patience = 0;
  #isStopped = false;

  constructor() {
    const places = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".runnable"));
    this.#blocks = [...places].map((place) => new Block(place, this));
    for (const [i, block] of this.#blocks.entries()) block.link(this.#blocks.slice(0, i));
  }

  /** Run a block, after those above it that have not run. @param {Block} block */
  async run(block) {
    const earlier = this.#blocks.slice(0, this.#blocks.indexOf(block)).filter((other) => !other.hasRun);
    const isBusy = this.#queue.length > 0;
    for (const next of [...earlier, block]) {
      if (this.#queue.includes(next)) continue;
      this.#queue.push(next);
      next.setRunning(true);
      next.say("Waiting.");
    }
    if (isBusy) return;
    for (let next = this.#queue[0]; next; next = this.#queue[0]) {
      next.hasRun = await this.#run(next);
      if (!next.hasRun) this.#drop();
      this.#queue.shift();
    }
  }

  /** @param {Block} block @returns {Promise<boolean>} whether it ran to its end */
  async #run(block) {
    let hasFailed = false;
    this.#isStopped = false;
    try {
      this.#python ??= this.#start(block);
      const { runtime, Terminal } = await this.#python;
      if (this.#isStopped) {
        block.say("Stopped.");
        return false;
      }
      block.begin(Terminal);
      block.say("Running.");
      const start = performance.now();
      const onEvent = (/** @type {Piece} */ piece) => {
        hasFailed ||= piece.stream === "error";
        block.write(piece);
      };
      await runtime.call("run", { source: block.code }, { onEvent });
      if (hasFailed) block.say(this.#isStopped ? "Stopped." : "Failed.");
      else block.say(`${((performance.now() - start) / 1000).toFixed(1)} s`);
    } catch (error) {
      hasFailed = true;
      if (/** @type {any} */ (error).name === "KeyboardInterrupt") {
        block.say("Stopped."); // before the first statement
        return false;
      }
      if (this.#isStopped) block.say("Stopped. Python was closed; its variables are gone.");
      else if (/** @type {any} */ (error).name === "PythonStopped") block.say(`${/** @type {Error} */ (error).message} Run starts it again.`); // FATAL of protocol.js
      else block.say(`Python did not start. ${error instanceof Error ? error.message : error}`);
      this.#close();
    } finally {
      clearTimeout(this.#patience);
      this.#patience = 0;
      block.end();
    }
    return !hasFailed;
  }

  /** Load Python. @param {Block} block  which says how far it is */
  async #start(block) {
    const { Runtime } = /** @type {typeof import("../../web/page/tallow.js")} */ (await import(new URL("web/tallow.js", SITE).href));
    const { Terminal } = /** @type {typeof import("../../wasm_examples/console/terminal.js")} */ (
      await import(new URL("terminal.js", CONSOLE).href)
    );
    const { APP, OPTIONS } = /** @type {typeof import("../../wasm_examples/console/python.js")} */ (
      await import(new URL("python.js", CONSOLE).href)
    );
    const runtime = (this.#runtime = Runtime.create());
    runtime.onStop = () => this.#close();
    await runtime.start(APP, { ...OPTIONS, onProgress: ({ name }) => block.say(`${name}.`) });
    return { runtime, Terminal };
  }

  /** Stop the block that runs, and forget those that wait for it. */
  stop() {
    this.#drop();
    this.#isStopped = true;
    this.#queue[0]?.say("Stopping.");
    this.#patience ||= window.setTimeout(() => this.#close(), PATIENCE_MS);
    this.#runtime?.interrupt();
  }

  /** Take what waits out of the queue. */
  #drop() {
    for (const block of this.#queue.splice(1)) {
      block.setRunning(false);
      block.say("");
    }
  }

  /** End Python; the next Run starts another. */
  #close() {
    const runtime = this.#runtime;
    this.#runtime = undefined;
    this.#python = undefined;
    for (const block of this.#blocks) block.hasRun = false;
    runtime?.close();
  }
}

new Page();
