/** Named texts in the fragment of the page's address, as in #prompt=Once&seed=1. Browsers do not send it to the server. */

import { Problem } from "../worker/protocol.js";

/** The fragment that contains these values. @param {Record<string, string>} values */
export function fragmentOf(values) {
  const pairs = Object.entries(values).map((pair) => pair.map(encodeURIComponent).join("="));
  return `#${pairs.join("&")}`;
}

/**
 * The values in the page's address; none if it has no fragment.
 * @returns {Record<string, string>}
 * @throws {Problem} the fragment is not one that `fragmentOf` writes
 */
export function readFragment() {
  const pairs = location.hash.slice(1).split("&").filter(Boolean);
  try {
    return Object.fromEntries(
      pairs.map((pair) => {
        const [name, ...rest] = pair.split("=");
        if (rest.length !== 1) throw new URIError(pair);
        return [decodeURIComponent(name), decodeURIComponent(rest[0])];
      }),
    );
  } catch {
    throw new Problem("BadLink", "The link is damaged.", "Ask for the link again; it may have been cut off.");
  }
}
