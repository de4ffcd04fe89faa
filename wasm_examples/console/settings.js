/** What the user has chosen on this page, which the browser keeps. */

const KEY = "tallow-console-";

/** @param {string} name @returns {string | null} */
export function setting(name) {
  try {
    return localStorage.getItem(KEY + name);
  } catch {
    return null; // the browser may forbid storage
  }
}

/** @param {string} name @param {string} value */
export function keepSetting(name, value) {
  try {
    localStorage.setItem(KEY + name, value);
  } catch {
    // as above
  }
}
