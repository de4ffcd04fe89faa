/**
 * Start Python's worker, which tallow.js takes over, and keep what a user submits before the page's own script has loaded, which
 * `onSubmit` of page.js takes over. Pages load this file first, as a classic script: a module would run after the others have been
 * fetched.
 */
(() => {
  const { src } = /** @type {HTMLScriptElement} */ (document.currentScript);
  // As in tallow.js.
  const script = `
const early = [];
onmessage = (event) => early.push(event);
import(${JSON.stringify(new URL("worker.js", src).href)}).then(() => early.forEach((event) => onmessage(event)), reportError);`;
  const earlyWorker = new Worker(URL.createObjectURL(new Blob([script], { type: "text/javascript" })), { type: "module" });
  // tallow.js then starts another, and reports what is wrong.
  earlyWorker.onerror = () => Object.assign(globalThis, { earlyWorker: null });
  /** @type {Set<EventTarget>} */
  const forms = new Set();
  Object.assign(globalThis, { earlyWorker, submittedEarly: forms });
  addEventListener("submit", (event) => {
    if (event.defaultPrevented || !event.target) return; // the page's script handles it
    event.preventDefault(); // the policy forbids to send forms
    forms.add(event.target);
    const status = document.getElementById("status");
    if (status) status.textContent = "The page is loading. Then it starts.";
  });
})();
