// Where the nodes of a graph stand: in layers from left to right, without a cycle of edges (Sugiyama,
// Tagawa, Toda 1981: https://doi.org/10.1109/TSMC.1981.4308636). Nothing here knows of a page.
//
//   1. layers: a node stands behind all that it reads, as near to its readers as it can
//   2. edges over several layers go through points that take a place as nodes do
//   3. order within a layer: barycentres, forth and back, the order with the fewest crossings is kept
//   4. heights: each as near to the mean of its neighbours as order and distances allow (isotonic
//      regression by pooling violators), so that lines are straight where they can be

const SWEEPS = 10, GAP = 18, BEND = 8;

// nodes: {id, w, h}; edges: {from, to}. Gives {width, height, places: Map id -> {x, y, layer}, lines:
// [{from, to, points: [[x, y], ...]}]}; x and y are a node's upper left corner. Edges of a cycle that
// go back, to itself, or to nobody, are left out.
export function layout(nodes, edges, room = 70) {
  const all = new Map(nodes.map((n) => [n.id, { ...n, ins: [], outs: [], layer: 0, y: 0 }]));
  const kept = forward(all, edges.filter((e) => all.has(e.from) && all.has(e.to) && e.from !== e.to));
  rank(all);
  const layers = [];
  for (const n of all.values()) (layers[n.layer] ||= []).push(n);
  const lines = kept.map((e) => bend(e, all, layers));
  order(layers);
  raise(layers);
  let x = 0;
  const columns = layers.map((layer) => {
    const w = Math.max(...layer.map((n) => n.w));
    x += w + room;
    return { x: x - w - room, w };
  });
  const top = Math.min(...layers.map((layer) => layer[0].y - layer[0].h / 2), Infinity);
  const height = Math.max(0, ...layers.flat().map((n) => n.y + n.h / 2 - top));
  const places = new Map([...all.values()].map((n) => [n.id, { x: columns[n.layer].x, y: n.y - n.h / 2 - top, layer: n.layer }]));
  return {
    width: Math.max(0, x - room), height, places,
    lines: lines.map((way) => ({ from: way[0].id, to: way.at(-1).id, points: points(way, columns, top) })),
  };
}

// The edges that close no cycle, each once, in both nodes' lists.
function forward(all, edges) {
  const next = new Map([...all.keys()].map((id) => [id, new Set()]));
  for (const e of edges) next.get(e.from).add(e.to);
  const state = new Map(), kept = [];
  for (const start of all.keys()) {
    const stack = state.has(start) ? [] : [[start, next.get(start).values()]];
    if (stack.length) state.set(start, 1);
    while (stack.length) {
      const [id, rest] = stack.at(-1), { done, value: to } = rest.next();
      if (done) { state.set(id, 2); stack.pop(); continue; }
      if (state.get(to) === 1) continue;  // it goes back
      kept.push({ from: id, to });
      if (!state.has(to)) { state.set(to, 1); stack.push([to, next.get(to).values()]); }
    }
  }
  for (const e of kept) { all.get(e.from).outs.push(all.get(e.to)); all.get(e.to).ins.push(all.get(e.from)); }
  return kept;
}

function rank(all) {
  const left = new Map([...all.values()].map((n) => [n, n.ins.length]));
  const sorted = [...all.values()].filter((n) => !n.ins.length);
  for (const n of sorted) {
    for (const to of n.outs) {
      to.layer = Math.max(to.layer, n.layer + 1);
      left.set(to, left.get(to) - 1);
      if (!left.get(to)) sorted.push(to);
    }
  }
  for (const n of sorted.reverse()) if (n.outs.length && !n.ins.length) n.layer = Math.min(...n.outs.map((o) => o.layer)) - 1;
}

function bend({ from, to }, all, layers) {
  const a = all.get(from), b = all.get(to), way = [a];
  for (let layer = a.layer + 1; layer < b.layer; layer++) {
    const point = { id: null, w: 0, h: BEND, ins: [way.at(-1)], outs: [], layer, y: 0 };
    layers[layer].push(point);
    way.push(point);
  }
  if (way.length === 1) return [a, b];
  way.push(b);
  a.outs[a.outs.indexOf(b)] = way[1];
  b.ins[b.ins.indexOf(a)] = way[way.length - 2];
  for (let i = 1; i < way.length - 1; i++) way[i].outs = [way[i + 1]];
  return way;
}

function order(layers) {
  const number = () => layers.forEach((layer) => layer.forEach((n, i) => { n.at = i; }));
  number();
  let best = layers.map((layer) => [...layer]), fewest = crossings(layers);
  for (let sweep = 0; sweep < SWEEPS && fewest; sweep++) {
    const down = sweep % 2 === 0, side = down ? "ins" : "outs";
    for (const layer of down ? layers : [...layers].reverse()) {
      for (const n of layer) n.mean = n[side].length ? n[side].reduce((sum, o) => sum + o.at, 0) / n[side].length : n.at;
      layer.sort((a, b) => a.mean - b.mean || a.at - b.at).forEach((n, i) => { n.at = i; });
    }
    const found = crossings(layers);
    if (found < fewest) { fewest = found; best = layers.map((layer) => [...layer]); }
  }
  best.forEach((layer, i) => { layers[i] = layer; });
  number();
}

// Pairs of lines that cross, counted with a tree of sums: a line crosses those before it that end
// behind it. Nodes know their place as ``at``.
export function crossings(layers) {
  let found = 0;
  for (let i = 0; i + 1 < layers.length; i++) {
    const size = layers[i + 1].length, sums = new Array(size + 1).fill(0);
    let total = 0;
    for (const n of layers[i]) {
      const ends = n.outs.map((o) => o.at);
      for (const end of ends) {
        let before = 0;
        for (let k = end + 1; k > 0; k -= k & -k) before += sums[k];
        found += total - before;
      }
      for (const end of ends) { total++; for (let k = end + 1; k <= size; k += k & -k) sums[k]++; }
    }
  }
  return found;
}

function raise(layers) {
  for (const layer of layers) {
    let y = 0;
    for (const n of layer) { n.y = y + n.h / 2; y += n.h + GAP; }
  }
  for (let sweep = 0; sweep < 8; sweep++) {
    const down = sweep % 2 === 0;
    for (const layer of down ? layers : [...layers].reverse()) {
      settle(layer, (n) => {
        const near = sweep > 5 ? [...n.ins, ...n.outs] : n[down ? "ins" : "outs"];
        return near.length ? near.reduce((sum, o) => sum + o.y, 0) / near.length : n.y;
      });
    }
  }
}

// The heights that are nearest (least squares) to the wanted ones, in this order and apart.
export function settle(layer, wanted) {
  const blocks = [];
  let offset = 0, before = null;
  for (const n of layer) {
    if (before) offset += (before.h + n.h) / 2 + GAP;
    before = n;
    let block = { sum: wanted(n) - offset, size: 1, nodes: [[n, offset]] };
    while (blocks.length && blocks.at(-1).sum / blocks.at(-1).size > block.sum / block.size) {
      const last = blocks.pop();
      block = { sum: last.sum + block.sum, size: last.size + block.size, nodes: last.nodes.concat(block.nodes) };
    }
    blocks.push(block);
  }
  for (const block of blocks) for (const [n, off] of block.nodes) n.y = block.sum / block.size + off;
}

function points(way, columns, top) {
  const found = [];
  way.forEach((n, i) => {
    const { x, w } = columns[n.layer], y = n.y - top;
    if (i) found.push([x, y]);
    if (i < way.length - 1) found.push([n.id === null ? x + w : x + n.w, y]);
  });
  return found;
}
