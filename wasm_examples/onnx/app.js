import { fragmentOf } from "../../web/page/fragment.js";
import { isolate } from "../../web/page/isolation.js";
import { companionsOf, parseModelFile } from "../../web/page/model-files.js";
import { listenForModels } from "../../web/page/model-inputs.js";
import { ModelPage } from "../../web/page/model-page.js";
import { Figures, closeOnPhone, element, megabytes, onSubmit, pageView, showStart } from "../../web/page/page.js";
import { markPresets, preset } from "../../web/page/presets.js";
import { StoredDownloads } from "../../web/page/stored-downloads.js";
import { Problem } from "../../web/worker/protocol.js";
import { GraphView } from "./graph-view.js";
import { Inputs } from "./inputs.js";
import { canvasOf, showOutputs, tableOf } from "./outputs.js";
import { Times, milliseconds } from "./times.js";

/** @import { ModelChoice, ModelView } from "../../web/page/model-page.js" */
/** @import { Source } from "../../web/worker/protocol.js" */
/** @import { GraphNode } from "./graph-view.js" */
/** `code` loads the model in the console. @typedef {ModelChoice & { code: string }} Choice */
/** @typedef {{ name: string, description: string, problem: string }} Model */

const MODEL = "model.onnx"; // app.py knows the file by this name
const ONNX = /\.onnx$/i;
const EXAMPLE = "onnx-community/mobilenetv4_conv_small.e2400_r224_in1k:onnx/model.onnx";
const BUILT_IN = new URL("models/digits.onnx", import.meta.url).href;

const page = {
  modelName: element("model-name", HTMLElement),
  choices: element("choices", HTMLDetailsElement),
  presets: element("presets", HTMLElement),
  modelForm: element("model-form", HTMLFormElement),
  modelId: element("model-id", HTMLInputElement),
  modelFiles: element("model-files", HTMLInputElement),
  console: element("console", HTMLAnchorElement),
  runForm: element("run-form", HTMLFormElement),
  stop: element("stop", HTMLButtonElement),
  inputs: element("inputs", HTMLElement),
  outputs: element("outputs", HTMLElement),
  graph: element("graph", HTMLCanvasElement),
  nodeName: element("node-name", HTMLElement),
  nodeLines: element("node-lines", HTMLElement),
  nodeValue: element("node-value", HTMLElement),
};
/** @type {ModelView} */
const view = {
  ...pageView(),
  stop: page.stop,
  modelName: page.modelName,
  noModel: "No model. Choose one.",
  figures: new Figures(element("stats", HTMLElement), ["Run", "Operators", "Weights", "Kernels", "Threads"]),
  downloads: new StoredDownloads(element("downloads", HTMLElement)),
};
const { status, problems } = view;

/** The model that comes with the page. @type {Choice} */
const DIGITS = {
  name: "digits",
  files: async () => ({ [MODEL]: { url: BUILT_IN } }),
  code: `from pyodide.http import pyfetch\n\nfile = await pyfetch(${JSON.stringify(BUILT_IN)})\nmodel = tl.onnx.load(await file.bytes())`,
};

