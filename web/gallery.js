/** The gallery is plain HTML. On a host without headers, isolation is set up here already, before a demo is opened. */

import { isolate } from "./isolation.js";

await isolate();
