/**
 * Places for the nodes of a graph: rows from top to bottom, each node below all nodes that it reads.
 *
 * The usual method for layered drawings (Sugiyama, Tagawa and Toda, 1981): rows by the longest path, a bend in each row that an
 * edge passes, an order in each row that crosses few edges, then positions near those of the neighbours.
 */

/**
 * @typedef {{ x: number, y: number }} Point  the centre of a node, or a bend of an edge
 * @typedef {{ from: number, to: number, points: Point[] }} Edge
 * @typedef {{ places: Point[], rows: number[][], edges: Edge[], width: number, height: number }} Layout  `rows` has the nodes of each row, from left to right
 * @typedef {{ node: number | null, row: number, x: number, above: Vertex[], below: Vertex[] }} Vertex  `node` is null for a bend
 */

export const NODE = { width: 148, height: 46 };
const GAP = { x: 22, y: 34 };
const BEND_WIDTH = 10;
const MOST_BENDS = 40_000; // further edges are drawn straight
const SWEEPS = 6;

/**
 * @param {number[][]} inputs  of each node, the indices of the nodes before it that it reads
 * @returns {Layout}
 */
export function layout(inputs) {
  const rowOf = rowsByPath(inputs);
  const { vertices, rows, chains } = connect(inputs, rowOf);
  for (let i = 0; i < SWEEPS; i++) for (const [row, side] of sweep(rows, i)) order(row, side);
  for (const row of rows) spread(row, row.map((_, i) => i * (NODE.width + GAP.x)));
  for (let i = 0; i < SWEEPS; i++) for (const [row, side] of sweep(rows, i)) spread(row, row.map((vertex) => mean(vertex[side]) ?? vertex.x));
  const left = Math.min(0, ...rows.map((row) => row[0].x - widthOf(row[0]) / 2));
  const right = Math.max(0, ...rows.map((row) => row[row.length - 1].x + widthOf(row[row.length - 1]) / 2));
  const point = (/** @type {Vertex} */ { x, row }) => ({ x: x - left, y: row * (NODE.height + GAP.y) + NODE.height / 2 });
  return {
    places: vertices.map(point),
    rows: rows.map((row) => row.flatMap(({ node }) => (node === null ? [] : [node]))),
    edges: chains.map(({ from, to, bends }) => ({ from, to, points: bends.map(point) })),
    width: right - left,
    height: Math.max(1, rows.length) * (NODE.height + GAP.y) - GAP.y,
  };
}

/** The row of each node: below its inputs; a node without inputs is right above the first that reads it. @param {number[][]} inputs */
function rowsByPath(inputs) {
  /** @type {number[]} */
  const rows = [];
  const firstReader = inputs.map(() => Infinity);
  inputs.forEach((own, node) => rows.push(own.reduce((most, input) => Math.max(most, rows[input] + 1), 0)));
  inputs.forEach((own, node) => own.forEach((input) => (firstReader[input] = Math.min(firstReader[input], rows[node]))));
  inputs.forEach((own, node) => {
    if (!own.length && firstReader[node] < Infinity) rows[node] = Math.max(0, firstReader[node] - 1);
  });
  return rows;
}

/** Make the vertices: one for each node, and the bends of edges. @param {number[][]} inputs @param {number[]} rowOf */
function connect(inputs, rowOf) {
  const count = rowOf.reduce((most, row) => Math.max(most, row + 1), 0);
  /** @type {Vertex[][]} */
  const rows = Array.from({ length: count }, () => []);
  /** @type {(node: number | null, row: number) => Vertex} */
  const add = (node, row) => {
    const vertex = { node, row, x: 0, above: [], below: [] };
    rows[row].push(vertex);
    return vertex;
  };
  const vertices = rowOf.map((row, node) => add(node, row));
  /** @type {{ from: number, to: number, bends: Vertex[] }[]} */
  const chains = [];
  let left = MOST_BENDS;
  inputs.forEach((own, to) => {
    for (const from of new Set(own)) {
      /** @type {Vertex[]} */
      const bends = [];
      let last = vertices[from];
      const passed = rowOf[to] - rowOf[from] - 1;
      if (passed <= left) {
        left -= passed;
        for (let row = rowOf[from] + 1; row < rowOf[to]; row++) {
          const bend = add(null, row);
          join(last, bend);
          bends.push(bend);
          last = bend;
        }
        join(last, vertices[to]);
      }
      chains.push({ from, to, bends });
    }
  });
  return { vertices, rows: rows.filter((row) => row.length), chains };
}

/** @param {Vertex} upper @param {Vertex} lower */
function join(upper, lower) {
  upper.below.push(lower);
  lower.above.push(upper);
}

/** The rows in the order of a sweep, downwards and upwards in turn, with the side of the rows that were visited. @param {Vertex[][]} rows @param {number} i @returns {[Vertex[], "above" | "below"][]} */
function sweep(rows, i) {
  return i % 2 ? rows.slice(0, -1).reverse().map((row) => [row, "below"]) : rows.slice(1).map((row) => [row, "above"]);
}

/** Order a row by the means of its neighbours' positions on one side. @param {Vertex[]} row @param {"above" | "below"} side */
function order(row, side) {
  const keys = new Map(row.map((vertex, i) => [vertex, mean(vertex[side]) ?? i]));
  row.sort((a, b) => /** @type {number} */ (keys.get(a)) - /** @type {number} */ (keys.get(b)));
  row.forEach((vertex, i) => (vertex.x = i));
}

/** @param {Vertex[]} vertices @returns {number | null} */
function mean(vertices) {
  return vertices.length ? vertices.reduce((sum, { x }) => sum + x, 0) / vertices.length : null;
}

/** @param {Vertex} vertex */
function widthOf({ node }) {
  return node === null ? BEND_WIDTH : NODE.width;
}

/**
 * Place a row as near as possible to wanted positions, in its order and without overlaps: the least squares under these
 * conditions, which pooling adjacent violators finds in linear time.
 * @param {Vertex[]} row @param {number[]} wanted
 */
function spread(row, wanted) {
  /** @type {number[]} */
  const offsets = [];
  row.forEach((vertex, i) => offsets.push(i ? offsets[i - 1] + (widthOf(row[i - 1]) + widthOf(vertex)) / 2 + GAP.x : 0));
  /** @type {{ sum: number, count: number }[]} */
  const pools = [];
  wanted.forEach((x, i) => {
    let pool = { sum: x - offsets[i], count: 1 };
    for (let last = pools.at(-1); last && last.sum / last.count > pool.sum / pool.count; last = pools.at(-1)) {
      pool = { sum: last.sum + pool.sum, count: last.count + pool.count };
      pools.pop();
    }
    pools.push(pool);
  });
  let i = 0;
  for (const { sum, count } of pools) for (const end = i + count; i < end; i++) row[i].x = sum / count + offsets[i];
}
