/** Connects the controls of the page with what they do. */

import { isolate } from "../../web/page/isolation.js";
import { folderName, localFolder, parseModel } from "../../web/page/model-files.js";
import { listenForModels } from "../../web/page/model-inputs.js";
import { element } from "../../web/page/page.js";
import { listenForPictures } from "../../web/page/picture-inputs.js";
import { ShareLink } from "../../web/page/share.js";
import { page, view } from "./elements.js";
import { Searcher } from "./searcher.js";

const EXAMPLE_MODEL = "openai/clip-vit-base-patch32";
const EXAMPLES = ["red fruit", "Regenwetter", "instrument de musique", "gato feliz", "космос", "海の動物"];
const MODEL_FILE = /(^|\/)(config\.json|.*\.safetensors)$/;

/** @param {Searcher} searcher */
function listen(searcher) {
  page.query.oninput = () => searcher.search();
  page.labels.oninput = () => searcher.refresh();
  page.camera.onclick = () => searcher.toggleCamera();
  page.stop.onclick = () => searcher.stop();
  page.packaged.onclick = () => searcher.loadPackaged();
  listenForPictures(page.pictureFiles, (files) => searcher.add(files));
  const loadFolder = (/** @type {Map<string, File>} */ files) => searcher.load({ name: folderName(files) ?? "the model", location: localFolder(files) });
  listenForModels(
    { form: page.modelForm, name: page.modelId, files: [page.modelFolder], curtain: element("drop", HTMLElement) },
    {
      name: (text) => searcher.load(parseModel(text, EXAMPLE_MODEL)),
      files: loadFolder,
      drop: (files) => ([...files.keys()].some((path) => MODEL_FILE.test(path)) ? loadFolder(files) : searcher.add([...files.values()])),
    },
    view.problems,
  );
}

/** @param {Searcher} searcher */
function showExamples(searcher) {
  for (const example of EXAMPLES) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet";
    button.dataset.testid = "example";
    button.textContent = example;
    button.onclick = () => {
      page.query.value = example;
      searcher.search();
    };
    page.examples.append(button, " ");
  }
}

const link = new ShareLink({ query: page.query, labels: page.labels }, { button: page.share, note: page.shareNote });
isolate();
const searcher = new Searcher();
listen(searcher);
showExamples(searcher);
link.onOpen = () => {
  searcher.search();
  searcher.refresh();
};
searcher.loadPackaged();
await view.downloads.refresh();
