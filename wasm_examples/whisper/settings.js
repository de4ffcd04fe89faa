/** The settings of a transcription, and links to them. */

import { ShareLink } from "../../web/page/share.js";
import { page } from "./elements.js";

/** The language in a link: the list has it only after a model with that language has loaded. */
const language = {
  linked: "",
  get value() {
    return page.language.value || this.linked;
  },
  set value(code) {
    this.linked = code;
    page.language.value = code;
    if (page.language.selectedIndex < 0) page.language.value = "";
  },
  accepts: (/** @type {string} */ code) => /^([a-z]{2,3})?$/.test(code),
};

/** The keywords of `begin` and `live` in app.py. */
export function settings() {
  return { language: page.language.value, task: page.task.value, timestamps: page.timestamps.value };
}

/** Whether to show text during a recording. */
export function wantsLiveText() {
  return page.liveOn.value === "on";
}

/** @param {Record<string, string>} languages  by code; empty for an English-only model */
export function showLanguages(languages) {
  const selected = language.value;
  const names = Object.entries(languages).sort(([, a], [, b]) => a.localeCompare(b));
  const isEnglishOnly = names.length === 0;
  page.language.replaceChildren(new Option(isEnglishOnly ? "English" : "Detect", ""), ...names.map(([code, name]) => new Option(name, code)));
  page.language.value = selected in languages ? selected : "";
  page.language.disabled = page.task.disabled = isEnglishOnly;
  if (isEnglishOnly) page.task.value = "transcribe";
}

/** Fill the settings from the page's link, and follow later ones. */
export function listenForLinks() {
  page.language.onchange = () => (language.linked = page.language.value);
  const fields = { language, task: page.task, timestamps: page.timestamps, live: page.liveOn, sound: page.address };
  const link = new ShareLink(fields, { button: page.share, note: page.shareNote });
  link.onOpen = showAddress;
  showAddress();
}

/** Show the field for an address if it has one, e.g. of a link. */
function showAddress() {
  const details = page.address.closest("details");
  if (details && page.address.value) details.open = true;
}
