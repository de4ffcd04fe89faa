/** Where the time of a run went: a bar for each operator above those of its nodes, as a flame graph. */

/** @typedef {{ node: number, operator: string, label: string, seconds: number }} Time */

const MOST_OPERATORS = 10; // those that took less time are shown together
const MOST_NODES = 40; // of an operator
const OTHERS = "others";

export class Times {
  #bar;
  #list;
  #onSelect;

  /** @param {{ bar: HTMLElement, list: HTMLElement }} places @param {(node: number) => void} onSelect */
  constructor({ bar, list }, onSelect) {
    this.#bar = bar;
    this.#list = list;
    this.#onSelect = onSelect;
  }

  clear() {
    this.#bar.replaceChildren();
    this.#list.replaceChildren();
  }

  /** @param {Time[]} times */
  show(times) {
    const total = sum(times);
    const groups = grouped(times);
    this.#bar.replaceChildren(...groups.map(({ operator, members }, i) => this.#column(operator, members, total, i)));
    this.#list.replaceChildren(...groups.map(({ operator, members }) => row(operator, members, total)));
  }

  /** @param {string} operator @param {Time[]} members @param {number} total @param {number} i */
  #column(operator, members, total, i) {
    const column = document.createElement("div");
    const seconds = sum(members);
    column.className = "flame-column";
    column.style.flexGrow = String(seconds / total);
    column.style.setProperty("--warmth", `${Math.max(12, 72 - 10 * i)}%`);
    const head = Object.assign(document.createElement("span"), { className: "flame-operator", title: `${operator}: ${milliseconds(seconds)}`, textContent: operator });
    const nodes = document.createElement("div");
    nodes.className = "flame-nodes";
    const longest = [...members].sort((a, b) => b.seconds - a.seconds).slice(0, MOST_NODES);
    const shown = sum(longest);
    nodes.append(
      ...longest.map(({ node, label, seconds }) => {
        const button = Object.assign(document.createElement("button"), { type: "button", title: `${label}: ${milliseconds(seconds)}`, tabIndex: -1 });
        button.style.flexGrow = String(seconds / shown);
        button.setAttribute("aria-label", `${label}, ${milliseconds(seconds)}`);
        button.onclick = () => this.#onSelect(node);
        return button;
      }),
    );
    column.append(head, nodes);
    return column;
  }
}

/** The operators with their nodes, the one that took longest first. @param {Time[]} times */
function grouped(times) {
  /** @type {Map<string, Time[]>} */
  const byOperator = new Map();
  for (const time of times) byOperator.set(time.operator, [...(byOperator.get(time.operator) ?? []), time]);
  const groups = [...byOperator].map(([operator, members]) => ({ operator, members })).sort((a, b) => sum(b.members) - sum(a.members));
  const rest = groups.splice(MOST_OPERATORS);
  if (rest.length) groups.push({ operator: OTHERS, members: rest.flatMap(({ members }) => members) });
  return groups;
}

/** @param {string} operator @param {Time[]} members @param {number} total */
function row(operator, members, total) {
  const seconds = sum(members);
  const item = document.createElement("li");
  const cells = [operator, `${members.length} ×`, milliseconds(seconds), `${((100 * seconds) / total).toFixed(0)} %`];
  item.append(...cells.map((text) => Object.assign(document.createElement("span"), { textContent: text })));
  return item;
}

/** @param {Time[]} times */
function sum(times) {
  return times.reduce((all, { seconds }) => all + seconds, 0) || Number.MIN_VALUE;
}

/** @param {number} seconds */
export function milliseconds(seconds) {
  const ms = 1000 * seconds;
  return `${ms < 10 ? ms.toFixed(2) : ms.toFixed(0)} ms`;
}
