/** The story on the front page. Python is not loaded before the visitor wants it. */

import { fragmentOf } from "../page/fragment.js";
import { aborted, element, expectAnswer, pageView, release, showStopped } from "../page/page.js";

/** @import { Runtime } from "../page/tallow.js" */

const STEPS = ["Fetching Python", "Starting Python", "Importing tallow"]; // what python.js reports
const SNAPSHOTS = "tallow-snapshots"; // the cache of snapshot-visits.js
const IDLE_MS = 10 * 60 * 1000; // Python is then ended, which frees its memory

export class FrontStory {
  #prompt = element("prompt", HTMLInputElement);
  #button = element("tell", HTMLButtonElement);
  #output = element("output", HTMLElement);
  #rate = element("rate", HTMLElement);
  #measured = element("measured", HTMLElement);
  #more = element("more", HTMLAnchorElement);
  #view = pageView();
  /** @type {Promise<Runtime> | null}  null before Python starts, and after it has failed or was ended */
  #started = null;
  /** @type {AbortController | null}  of the story that is waiting or being told */
  #telling = null;
  #seed = 1;
  #idleTimer = 0;

  /** Start Python, unless it runs or starts. */
  start() {
    if (this.#started) return;
    this.#started = this.#start();
    this.#started.catch((error) => {
      this.#started = null;
      this.#view.progress.hide();
      this.#view.status.say(navigator.onLine ? "Python is not running." : "You are offline.");
      this.#view.problems.show(error);
    });
  }

  /** Start Python when the browser is idle, if an earlier visit has stored what it takes to start quickly. */
  async startIfQuick() {
    try {
      if (!("caches" in globalThis) || !(await caches.has(SNAPSHOTS))) return;
      if (!(await (await caches.open(SNAPSHOTS)).keys()).length) return;
    } catch {
      return; // the browser stores nothing
    }
    const idle = globalThis.requestIdleCallback ?? ((/** @type {() => void} */ run) => setTimeout(run, 200));
    idle(() => this.start());
  }

  /** Tell a story; or stop the one that is told. */
  toggle() {
    if (this.#telling) this.#stop(this.#telling);
    else this.#tell();
  }

  /** @param {AbortController} telling */
  async #stop(telling) {
    telling.abort();
    const runtime = await this.#started?.catch(() => null);
    if (!runtime) return; // the page says why
    const restart = () => {
      runtime.close();
      this.#started = null;
      this.start();
    };
    expectAnswer(runtime, this.#view.problems, restart);
  }

  /** @returns {Promise<Runtime>} */
  async #start() {
    release(this.#view);
    this.#showStep(STEPS[0]);
    const { Runtime } = await import("../page/tallow.js");
    const runtime = Runtime.create();
    runtime.onStop = (problem) => {
      this.#started = null;
      showStopped(this.#view, problem, () => this.start());
    };
    try {
      const onProgress = (/** @type {{ name: string }} */ { name }) => this.#showStep(name);
      await runtime.start(new URL("front.py", import.meta.url), { parts: ["stories"], onProgress });
    } catch (error) {
      runtime.close();
      throw error;
    }
    this.#view.progress.hide();
    this.#view.status.say("Python is ready.");
    this.#awaitIdle();
    return runtime;
  }

  /** @param {string} name */
  #showStep(name) {
    this.#view.progress.update(`${name}, step ${STEPS.indexOf(name) + 1} of ${STEPS.length}`, null);
    this.#view.status.say(this.#telling ? "The story begins when Python has started." : "Python is starting.");
  }

  async #tell() {
    const controller = (this.#telling = new AbortController());
    const { signal } = controller;
    this.#button.textContent = "Stop";
    clearTimeout(this.#idleTimer);
    try {
      if (!this.#started) this.start();
      else this.#view.status.say("The story begins when Python has started.");
      const runtime = await Promise.race([/** @type {Promise<Runtime>} */ (this.#started), aborted(signal)]);
      await this.#write(runtime, signal);
      if (this.#measured.hidden) await this.#measure(runtime);
    } catch (error) {
      if (signal.aborted) this.#view.status.say(this.#progressing ? "Python is starting." : "Stopped.");
      else if (this.#started) {
        this.#view.status.say("No new story.");
        this.#view.problems.show(error);
      } // else Python did not start, which the page says already
    } finally {
      this.#telling = null;
      this.#button.textContent = this.#output.textContent ? "Tell another" : "Tell a story";
      this.#awaitIdle();
    }
  }

  get #progressing() {
    return !element("progress", HTMLElement).hidden;
  }

  /** @param {Runtime} runtime @param {AbortSignal} signal */
  async #write(runtime, signal) {
    const prompt = this.#prompt.value;
    const seed = this.#seed++;
    this.#view.status.say("Writing.");
    document.body.classList.add("burning");
    this.#output.setAttribute("aria-busy", "true");
    const given = Object.assign(document.createElement("b"), { textContent: prompt });
    const text = document.createTextNode("");
    this.#output.replaceChildren(given, text);
    this.#more.href = `wasm_examples/llama2c/${fragmentOf({ prompt, seed: String(seed) })}`;
    let count = 0;
    try {
      for await (const piece of runtime.generate({ prompt, seed }, { signal })) {
        text.appendData(piece.text);
        this.#output.scrollTop = this.#output.scrollHeight;
        const { tokens, tokens_per_s } = piece.stats;
        count = tokens;
        if (tokens_per_s) this.#rate.textContent = `${Math.round(tokens_per_s).toLocaleString("en")} tokens/s`;
      }
    } finally {
      document.body.classList.remove("burning");
      this.#output.removeAttribute("aria-busy");
    }
    this.#view.status.say(`Done: ${count} tokens.`);
  }

  /** @param {Runtime} runtime */
  async #measure(runtime) {
    const { size, kernels_s, numpy_s } = await runtime.call("measure");
    const ratio = numpy_s / kernels_s;
    const strong = Object.assign(document.createElement("strong"), { textContent: `${ratio.toFixed(ratio < 10 ? 1 : 0)} times NumPy` });
    const times = `${milliseconds(kernels_s)} with tallow's kernels, ${milliseconds(numpy_s)} without.`;
    this.#measured.replaceChildren(`matmul ${size} × ${size}: `, strong, ` in this tab. `, times);
    this.#measured.hidden = false;
  }

  #awaitIdle() {
    clearTimeout(this.#idleTimer);
    this.#idleTimer = window.setTimeout(async () => {
      const runtime = await this.#started;
      this.#started = null;
      runtime?.close();
    }, IDLE_MS);
  }
}

/** @param {number} seconds */
function milliseconds(seconds) {
  return `${Number((1000 * seconds).toPrecision(3))} ms`;
}
