/** A Copy button on each block of code. */

const SAID_MS = 1500; // how long the button says what happened

for (const place of document.querySelectorAll("article .highlight")) {
  const code = place.querySelector("code");
  if (!code) continue;
  const button = Object.assign(document.createElement("button"), { type: "button", className: "copy", textContent: "Copy" });
  button.dataset.testid = "copy";
  button.onclick = async () => {
    try {
      await navigator.clipboard.writeText(code.textContent ?? "");
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed";
    }
    setTimeout(() => (button.textContent = "Copy"), SAID_MS);
  };
  place.prepend(button);
}
