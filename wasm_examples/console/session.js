/** A Python session, which runs cells one after the other. */

import { release, showStartFailure, showStopped } from "../../web/page/page.js";
import { Problem } from "../../web/worker/protocol.js";
import { Runtime } from "../../web/page/tallow.js";
import { APP, OPTIONS } from "./python.js";

/** @import { Figures, PageView } from "../../web/page/page.js" */
/** @import { Piece } from "./terminal.js" */

/**
 * Where a cell's code and output appear.
 * @typedef {{ begin(code: string): void, write(piece: Piece): void, flush(): void }} Sink
 * @typedef {{ closes_figures?: boolean, shows_tensors?: boolean }} Options  of `run` in app.py
 * @typedef {"done" | "failed" | "dropped"} Outcome  dropped: it was interrupted before its turn, or Python does not run
 * @typedef {{ code: string, sink: Sink, options: Options, end: (outcome: Outcome) => void }} Cell
 * @typedef {{ name: string, bytes: number }} Listed  a file of the working folder
 */

// An interrupt has no effect on code that catches KeyboardInterrupt, on a single long operation, and on a page that is not
// isolated. If the code still runs after this long, the page offers a restart.
const PATIENCE_MS = 3000;

export class Session {
  /** Called when cells begin to run, and when all have ended. */
  onBusy = (/** @type {boolean} */ isBusy) => {};
  /** Called when cells have run, and Python may have written files. */
  onRan = () => {};
  /** Called when Python was restarted, which deletes its variables. @type {(reason: string) => void} */
  onRestart = () => {};
  #view;
  #figures;
  #runtime = this.#newRuntime();
  #started;
  /** @type {Cell[]} */
  #queue = [];
  #running = false;
  #booted = false;
  /** @type {number | undefined} */
  #restartTimer;
  #isRestartOffered = false;

  /** @param {PageView} view @param {Figures} figures */
  constructor(view, figures) {
    this.#view = view;
    this.#figures = figures;
    this.#started = this.#start();
  }

  #newRuntime() {
    const runtime = Runtime.create();
    runtime.onStop = (problem) => {
      this.#withdrawRestart();
      showStopped(this.#view, problem, () => this.restart("Python had stopped."));
      this.#drop();
    };
    return runtime;
  }

  /** Boot Python. @returns {Promise<boolean>}  whether it runs */
  async #start() {
    const runtime = this.#runtime;
    const { status, progress } = this.#view;
    try {
      const started = await runtime.start(APP, { ...OPTIONS, onProgress: (report) => progress.show(report) });
      const kernels = await runtime.call("kernels");
      this.#booted = true;
      this.#figures.showThreads(started, (count) => runtime.setThreads(count));
      status.say(`Ready: tallow ${started.tallow}, Python ${started.python}, kernels ${kernels}.`);
      return true;
    } catch (error) {
      if (runtime === this.#runtime) showStartFailure(this.#view, error);
      return false;
    } finally {
      progress.hide();
    }
  }

  /**
   * Run a cell after the cells before it.
   * @param {string} code @param {Sink} sink @param {Options} [options]
   * @returns {Promise<Outcome>}
   */
  run(code, sink, options = {}) {
    this.#view.problems.hide();
    return new Promise((end) => {
      this.#queue.push({ code, sink, options, end });
      if (!this.#running) this.#runQueue();
    });
  }

  async #runQueue() {
    this.#running = true;
    document.body.classList.add("busy");
    this.onBusy(true);
    try {
      if (!(await this.#started)) return;
      for (let next = this.#queue.shift(); next; next = this.#queue.shift()) next.end(await this.#run(next));
      this.onRan();
    } finally {
      this.#running = false;
      document.body.classList.remove("busy");
      this.onBusy(false);
      this.#drop();
    }
  }

  /** @param {Cell} cell @returns {Promise<Outcome>} */
  async #run({ code, sink, options }) {
    const { status, problems } = this.#view;
    sink.begin(code);
    const runtime = this.#runtime;
    let hasFailed = false;
    const onEvent = (/** @type {Piece} */ piece) => {
      hasFailed ||= piece.stream === "error";
      sink.write(piece);
    };
    status.say("Running.");
    document.body.classList.add("burning");
    try {
      await runtime.call("run", { source: code, ...options }, { onEvent });
    } catch (error) {
      if (runtime !== this.#runtime) return "failed"; // it was replaced, and the page says so
      hasFailed = true;
      if (error instanceof Problem && error.name === "KeyboardInterrupt") {
        sink.write({ stream: "error", text: "KeyboardInterrupt\n", name: "KeyboardInterrupt", value: "" }); // before the first statement
      } else problems.show(error);
    } finally {
      if (runtime === this.#runtime) {
        this.#withdrawRestart();
        status.say("Ready.");
      }
      sink.flush();
      document.body.classList.remove("burning");
    }
    return hasFailed ? "failed" : "done";
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

  /** Write files into the working folder. @param {File[]} files */
  async addFiles(files) {
    if (await this.#started) await this.#runtime.load(Object.fromEntries(files.map((file) => [file.name, { file }])));
  }

  /** The files of the working folder. @returns {Promise<Listed[]>} */
  async files() {
    return (await this.#started) ? this.#runtime.call("files") : [];
  }

  /** @param {string} name @returns {Promise<Uint8Array<ArrayBuffer>>} */
  readFile(name) {
    return this.#runtime.call("read_file", { name });
  }

  /** @param {string} name */
  removeFile(name) {
    return this.#runtime.call("remove_file", { name });
  }

  /** Interrupt the running cell and drop the queued cells. */
  interrupt() {
    const { status } = this.#view;
    if (!this.#running) return status.remark("Nothing is running.");
    this.#drop();
    if (!this.#booted) return status.say("Python is starting. Queued code will not run.");
    status.say("Interrupting.");
    // Only the end of the cell shows that it was interrupted: code that catches the interrupt still answers calls.
    this.#restartTimer ??= window.setTimeout(() => this.#offerRestart(), PATIENCE_MS);
    this.#runtime.interrupt();
  }

  #drop() {
    for (const { end } of this.#queue.splice(0)) end("dropped");
  }

  #offerRestart() {
    this.#restartTimer = undefined;
    this.#isRestartOffered = true;
    const why = globalThis.crossOriginIsolated ? "The code does not answer." : "The code does not answer: this page is not cross-origin isolated, so it cannot interrupt a computation.";
    const problem = new Problem("NoAnswer", why, "Wait, or restart Python, which deletes its variables and files.");
    this.#view.problems.show(problem, { label: "Restart Python", action: () => this.restart("Python did not answer.") });
  }

  /** Withdraw the offer, because the cell has ended. */
  #withdrawRestart() {
    clearTimeout(this.#restartTimer);
    this.#restartTimer = undefined;
    if (this.#isRestartOffered) this.#view.problems.hide();
    this.#isRestartOffered = false;
  }

  /** Terminate Python and start a new session. @param {string} reason */
  restart(reason) {
    const runtime = this.#runtime;
    this.#drop();
    this.#booted = false;
    this.#withdrawRestart();
    release(this.#view);
    this.#runtime = this.#newRuntime();
    this.#started = this.#start();
    runtime.close();
    this.onRestart(`${reason} Python was restarted: its variables are gone.`);
    this.#view.status.say("Python is starting again.");
  }
}
