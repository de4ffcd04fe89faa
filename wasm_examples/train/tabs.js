/** Tabs, as WAI-ARIA's pattern: the arrow keys move between them, and the panel of the chosen one is shown. */

const ARROWS = /** @type {Record<string, number>} */ ({ ArrowLeft: -1, ArrowRight: 1 });

export class Tabs {
  /** Called when another tab is chosen. */
  onChange = () => {};
  #tabs;
  #value;

  /** @param {HTMLElement} list  of buttons with aria-controls and data-value */
  constructor(list) {
    this.#tabs = /** @type {HTMLButtonElement[]} */ ([...list.querySelectorAll("[role=tab]")]);
    this.#value = this.#tabs[0].dataset.value ?? "";
    this.#tabs.forEach((tab, i) => {
      tab.onclick = () => (this.value = tab.dataset.value ?? "");
      tab.onkeydown = (event) => {
        const move = ARROWS[event.key];
        if (!move) return;
        event.preventDefault();
        const next = this.#tabs[(i + move + this.#tabs.length) % this.#tabs.length];
        next.focus();
        next.click();
      };
    });
    this.#show();
  }

  get value() {
    return this.#value;
  }

  set value(value) {
    if (value === this.#value) return;
    this.#value = value;
    this.#show();
    this.onChange();
  }

  /** Whether there is such a tab. @param {string} value */
  accepts(value) {
    return this.#tabs.some((tab) => tab.dataset.value === value);
  }

  #show() {
    for (const tab of this.#tabs) {
      const isChosen = tab.dataset.value === this.#value;
      tab.setAttribute("aria-selected", String(isChosen));
      tab.tabIndex = isChosen ? 0 : -1;
      const panel = document.getElementById(tab.getAttribute("aria-controls") ?? "");
      if (panel) panel.hidden = !isChosen;
    }
  }
}
