/** The list of conversations that this browser keeps. */

import { element } from "../../web/page/page.js";
import { Conversation } from "./conversation.js";
import { Store } from "./store.js";

/** @import { Saved } from "./conversation.js" */
/** @import { Status } from "../../web/page/page.js" */

const SAVE_MS = 1000; // between two saves of an answer that is written

export class History {
  /** @type {Conversation} */
  current = new Conversation();
  #list = element("conversations", HTMLElement);
  #onOpen;
  #store;
  #lastSave = -Infinity;
  /** @type {Map<string, Conversation>}  by id, the last one deleted at the end; they can be brought back while the page is open */
  #deleted = new Map();
  #undo = element("undo", HTMLElement);

  /** @param {Status} status @param {(conversation: Conversation) => void} onOpen  called when another conversation is opened */
  constructor(status, onOpen) {
    this.#onOpen = onOpen;
    this.#store = new Store((reason) => {
      console.warn("conversations are not kept:", reason);
      status.remark("This browser does not keep conversations: export what you need.");
    });
  }

  /** Open the conversation that was used last, if there is one. */
  async restore() {
    const [last] = await this.#store.all();
    if (last && this.current.isEmpty) this.#open(new Conversation(last));
    await this.#showList();
    document.addEventListener("visibilitychange", () => document.hidden || this.#showList()); // another tab may have changed it
  }

  /** Open a new conversation. */
  async start() {
    this.#open(new Conversation());
    await this.#showList();
  }

  /** Keep a conversation, unless it was deleted. */
  async save(conversation = this.current) {
    await this.#put(conversation);
    await this.#showList();
  }

  /** Keep a conversation that an answer is added to, if the last time was a while ago. The list stays: its titles do not change. @param {Conversation} conversation */
  saveSometimes(conversation) {
    if (performance.now() - this.#lastSave > SAVE_MS) this.#put(conversation);
  }

  /** @param {Conversation} conversation */
  async #put(conversation) {
    if (conversation.isEmpty || this.#deleted.has(conversation.saved.id)) return;
    this.#lastSave = performance.now();
    await this.#store.put(conversation.saved);
  }

  /** @param {Conversation} conversation */
  #open(conversation) {
    for (const message of Object.values(conversation.saved.messages)) message.isUnfinished = false; // the page was closed meanwhile
    this.current = conversation;
    this.#onOpen(conversation);
  }

  async #showList() {
    const all = await this.#store.all();
    this.#list.replaceChildren(
      ...all.map((saved) => {
        const item = document.createElement("li");
        const open = this.#button(saved.title, "conversation", () => {
          this.#open(new Conversation(saved));
          this.#showList();
        });
        open.className = "title";
        open.dir = "auto";
        if (saved.id === this.current.saved.id) open.setAttribute("aria-current", "true");
        const remove = this.#button("Delete", "delete", () => this.#delete(saved));
        remove.className = "quiet";
        remove.setAttribute("aria-label", `Delete “${saved.title}”`);
        item.append(open, remove);
        return item;
      }),
    );
  }

  /** @param {Saved} saved */
  async #delete(saved) {
    const isCurrent = saved.id === this.current.saved.id;
    this.#deleted.set(saved.id, isCurrent ? this.current : new Conversation(saved)); // an answer may be newer than its last save
    await this.#store.delete(saved.id);
    if (isCurrent) this.#open(new Conversation());
    this.#offerUndo();
    await this.#showList();
  }

  /** Bring a deleted conversation back, and open it once it is kept: what the page shows survives a reload. @param {Conversation} conversation */
  async #restoreDeleted(conversation) {
    this.#deleted.delete(conversation.saved.id);
    this.#offerUndo();
    await this.#put(conversation);
    this.#open(conversation);
    await this.#showList();
  }

  /** Offer to bring back the conversation that was deleted last. */
  #offerUndo() {
    const last = [...this.#deleted.values()].at(-1);
    this.#undo.hidden = !last;
    if (!last) return this.#undo.replaceChildren();
    const title = document.createElement("bdi");
    title.textContent = last.saved.title;
    const undo = this.#button("Undo", "undo", () => this.#restoreDeleted(last));
    undo.className = "quiet";
    this.#undo.replaceChildren("Deleted “", title, "”. ", undo);
  }

  /** @param {string} label @param {string} name @param {() => void} action */
  #button(label, name, action) {
    const made = document.createElement("button");
    made.type = "button";
    made.dataset.testid = name;
    made.textContent = label;
    made.onclick = action;
    return made;
  }
}
