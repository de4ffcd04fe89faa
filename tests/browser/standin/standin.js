/** The tests drive the page from outside. */

import { Runtime } from "../web/tallow.js";

window.Runtime = Runtime;
window.app = new URL("app.py", location.href);
document.title = "loaded";
