import { workerData } from "node:worker_threads";
import { compute } from "../../web/threads/kernel-thread.js";

compute(workerData);
