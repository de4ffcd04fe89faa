/**
 * The states of a page that works with one model: Python starts, a model loads, work uses it.
 *
 *     const page = new ModelPage(view, { url: new URL("app.py", import.meta.url) }, { onStart, onLoad });
 *     page.load({ name: "tiny", files: async () => ({ model: { url } }) });
 *     page.work(async (signal) => {
 *       if (await page.ready("Work starts when the model has loaded.", signal)) show(await page.runtime.call("answer"));
 *     }, { failed: "There is no answer." });
 *
 * A page loads one model and does one piece of work at a time. A new load stops the load and the work before it, new work
 * stops the work before it; each waits until what it replaces has ended. `view` shows the state.
 *
 * A later visit offers the downloaded model that was used last, below the name of the model, while the browser stores its files.
 *
 * If Python stops, the page says so and offers to restart it: Python then starts again, and the last model is loaded.
 *
 * A page that does nothing for ten minutes ends its worker, which frees the memory. The next load or work starts Python again
 * and loads the last model.
 */

import { keepLast, storedLast } from "./last-model.js";
import { LatestTask } from "./latest-task.js";
import { aborted, expectAnswer, megabytes, release, showStartFailure, showStopped } from "./page.js";
import { Runtime } from "./tallow.js";

/** @import { Figures, PageView, Remedy } from "./page.js" */
/** @import { Loaded, Progress, Source, Started } from "../worker/protocol.js" */
/** @import { StoredDownloads } from "./stored-downloads.js" */

const IDLE_MS = 10 * 60 * 1000;

/**
 * A model to load. `files` finds its files, while Python starts.
 * @typedef {{ name: string, files: (signal: AbortSignal) => Promise<Record<string, Source>> }} ModelChoice
 *
 * The Python of the page, see Runtime.start.
 * @typedef {{ url: URL, modules?: URL[], parts?: string[], packages?: string[], libraries?: string[] }} App
 *
 * The elements that show the state. `noModel` is shown in place of the model's description while there is no model; `stop` can
 * be pressed while something runs.
 * @typedef {PageView & { stop: HTMLButtonElement, modelName: HTMLElement, noModel: string, figures: Figures, downloads: StoredDownloads }} ModelView
 */

/**
 * The callbacks that differ from page to page. `onLoad` shows the model that was loaded and returns what the page needs to
 * know about it. `onModel` is called with null when a load starts, and when it ends with the model in memory, if any.
 * `hasResults` says whether Python has results that the page still needs, besides the model: then Python is not ended.
 * `isBusy` says whether the page does something else that its Stop ends; it calls `showBusy` when that changes.
 * @template {ModelChoice} Choice
 * @template {{ description: string }} Model
 * @typedef {{
 *   onStart(started: Started): void,
 *   onLoad(choice: Choice, loaded: Loaded): Model,
 *   onModel?(model: Model | null): void,
 *   hasResults?(): boolean,
 *   isBusy?(): boolean,
 * }} Handlers
 */

/**
 * @template {ModelChoice} Choice
 * @template {{ description: string }} Model
 */
export class ModelPage {
  runtime = this.#newRuntime();
  /** @type {Model | null}  the model in memory; a load that fails or is stopped does not change it */
  model = null;
  /** @type {Choice | null}  that of `model` */
  #loaded = null;
  /** @type {Choice | null}  the last one, even if it could not be loaded */
  choice = null;
  #offer = document.createElement("button");
  #view;
  #app;
  #handlers;
  /** @type {Promise<Started>} */
  #started;
  /** @type {LatestTask<boolean>}  its result is whether the model can be used */
  #loading = new LatestTask();
  /** @type {LatestTask<void>} */
  #working = new LatestTask();
  #idleTimer = 0;
  #isEnded = false; // Python, because the page was idle, or by itself
  /** @type {number | null}  chosen by the user */
  #threads = null;

  /** Start Python. @param {ModelView} view @param {App} app @param {Handlers<Choice, Model>} handlers */
  constructor(view, app, handlers) {
    this.#view = view;
    this.#app = app;
    this.#handlers = handlers;
    this.#offer.type = "button";
    this.#offer.dataset.testid = "last-model";
    view.downloads.listeners.push((urls) => this.#offerLast(urls));
    this.#started = this.#start();
    this.#started.then(
      (started) => handlers.onStart(started),
      () => {}, // shown by #start
    );
  }

