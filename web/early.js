/**
 * Start Python's worker, and keep what a user submits before the page's own script has loaded; `onSubmit` of page.js takes it
 * over. Pages load this file first, as a classic script: a module would run after the others have been fetched.
 */
(() => {
  import("./tallow.js").then(({ Runtime }) => Runtime.prepare(), () => {}); // the page's script says why it cannot be loaded
  /** @type {Set<EventTarget>} */
  const forms = new Set();
  Object.assign(globalThis, { submittedEarly: forms });
  addEventListener("submit", (event) => {
    if (event.defaultPrevented || !event.target) return; // the page's script handles it
    event.preventDefault(); // the policy forbids to send forms
    forms.add(event.target);
    const status = document.getElementById("status");
    if (status) status.textContent = "The page is loading. Then it starts.";
  });
})();
