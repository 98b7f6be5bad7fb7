// The topology as a picture: streams, the operators that queries share, the queries. A click, or
// Enter, lights what a query uses, or who uses an operator. Arrow keys go from node to node.
import { ask, at, count, drawn, element, json, perSecond, rate, say, seen, short } from "./base.js";
import { layout } from "./layout.js";

const MOST = 300, MOST_ALONE = 30, MOST_TEXT = 200000, MOST_MEMBERS = 30, SIZES = { stream: 132, operator: 178, query: 150 }, H = 46,
  NOTHING = "There is nothing to draw yet: a query makes it.";
let shown = "", drawing = false, again = 0, nodes = new Map(), lines = [], lit = null, zoom = 0, size = [0, 0], hidden = new Set(), groups = new Map();

const every = () => [...nodes.values()];
const many = (n, one, more) => `${count(n)} ${n === 1 ? one : more}`;

// Draws anew when there are other queries. ``key`` says which there are.
export async function refresh(key) {
  if (key === shown || drawing || performance.now() < again) return;
  drawing = true;
  try {
    const { said } = await json(`/explain?max_nodes=${MOST}`, { headers: { Accept: "application/json" } });
    draw(said);
    shown = key;
  } catch (error) {
    clear(error.status === 404 ? NOTHING : error.message);
  }
  again = performance.now() + 3000;
  drawing = false;
}

function clear(sentence) {
  nodes = new Map();
  lines = [];
  hidden.clear();
  at("graph").replaceChildren();
  at("zoom").hidden = true;
  say(at("told"), sentence);
}

function draw(said) {
  const parts = said.nodes.length ? parts_of(said) : { made: [], edges: [] };
  if (said.node_count > MOST) return clear(`${count(said.node_count)} operators are more than a picture shows (${MOST}): they are there as text.`);
  if (!parts.made.length) return clear(NOTHING);
  const placed = layout(parts.made.map((n) => ({ id: n.id, w: SIZES[n.kind], h: H })), parts.edges);
  nodes = new Map(parts.made.map((n) => [n.id, { ...n, ...placed.places.get(n.id) }]));
  const saved = said.nodes.reduce((sum, n) => sum + new Set(n.members.flatMap((m) => m.queries)).size, 0);
  at("zoom").hidden = false;
  say(at("told"), `${many(said.queries.length, "query", "queries")}, ${many(said.node_count, "operator", "operators")}` +
    (saved > said.node_count ? `; without sharing they would be ${count(saved)}.` : ".") +
    (hidden.size ? " The queries are too many to be drawn; the list above lights what one uses." : ""));
  lines = placed.lines.map((line) => {
    const edge = parts.edges.find((e) => e.from === line.from && e.to === line.to);
    const path = drawn("path", { d: curve(line.points), class: edge.grouping && edge.grouping !== "local" ? "edge moved" : "edge" });
    if (edge.reason) path.append(drawn("title", {}, `${edge.grouping}: ${edge.reason}`));
    return { ...line, path };
  });
  const boxes = every().sort((a, b) => a.layer - b.layer || a.y - b.y).map((n, i) => box(n, i === 0, n.users.length));
  size = [placed.width + 8, placed.height + 8];
  at("graph").setAttribute("viewBox", `-4 -4 ${size[0]} ${size[1]}`);
  at("graph").replaceChildren(...lines.map((l) => l.path), ...boxes);
  resize(0);
  light(nodes.has(lit) || hidden.has(lit) || groups.has(lit?.slice(2)) ? lit : null);
}

function parts_of(said) {
  const made = new Map(), edges = new Map();
  const join = (from, to, more = {}) => edges.set(`${from}\n${to}`, { from, to, ...more });
  for (const n of said.nodes) {
    const users = [...new Set(n.members.flatMap((m) => m.queries))];
    made.set(`o ${n.name}`, { id: `o ${n.name}`, kind: "operator", name: n.name, detail: detail(n), users, node: n });
    for (const { stream } of n.reads) {
      const id = `s ${stream}`;
      const there = made.get(id) || { id, kind: "stream", name: stream, detail: "stream", users: [] };
      there.users = [...new Set([...there.users, ...users])];
      made.set(id, there);
      join(id, `o ${n.name}`);
    }
  }
  for (const e of said.edges) join(`o ${e.producer}`, `o ${e.consumer}`, e);
  const ends = ended(said.queries);
  hidden = new Set(made.size + ends.length > MOST ? said.queries.map((q) => `q ${q.name}`) : []);
  groups = new Map(hidden.size ? [] : ends.flatMap(({ id, users }) => users.map((name) => [name, id])));
  for (const { node, ...end } of hidden.size ? [] : ends) {
    made.set(end.id, end);
    join(`o ${node}`, end.id);
  }
  return { made: [...made.values()], edges: [...edges.values()] };
}