  get isLoading() {
    return this.#loading.busy;
  }

  /** Whether work runs that has not been stopped. */
  get isWorking() {
    return this.#working.running;
  }

  /** Load a model in place of the one that is loading or loaded; work that uses that one stops. @param {Choice} choice */
  load(choice) {
    this.choice = choice;
    this.#working.stop();
    this.#view.problems.hide();
    return this.#load(choice);
  }

  /** @param {Choice} choice */
  async #load(choice) {
    this.#restart();
    this.#offer.remove();
    const { status, modelName, noModel, progress, downloads } = this.#view;
    status.say(`Loading ${choice.name}`);
    modelName.textContent = `Loading ${choice.name}`;
    this.#handlers.onModel?.(null);
    const ended = this.#loading.run((signal) => this.#tryToLoad(choice, signal));
    this.showBusy();
    await ended;
    this.showBusy();
    if (this.isLoading) return; // another load has started and now owns the view
    progress.hide();
    modelName.textContent = this.model?.description ?? noModel;
    this.#handlers.onModel?.(this.model);
    downloads.refresh();
    this.#awaitIdle();
  }

  /**
   * Run work, in place of the work that is running.
   * @param {(signal: AbortSignal) => Promise<void>} task  must end soon after its signal aborts
   * @param {{ failed: string, remedy?: (error: unknown) => Remedy | Remedy[] | undefined }} texts
   *   `failed` is the status after an error, `remedy` a button below its message, or several
   */
  async work(task, texts) {
    this.#view.problems.hide();
    if (this.#restart() && this.#loaded) this.#load(this.#loaded);
    const ended = this.#working.run((signal) => this.#tryToWork(task, texts, signal));
    this.showBusy();
    await ended;
    this.showBusy();
    this.#awaitIdle();
  }

  /** Keep Python for calls that are not work. If it was ended, start it again and load the last model. */
  stay() {
    if (this.#restart() && this.#loaded) this.#load(this.#loaded);
    else this.#awaitIdle();
  }

  /**
   * Wait until no model is loading. If there is none, because its load was stopped or failed, load it again.
   * @param {string} waiting  the status while a model is loading
   * @param {AbortSignal} signal
   * @returns {Promise<boolean>}  false if that model cannot be used; the page says why
   */
  async ready(waiting, signal) {
    if (!this.model && !this.isLoading && this.choice) this.#load(this.choice);
    if (!this.isLoading) return true;
    this.#view.status.say(waiting);
    return Boolean(await Promise.race([this.#loading.result, aborted(signal)]));
  }

  /** Let the user press Stop if something runs. */
  showBusy() {
    this.#view.stop.disabled = !this.isLoading && !this.#working.busy && !this.#handlers.isBusy?.();
  }

  /** Stop the work, but no load. */
  stopWork() {
    return this.#working.stop();
  }

  /** Stop the load and the work. @param {string} [stopped]  the status when only work was stopped */
  async stop(stopped = "Stopped.") {
    const { status } = this.#view;
    const { isLoading, runtime } = this;
    if (!this.#isEnded) expectAnswer(runtime, this.#view.problems, () => (runtime.close(), this.#resume()));
    await Promise.all([this.#loading.stop(), this.#working.stop()]);
    if (this.isLoading || this.#working.busy) return; // something else has started
    status.say(isLoading ? "Loading stopped." : stopped);
  }

  #newRuntime() {
    const runtime = Runtime.create();
    runtime.onStop = (problem) => {
      this.#isEnded = true;
      showStopped(this.#view, problem, () => this.#resume());
    };
    return runtime;
  }

  /** Start Python again, with the last model. */
  #resume() {
    this.#isEnded = true;
    const choice = this.#loaded ?? this.choice;
    if (choice) this.#load(choice);
    else this.#restart();
  }

  /** Start Python in the runtime. @returns {Promise<Started>} */
  #start() {
    const { url, ...needs } = this.#app;
    const started = this.runtime.start(url, { ...needs, onProgress: (report) => this.#view.progress.show(report) });
    started.then(
      (result) => this.#showStarted(result),
      (error) => showStartFailure(this.#view, error),
    );
    return started;
  }

  /** Start Python again, if it was ended. @returns {boolean}  whether it was */
  #restart() {
    clearTimeout(this.#idleTimer);
    if (!this.#isEnded) return false;
    this.#isEnded = false;
    this.model = null;
    release(this.#view);
    this.runtime = this.#newRuntime();
    this.#started = this.#start();
    return true;
  }

  /** End Python after a while in which nothing runs. */
  #awaitIdle() {
    clearTimeout(this.#idleTimer);
    if (this.isLoading || this.#working.busy) return; // it calls this function at its end
    this.#idleTimer = window.setTimeout(() => {
      if (this.#handlers.hasResults?.()) return;
      this.#isEnded = true;
      this.runtime.close();
    }, IDLE_MS);
  }

  /** @param {Started} started */
  #showStarted(started) {
    this.#showThreads(started);
    const { snapshot } = started;
    this.#view.figures.show("Python", snapshot === true ? "continued from its stored memory" : `started from its files: ${snapshot}`);
    if (this.isLoading) return;
    this.#view.progress.hide();
    this.#view.status.say("Python is ready. Choose a model.");
    this.#awaitIdle();
  }

  /** @param {Started} started */
  #showThreads(started) {
    const threads = this.#threads ?? started.threads;
    this.#view.figures.showThreads({ ...started, threads }, (count) => this.#setThreads(count));
    if (this.#threads !== null) this.runtime.setThreads(this.#threads);
  }

  /** @param {number} count */
  #setThreads(count) {
    this.#threads = count;
    if (!this.#isEnded) this.runtime.setThreads(count);
  }

  /** @param {Choice} choice @param {AbortSignal} signal @returns {Promise<boolean>}  whether the model can be used */
  async #tryToLoad(choice, signal) {
    const { status, problems, progress } = this.#view;
    const loading = this.#findAndLoad(choice, signal, (report) => signal.aborted || progress.show(report));
    loading.catch(() => {}); // reported below
    try {
      await Promise.race([this.#started, aborted(signal)]);
    } catch {
      return false; // stopped, or Python did not start, which the page says already
    }
    try {
      const { files, loaded } = await loading;
      this.model = this.#handlers.onLoad(choice, loaded);
      this.#loaded = choice;
      keepLast(choice, files);
      this.#showLoaded(loaded);
      return true;
    } catch (error) {
      if (!signal.aborted) {
        status.say(`Could not load ${choice.name}.`);
        problems.show(error);
      }
      return false;
    }
  }

  /** Find the files of a model and load them, when Python has started. @param {Choice} choice @param {AbortSignal} signal @param {(report: Progress) => void} onProgress */
  async #findAndLoad(choice, signal, onProgress) {
    const files = await choice.files(signal);
    return { files, loaded: await this.runtime.load(files, { onProgress, signal }) };
  }

  /** Offer the model that was used last, unless it is the one in memory. @param {Set<string>} urls  the stored downloads */
  #offerLast(urls) {
    /** @type {Choice | null} */
    const last = storedLast(urls);
    if (!last || last.name === this.#loaded?.name) return this.#offer.remove();
    this.#offer.textContent = `Use ${last.name} again: kept in this browser, no download`;
    this.#offer.onclick = () => this.load(last);
    this.#view.modelName.after(this.#offer);
  }

  /** @param {Loaded} loaded */
  #showLoaded({ info, bytes, seconds, notice }) {
    const { figures, status } = this.#view;
    figures.show("Model load", `${seconds.toFixed(2)} s${bytes ? `, ${megabytes(bytes)}` : ""}`);
    figures.show("Kernels", info.kernels);
    status.say(["Ready.", notice ?? ""].join(" ").trim());
  }

  /**
   * @param {(signal: AbortSignal) => Promise<void>} task
   * @param {{ failed: string, remedy?: (error: unknown) => Remedy | Remedy[] | undefined }} texts
   * @param {AbortSignal} signal
   */
  async #tryToWork(task, { failed, remedy }, signal) {
    try {
      await task(signal);
    } catch (error) {
      if (signal.aborted) return;
      this.#view.status.say(failed);
      this.#view.problems.show(error, ...[remedy?.(error) ?? []].flat());
    }
  }
}
