/** What a reload of this tab of the browser keeps: session storage, which holds some millions of characters. */

const PREFIX = "tallow-train-";

/** @param {string} name */
export function kept(name) {
  try {
    return sessionStorage.getItem(PREFIX + name);
  } catch {
    return null; // a browser that forbids storage
  }
}

/** Keep a text; null, or one that is too long, leaves none. @param {string} name @param {string | null} text */
export function keep(name, text) {
  try {
    sessionStorage.removeItem(PREFIX + name);
    if (text !== null) sessionStorage.setItem(PREFIX + name, text);
  } catch {
    // The page works without.
  }
}
