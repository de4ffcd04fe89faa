/** Where the site is. */

const HERE = import.meta.url; // by itself: bundlers would take `new URL("..", import.meta.url)` for a file to include
/** The folder with site.json. This module is in its subfolder web/. */
export const SITE = new URL("..", HERE);