// A node for each query; of many queries one for all that read the same operator.
function ended(queries) {
  const by = new Map();
  for (const q of queries) {
    const id = queries.length > MOST_ALONE ? `g ${q.node}` : `q ${q.name}`;
    by.set(id, { id, node: q.node, users: [...(by.get(id)?.users || []), q.name] });
  }
  return [...by.values()].map((end) => ({ ...end, kind: "query", detail: end.users.length > 1 ? end.users.join(", ") : "query",
    name: end.users.length > 1 ? `${count(end.users.length)} queries` : end.users[0] }));
}

function detail(n) {
  const [first, ...rest] = n.members.map((m) => m.detail).filter(Boolean);
  return first ? first + (rest.length ? ` and ${rest.length} more` : "") : n.flags.join(" ");
}

function box(n, first, users) {
  const w = SIZES[n.kind], shared = n.node && users > 1;
  const g = drawn("g", { class: `node ${n.kind}${shared ? " shared" : ""}`, transform: `translate(${n.x} ${n.y})`,
    tabindex: first ? "0" : "-1", role: "button" });
  const more = n.node ? `, used by ${many(users, "query", "queries")}: ${short(n.detail, 120)}` : "";
  g.setAttribute("aria-label", `${n.kind} ${short(n.name, 80)}${more}`);
  g.append(drawn("title", {}, `${n.name}\n${n.detail}`), drawn("rect", { width: w, height: H, rx: n.node ? 6 : 14 }));
  g.append(drawn("text", { x: 10, y: 19, class: "name" }, short(n.name, shared ? 16 : n.node ? 22 : 17)));
  if (shared) {
    const badge = count(users), wide = 14 + 7 * badge.length;
    g.append(drawn("rect", { class: "badge", x: w - wide - 8, y: 7, width: wide, height: 16, rx: 8 }),
      drawn("text", { class: "badge", x: w - 8 - wide / 2, y: 19 }, badge));
  }
  n.below = drawn("text", { x: 10, y: 36, class: "below" }, short(n.detail, n.node ? 27 : 19));
  g.append(n.below);
  g.addEventListener("click", () => { focus(n); light(lit === n.id ? null : n.id); });
  g.addEventListener("keydown", (event) => key(event, n));
  n.g = g;
  return g;
}

function curve(points) {
  let d = `M${points[0].join(" ")}`;
  for (let i = 1; i < points.length; i++) {
    const [[x, y], [u, v]] = [points[i - 1], points[i]], middle = (x + u) / 2;
    d += Math.abs(y - v) < 0.5 ? `L${u} ${v}` : `C${middle} ${y} ${middle} ${v} ${u} ${v}`;
  }
  return d;
}

function focus(n) {
  for (const other of nodes.values()) other.g.setAttribute("tabindex", other === n ? "0" : "-1");
  n.g.focus({ preventScroll: true });
  n.g.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function key(event, n) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const column = every().filter((o) => o.layer === n.layer).sort((a, b) => a.y - b.y), i = column.indexOf(n);
  const beside = (mine, other) => lines.filter((l) => l[mine] === n.id).map((l) => nodes.get(l[other]))
    .sort((a, b) => Math.abs(a.y - n.y) - Math.abs(b.y - n.y))[0];
  const way = { ArrowUp: () => column[i - 1], ArrowDown: () => column[i + 1], ArrowLeft: () => beside("to", "from"),
    ArrowRight: () => beside("from", "to") }[event.key];
  if (event.key === "Escape") light(null);
  else if (event.key === "Enter" || event.key === " ") light(lit === n.id ? null : n.id);
  else if (way) { const to = way(); if (to) focus(to); } else return;
  event.preventDefault();
}

// Lights a node and all of the queries that it has: of a query what it uses.
export function light(id) {
  lit = id;
  const name = id?.slice(2), one = id?.startsWith("q ");
  const n = nodes.get(id) || (one && { kind: "query", name, users: [name] });
  const queries = new Set(n ? n.users : []), whole = n && n.kind === "query";
  for (const o of nodes.values()) {
    const on = !n || o === n || ((whole || o.kind === "query") && o.users.some((name) => queries.has(name))) || (!whole && near(n, o));
    o.g.classList.toggle("dim", !on);
    o.g.setAttribute("aria-pressed", String(o === n));
    o.on = on;
  }
  for (const l of lines) {
    l.path.classList.toggle("dim", Boolean(n) && !(nodes.get(l.from).on && nodes.get(l.to).on));
    l.path.classList.toggle("lit", Boolean(n) && nodes.get(l.from).on && nodes.get(l.to).on);
  }
  at("graph").classList.toggle("choosing", Boolean(n));
  tell(n);
}

