/** Where the site is. */

const HERE = import.meta.url; // by itself: bundlers would take `new URL("..", import.meta.url)` for a file to include
/** The folder with site.json. A site has this module in its subfolder web/. */
export const SITE = new URL("..", HERE);