/** Loads a model, draws it and runs it. */
class ModelRunner {
  #inputs = new Inputs(page.inputs);
  #graph = new GraphView(page.graph, (node) => this.#showNode(node));
  #times = new Times({ bar: element("flame", HTMLElement), list: element("times", HTMLElement) }, (node) => this.#graph.select(node));
  /** @type {GraphNode[]} */
  #nodes = [];
  /** @type {string[]}  dims and dtype of the value of each node, after a run */
  #details = [];
  #asked = 0;
  /** @type {ModelPage<Choice, Model>} */
  #page = new ModelPage(view, { url: new URL("app.py", import.meta.url), parts: ["tallow"], modules: ["drawn.py", "shown.py"].map((name) => new URL(name, import.meta.url)) }, {
    onStart: (started) => showStart(view.figures, started),
    onLoad: (choice, { info }) => this.#show(choice, info),
    onModel: (model) => this.#mark(model),
    hasResults: () => page.outputs.childElementCount > 0,
  });

  /** Load a model in place of the one that is loading or loaded; run it once if it is the page's own. @param {Choice} choice */
  async load(choice) {
    await this.#page.load(choice);
    if (choice === DIGITS && this.#page.model?.name === choice.name) this.run();
  }

  /** Load the file of a name or an address. @param {string} text @throws {Problem} it is neither */
  loadNamed(text) {
    const { name, find } = parseModelFile(text, { ending: "onnx", kind: "an ONNX file", example: EXAMPLE });
    const source = JSON.stringify(text.trim());
    const code = /^https?:/.test(text.trim()) ? `from pyodide.http import pyfetch\n\nfile = await pyfetch(${source})\nmodel = tl.onnx.load(await file.bytes())` : `model = tl.onnx.load(${source})`;
    this.load({ name, code, files: async (signal) => ({ ...(await companionsOf(text.trim(), signal)), [MODEL]: await find(signal) }) });
  }

  /** Load a file, with those of its external data; or give another file to the model. @param {Map<string, File>} files */
  take(files) {
    const all = [...files.values()];
    const model = all.find((file) => ONNX.test(file.name));
    if (!model && all.some((file) => this.#inputs.take(file))) return this.run();
    const chosen = model ?? all[0];
    /** @type {Record<string, Source>} */
    const sources = Object.fromEntries(all.filter((file) => file !== chosen).map((file) => [file.name, { file }]));
    const code = `# Add ${chosen.name} to the console's files first.\nmodel = tl.onnx.load(${JSON.stringify(chosen.name)})`;
    this.load({ name: chosen.name, code, files: async () => ({ ...sources, [MODEL]: { file: chosen } }) });
  }

  /** Run the model, in place of a run that is going on. */
  run() {
    this.#page.work((signal) => this.#tryToRun(signal), { failed: "The model has not run." });
  }

  /** Stop loading and running. */
  stop() {
    this.#page.stop("Stopped.");
  }

  zoom = {
    in: () => this.#graph.zoom(1),
    out: () => this.#graph.zoom(-1),
    fit: () => this.#graph.fit(),
  };

  /** @param {Choice} choice @param {Record<string, any>} info @returns {Model} */
  #show(choice, info) {
    page.outputs.replaceChildren();
    this.#times.clear();
    this.#nodes = info.nodes;
    this.#details = [];
    this.#inputs.show(info.inputs);
    this.#graph.show(info.nodes);
    this.#clearNode();
    closeOnPhone(page.choices);
    page.console.href = `../console/${fragmentOf({ code: `import tallow as tl\n\n${choice.code}\nprint(model.code)` })}`;
    const operators = Object.values(info.operators).reduce((sum, count) => sum + count, 0);
    view.figures.show("Operators", `${operators}, of ${Object.keys(info.operators).length} kinds`);
    view.figures.show("Weights", `${info.parameters.toLocaleString("en")} numbers, ${info.weightBytes < 1e6 ? megabytes(1e3 * info.weightBytes, " kB") : megabytes(info.weightBytes)}`);
    if (info.problem) problems.show(new Problem("UnsupportedError", info.problem, "The graph shows them in red. The model cannot run here."));
    const kinds = Object.keys(info.quantisation);
    const parts = [`opset ${info.opset}`, info.producer && `written by ${info.producer}`, kinds.length && `quantised: ${kinds.join("; ")}`, info.cut && `only the first ${info.nodes.length.toLocaleString("en")} operators are drawn`];
    return { name: choice.name, description: `${choice.name}: ${parts.filter(Boolean).join(", ")}.`, problem: info.problem };
  }

  /** @param {Model | null} model */
  #mark(model) {
    markPresets(page.presets, model?.name);
  }

  /** @param {AbortSignal} signal */
  async #tryToRun(signal) {
    const usable = await this.#page.ready("The run starts when the model has loaded.", signal);
    if (!usable || !this.#page.model) return; // the page says why
    const { runtime, model } = this.#page;
    if (model.problem) throw new Problem("UnsupportedError", model.problem, "Choose another model.");
    page.outputs.classList.add("stale");
    document.body.classList.add("burning");
    try {
      status.say("Preparing the inputs");
      await this.#inputs.give((method, keywords) => runtime.call(method, keywords), signal);
      const started = performance.now();
      for await (const { stats } of runtime.generate({}, { signal })) status.say(`Operator ${stats.done} of ${stats.total}: ${stats.label}`);
      const { picture } = this.#inputs;
      this.#showResults(await runtime.call("results", { width: picture?.width ?? 0, height: picture?.height ?? 0 }));
      status.say(`Done in ${milliseconds((performance.now() - started) / 1000)}.`);
    } finally {
      document.body.classList.remove("burning");
      page.outputs.classList.remove("stale");
    }
  }

  /** @param {{ outputs: any[], seconds: number[], details: string[] }} results */
  #showResults({ outputs, seconds, details }) {
    showOutputs(page.outputs, outputs, this.#inputs.picture);
    const longest = Math.max(...seconds, 1e-9);
    const isDrawn = (/** @type {unknown} */ _, /** @type {number} */ node) => node < this.#nodes.length;
    this.#graph.update(details.filter(isDrawn).map(dimsOf), seconds.map((time) => time / longest));
    this.#details = details;
    const times = seconds.flatMap((time, node) => (time && node < this.#nodes.length ? [{ node, operator: this.#nodes[node].label, label: `${this.#nodes[node].label}, ${details[node]}`, seconds: time }] : []));
    this.#times.show(times);
    view.figures.show("Run", milliseconds(seconds.reduce((sum, time) => sum + time, 0)));
    this.#clearNode();
  }

  #clearNode() {
    this.#asked++;
    page.nodeName.textContent = "";
    page.nodeLines.replaceChildren();
    page.nodeValue.replaceChildren();
  }

  /** Show an operator, and the value that it gave. @param {number} node */
  async #showNode(node) {
    this.#clearNode();
    const asked = this.#asked;
    const { label, detail: name } = this.#nodes[node];
    const detail = this.#details[node] ?? name;
    page.nodeName.textContent = [label, detail].filter(Boolean).join(", ");
    if (this.#page.isWorking || this.#page.isLoading) return; // Python is not free
    try {
      const { lines, view: value } = await this.#page.runtime.call("node", { index: node });
      if (asked !== this.#asked) return; // another one was chosen meanwhile
      page.nodeLines.replaceChildren(...lines.map((/** @type {[string, string]} */ [name, text]) => line(name, text)));
      if (!value) return;
      if (value.summary) page.nodeLines.append(line("values", value.summary));
      if (value.views.picture) page.nodeValue.append(canvasOf(value.views.picture));
      page.nodeValue.append(tableOf(value.views.table));
    } catch (error) {
      problems.show(error);
    }
  }
}

/** The dims of "1 × 10 float32". @param {string} detail */
function dimsOf(detail) {
  return detail.replace(/ \w+$/, "");
}

/** @param {string} name @param {string} text */
function line(name, text) {
  const group = document.createElement("div");
  group.append(Object.assign(document.createElement("dt"), { textContent: name }), Object.assign(document.createElement("dd"), { textContent: text }));
  return group;
}

/** @param {ModelRunner} runner */
function listen(runner) {
  onSubmit(page.runForm, () => runner.run());
  page.stop.onclick = () => runner.stop();
  element("zoom-in", HTMLButtonElement).onclick = runner.zoom.in;
  element("zoom-out", HTMLButtonElement).onclick = runner.zoom.out;
  element("zoom-fit", HTMLButtonElement).onclick = runner.zoom.fit;
  page.presets.replaceChildren(preset(`${DIGITS.name}, built in`, DIGITS.name, () => runner.load(DIGITS), `preset-${DIGITS.name}`));
  listenForModels(
    { form: page.modelForm, name: page.modelId, files: [page.modelFiles], curtain: element("drop", HTMLElement) },
    { name: (text) => runner.loadNamed(text), files: (files) => runner.take(files), drop: (files) => runner.take(files) },
    problems,
  );
}

const runner = new ModelRunner();
listen(runner);
runner.load(DIGITS);
isolate();
await view.downloads.refresh();