export function lightQuery(name) { light(groups.has(name) || hidden.has(`q ${name}`) ? `q ${name}` : null); }

// Whether a node lies on a way through the one that is lit.
function near(n, o) {
  n.around ||= new Set([...reach(n.id, "from", "to"), ...reach(n.id, "to", "from")]);
  return n.around.has(o.id);
}

function reach(id, mine, other) {
  const found = new Set([id]);
  for (const at of found) for (const l of lines) if (l[mine] === at) found.add(l[other]);
  return found;
}

function tell(n) {
  const into = at("node");
  into.replaceChildren();
  if (!n) return into.append(element("p", nodes.size ? "Choose a node: what it does, who uses it." : ""));
  into.append(element("h3", n.name));
  if (n.kind === "stream") return into.append(element("p", `A stream of ${many(n.users.length, "query", "queries")}.`));
  if (n.kind === "query") {
    const own = every().filter((o) => o.node && o.users.some((name) => n.users.includes(name)));
    const shared = own.filter((o) => o.users.some((name) => !n.users.includes(name))).length;
    into.append(element("p", `${n.users.length > 1 ? "They use" : "It uses"} ${own.length} operators; shared with others: ${shared}.`));
    return into.append(element("p", n.users.length > 1 ? short(n.users.join(", "), 3000) : ""));
  }
  into.append(element("p", `Stage ${n.node.stage}${n.node.flags.length ? `, ${n.node.flags.join(", ")}` : ""}; rows of ${n.node.layout || "nothing"}` +
    (n.node.inputs.length ? `; reads ${n.node.inputs.join("; ")}.` : ".")));
  const list = element("ul");
  for (const m of n.node.members.slice(0, MOST_MEMBERS)) {
    const item = element("li", m.detail || "all");
    item.append(element("small", `${count(m.queries.length)}: ${short(m.queries.join(", "), 300)}`));
    list.append(item);
  }
  if (n.node.members.length > MOST_MEMBERS) list.append(element("li", `and ${count(n.node.members.length - MOST_MEMBERS)} more.`));
  into.append(list);
}

// Rates below the names, of what is counted: streams' elements, patterns' matches, queries' rows.
export function showRates(streams, queries) {
  const matched = new Map(queries.flatMap((q) => (q.patterns || []).map((p) => [`${p.stream}\n${p.text}`, p.matched_triples])));
  const results = new Map(queries.map((q) => [q.name, q.results || 0]));
  for (const n of nodes.values()) {
    let known = null;
    if (n.kind === "stream" && streams[n.name]) known = streams[n.name].elements;
    else if (n.kind === "query") known = n.users.reduce((sum, name) => sum + (results.get(name) || 0), 0);
    else if (n.node) {
      const found = n.node.reads.map((r) => r.text ? matched.get(`${r.stream}\n${r.text}`) : streams[r.stream]?.elements);
      if (found.length && found.every((c) => typeof c === "number")) known = found.reduce((a, b) => a + b, 0);
    }
    if (known === null) continue;
    const speed = perSecond(rate(`t ${n.id}`, known));
    say(n.below, n.node ? `${speed} · ${short(n.detail, 25 - speed.length)}` : `${n.kind} · ${speed}`);
  }
}

function resize(step) {
  const room = at("graph").parentElement.clientWidth - 2;
  const fit = Math.min(1, Math.max(0.6, room / size[0]));
  zoom = step ? Math.min(2, Math.max(0.25, (zoom || fit) * step)) : fit;
  ["width", "height"].forEach((side, i) => at("graph").setAttribute(side, size[i] * zoom));
}

async function showText() {
  if (!at("shared").open) return;
  const text = await (await ask("/explain")).text();
  at("as-text").textContent = seen(text.slice(0, MOST_TEXT)) + (text.length > MOST_TEXT ? "\n… GET /explain has all." : "");
}

at("larger").addEventListener("click", () => resize(1.25));
at("smaller").addEventListener("click", () => resize(0.8));
at("fit").addEventListener("click", () => resize(0));
at("shared").addEventListener("toggle", showText);
