/** The models that a page offers: a list of buttons. */

/**
 * The item of a model.
 * @param {string} text  of the button @param {string} model  its name when it is loaded @param {() => void} load
 * @param {string} [id]  for tests
 * @returns {HTMLLIElement}
 */
export function preset(text, model, load, id = "preset") {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: text, onclick: load });
  button.dataset.testid = id;
  button.dataset.model = model;
  const item = document.createElement("li");
  item.append(button);
  return item;
}

/** Say which of the models is in memory. @param {HTMLElement} list @param {string | undefined} model */
export function markPresets(list, model) {
  for (const button of list.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.dataset.model === model));
}
