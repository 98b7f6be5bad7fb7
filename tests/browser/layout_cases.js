// Random graphs through the page's layout: what must hold of each is looked at, and where a count
// has a naive twin, the two agree. The same file runs in Node and in a browser; both import the
// module from elsewhere. Gives the number of graphs; throws what does not hold.

export function check({ layout, crossings, settle }, graphs) {
  let seed = 7;
  const draw = (n) => { seed = (seed * 48271) % 2147483647; return seed % n; };
  const must = (holds, what) => { if (!holds) throw new Error(what); };
  for (let g = 0; g < graphs; g++) look(g, layout, draw, must);
  for (let g = 0; g < 60; g++) count(crossings, draw, must);
  for (let g = 0; g < 60; g++) heights(settle, draw, must);
  must(layout([], []).places.size === 0, "no node has no place");
  return graphs;
}

function look(g, layout, draw, must) {
  const n = 1 + (g % 10 === 9 ? 300 : draw(40)), cyclic = g % 4 === 3;
  const nodes = Array.from({ length: n }, (_, i) => ({ id: `n${i}`, w: 50 + draw(100), h: 20 + draw(40) }));
  const edges = Array.from({ length: n > 1 ? draw(2 * n) : 0 }, () => {
    const [a, b] = [draw(n), draw(n)];
    return cyclic ? { from: `n${a}`, to: `n${b}` } : { from: `n${Math.min(a, b)}`, to: `n${Math.max(a, b)}` };
  });
  edges.push({ from: "n0", to: "nobody" });
  const { width, height, places, lines } = layout(nodes, edges);
  must(places.size === n, "each node has a place");
  const named = new Map(nodes.map((node) => [node.id, { ...node, ...places.get(node.id) }]));
  for (const a of named.values()) {
    must(a.x >= 0 && a.y >= -1e-6 && a.x + a.w <= width + 1e-6 && a.y + a.h <= height + 1e-6, "nodes lie within");
    for (const b of named.values()) {
      must(a === b || a.layer !== b.layer || a.y + a.h <= b.y + 1e-6 || b.y + b.h <= a.y + 1e-6, "nodes lie apart");
    }
  }
  const pairs = new Set(edges.filter((e) => e.from !== e.to && e.to !== "nobody").map((e) => `${e.from} ${e.to}`));
  must(new Set(lines.map((l) => `${l.from} ${l.to}`)).size === lines.length, "a line for a pair at most");
  must(cyclic ? lines.length <= pairs.size : lines.length === pairs.size, "a line for each pair");
  for (const { from, to, points } of lines) {
    const a = named.get(from), b = named.get(to), [first, last] = [points[0], points[points.length - 1]];
    must(a.layer < b.layer, "lines go to the right");
    must(points.every(([x], i) => i === 0 || x >= points[i - 1][0]), "and never back");
    must(Math.abs(first[0] - a.x - a.w) < 1e-6 && Math.abs(first[1] - a.y - a.h / 2) < 1e-6, "from a node's right");
    must(Math.abs(last[0] - b.x) < 1e-6 && Math.abs(last[1] - b.y - b.h / 2) < 1e-6, "to a node's left");
  }
}

function count(crossings, draw, must) {
  const right = Array.from({ length: 1 + draw(8) }, (_, i) => ({ at: i, outs: [] }));
  const left = Array.from({ length: 1 + draw(8) }, (_, i) => ({ at: i, outs: right.filter(() => draw(3) === 0) }));
  const ends = left.flatMap((n) => n.outs.map((o) => [n.at, o.at]));
  const naive = ends.flatMap(([a, b], i) => ends.slice(i + 1).filter(([c, d]) => (a - c) * (b - d) < 0)).length;
  must(crossings([left, right]) === naive, "crossings are those that one counts");
}

// Nothing near the found heights is nearer to the wanted ones, and keeps the distances.
function heights(settle, draw, must) {
  const layer = Array.from({ length: 1 + draw(7) }, () => ({ h: 10 + draw(30), want: draw(300), y: 0 }));
  settle(layer, (n) => n.want);
  const least = (i) => layer[i].y - layer[i - 1].y - (layer[i].h + layer[i - 1].h) / 2;
  const gap = 18, apart = () => layer.slice(1).every((_, i) => least(i + 1) >= gap - 1e-6);
  must(apart(), "heights keep the distances");
  const cost = () => layer.reduce((sum, n) => sum + (n.y - n.want) ** 2, 0), found = cost();
  for (let i = 0; i < layer.length; i++) {
    for (let k = i; k < layer.length; k++) {
      for (const by of [-1, 1]) {
        for (let j = i; j <= k; j++) layer[j].y += by;
        must(!apart() || cost() >= found - 1e-6, "no heights are nearer");
        for (let j = i; j <= k; j++) layer[j].y -= by;
      }
    }
  }
}
