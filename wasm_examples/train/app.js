import { isolate } from "../../web/page/isolation.js";
import { copyText, element, onDrop, onSubmit, pageView, showStopped } from "../../web/page/page.js";
import { ShareLink } from "../../web/page/share.js";
import { Runtime } from "../../web/page/tallow.js";
import { fields, showChoices, speed, suitNetwork } from "./form.js";
import { keep, kept } from "./kept.js";
import { showPresets } from "./presets.js";
import { Tabs } from "./tabs.js";
import { textFields } from "./text-fields.js";
import { Workbench } from "./workbench.js";

/** @import { TextTab } from "./text-tab.js" */

const MODULES = ["datasets.py", "digits.py", "files.py", "inspection.py", "points.py", "script.py", "settings.py", "training.py"];

const page = {
  dataFiles: element("data-files", HTMLInputElement),
  import: element("import", HTMLInputElement),
  logarithmic: element("logarithmic", HTMLInputElement),
  code: element("code", HTMLElement),
};
const view = pageView();

/** Call an action when a button is pressed. @param {string} id @param {() => void} action */
function onPress(id, action) {
  element(id, HTMLButtonElement).onclick = action;
}

/** @param {Workbench} workbench */
function listen(workbench) {
  onPress("train", () => workbench.train());
  onPress("pause", () => workbench.pause());
  onPress("step", () => workbench.step());
  onPress("reset", () => workbench.reset());
  onPress("clear-points", () => workbench.clearPoints());
  onPress("classify", () => workbench.classify());
  onPress("clear-pad", () => workbench.clearPad());
  onPress("export", () => workbench.export());
  onPress("copy", () => copyText(page.code.textContent ?? "", view.status, "The script was copied."));
  onSubmit(element("settings", HTMLFormElement), () => {}); // the fields have handlers of their own
  for (const field of Object.values(fields)) field.onchange = () => workbench.change();
  fields.dataset.onchange = () => {
    suitNetwork();
    workbench.change();
  };
  showPresets(element("presets", HTMLElement), () => workbench.begin());
  page.logarithmic.onchange = () => workbench.scale(page.logarithmic.checked);
  page.import.onchange = () => {
    const file = page.import.files?.[0];
    if (file) workbench.import(file);
  };
  page.dataFiles.onchange = () => workbench.takeData([...(page.dataFiles.files ?? [])]);
  for (const input of [page.import, page.dataFiles]) {
    input.onclick = () => (input.value = ""); // otherwise, choosing the same file again would not be a change
  }
  onDrop(element("drop", HTMLElement), (files) => {
    if (files.length === 1 && (tabs.value === "text" || /\.(txt|md)$/.test(files[0].name))) takeTextFile(files[0]);
    else if (files.length === 1 && files[0].name.endsWith(".safetensors")) workbench.import(files[0]);
    else workbench.takeData(files);
  });
}

/** Show the chosen tab. The text tab is loaded when it is opened first; the other one stops. */
async function showTab() {
  if (tabs.value === "text") {
    workbench.leave();
    await openTextTab();
  } else (await textTab)?.leave();
}

/** @returns {Promise<TextTab>} */
function openTextTab() {
  textTab ??= import("./text-tab.js").then(({ TextTab }) => new TextTab(runtime, started));
  return textTab;
}

/** Give the text tab a file: a text or weights. @param {File} file */
async function takeTextFile(file) {
  tabs.value = "text";
  const tab = await openTextTab();
  if (file.name.endsWith(".safetensors")) await tab.import(file);
  else await tab.takeFile(file);
}

const tabs = new Tabs(element("tabs", HTMLElement));
/** @type {Promise<TextTab> | undefined} */
let textTab;
const { lr: learning_rate, batchSize: batch_size, weightDecay: weight_decay, ...others } = fields;
const { lr: text_learning_rate, batch: text_batch_size, seed: text_seed, ...textOthers } = textFields;
const link = new ShareLink(
  { ...others, speed, learning_rate, batch_size, weight_decay, tab: tabs, ...textOthers, text_learning_rate, text_batch_size, text_seed },
  { button: element("share", HTMLButtonElement), note: element("share-note", HTMLElement) },
);
showChoices();
const runtime = Runtime.create();
runtime.onStop = async (problem) => {
  const restart = () => location.reload();
  showStopped(view, problem, restart);
  const tab = await textTab;
  if (tab) showStopped(tab.view, problem, restart);
};
const modules = MODULES.map((name) => new URL(name, import.meta.url));
const started = runtime.start(new URL("app.py", import.meta.url), { modules, onProgress: (report) => view.progress.show(report) });
const workbench = new Workbench(runtime, started, view);
link.onOpen = async () => {
  workbench.change();
  (await textTab)?.open();
};
listen(workbench);
tabs.onChange = showTab;
const former = location.hash ? null : kept("tab");
if (former !== null && tabs.accepts(former)) tabs.value = former;
addEventListener("pagehide", () => keep("tab", tabs.value));
if (tabs.value === "text") showTab();
isolate();
