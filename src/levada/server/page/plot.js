// What the last ten minutes were like: lines over time for each stream or query, of what /status
// said each second while the page was there.
import { at, count, drawn, element, plain, short, span, time } from "./base.js";

const KEPT = 600000, LINES = 8, H = 200, LEFT = 66, RIGHT = 10, TOP = 12, BOTTOM = 24, DAY = 86400000;
const history = [];
let measure = "behind";

// A measure: of streams or queries, what is drawn of two looks, and how a value is told.
const MEASURES = {
  behind: { of: "streams", value: (s, before, look) => mark(s) === null ? null : (look.first - mark(s)) / 1000, told: span, least: 0 },
  complete: { of: "streams", value: mark, told: when },
  elements: { of: "streams", value: speed("elements"), told: few, least: 0 },
  rows: { of: "queries", value: speed("results"), told: few, least: 0 },
};

function mark(s) { return typeof s.watermark === "number" ? s.watermark : null; }

function speed(field) {
  return (s, before, look, past) => before && look.at > past.at ? Math.max(0, 1000 * (s[field] - before[field]) / (look.at - past.at)) : null;
}

function few(n) { return n >= 1000 ? `${count(Math.round(n / 100) / 10)} k` : count(Math.round(n * 10) / 10); }
function when(ms, range = 0) { return range > 2 * DAY ? time(ms).slice(0, 10) : time(ms).slice(11, 19); }

export function remember(streams, queries) {
  const now = Date.now();
  const marks = Object.values(streams).map(mark).filter((w) => w !== null);
  const most = marks.length ? Math.max(...marks) : null;
  const first = most !== null && Math.abs(now - most) < DAY ? now : most;  // live: by the clock
  history.push({
    at: now, first,
    streams: new Map(Object.entries(streams).map(([n, { elements, watermark }]) => [n, { elements, watermark }])),
    queries: new Map(queries.map((q) => [q.name, { results: q.results || 0 }])),
  });
  while (history[0].at < now - KEPT) history.shift();
  plot();
  return { first, clock: first === now };
}

function series() {
  const { of, value } = MEASURES[measure], last = history.at(-1);
  const found = [...last[of].keys()].map((name) => ({ name, values: history.map((look, i) => {
    const past = history[Math.max(0, i - 3)], s = look[of].get(name);
    return [look.at, s ? value(s, past[of].get(name), look, past) : null];
  }) }));
  const end = (s) => s.values.at(-1)[1] ?? -Infinity;
  return found.sort((a, b) => measure === "complete" ? end(a) - end(b) : end(b) - end(a)).slice(0, LINES)
    .sort((a, b) => a.name < b.name ? -1 : 1);
}

// Round numbers that cover a range: about four.
export function ticks(low, high) {
  const wide = (high - low) / 4 || 1, power = 10 ** Math.floor(Math.log10(wide));
  const step = [1, 2, 5].map((u) => u * power).find((s) => s >= wide) || 10 * power, found = [];
  for (let t = Math.ceil(low / step) * step; t <= high + step * 1e-9; t += step) found.push(t);
  return found;
}

function plot() {
  const svg = at("plot"), w = svg.parentElement.clientWidth, { told, least } = MEASURES[measure];
  if (!history.length || !w) return;
  const lines = series(), all = lines.flatMap((s) => s.values.map((v) => v[1])).filter((v) => v !== null);
  const now = history.at(-1).at, begin = now - Math.min(KEPT, Math.max(60000, now - history[0].at));
  let low = Math.min(least ?? Infinity, ...all), high = Math.max(...all, low + (measure === "complete" ? 1000 : 1));
  if (!all.length) { low = 0; high = 1; }
  const marks = ticks(low, high);
  high = Math.max(high, marks.at(-1) ?? high);
  const x = (t) => LEFT + (w - LEFT - RIGHT) * (t - begin) / (now - begin);
  const y = (v) => TOP + (H - TOP - BOTTOM) * (1 - (v - low) / (high - low || 1));
  const parts = [];
  for (const mark of marks) {
    parts.push(drawn("path", { class: "grid", d: `M${LEFT} ${y(mark)}H${w - RIGHT}` }),
      drawn("text", { x: LEFT - 8, y: y(mark) + 4, class: "y" }, told(mark, high - low)));
  }
  const minute = now - begin > 240000 ? 120000 : now - begin > 90000 ? 60000 : 15000;
  for (let back = 0; now - back >= begin; back += minute) {
    parts.push(drawn("text", { x: x(now - back), y: H - 6, class: back ? "x" : "x now" }, back ? `−${span(back / 1000)}` : "now"));
  }
  lines.forEach((s, i) => parts.push(drawn("path", { class: `line c${i}`, d: path(s.values.filter((v) => v[0] >= begin), x, y) })));
  svg.setAttribute("viewBox", `0 0 ${w} ${H}`);
  svg.setAttribute("height", H);
  svg.replaceChildren(...parts);
  name(lines, told, high - low);
}

function path(values, x, y) {
  let d = "", pen = "M";
  for (const [t, v] of values) {
    if (v === null) { pen = "M"; continue; }
    d += `${pen}${x(t).toFixed(1)} ${y(v).toFixed(1)}`;
    pen = "L";
  }
  return d;
}

function name(lines, told, range) {
  const ends = lines.map((s) => [s.name, s.values.at(-1)[1]]);
  const text = ([n, v]) => `${short(n, 40)} ${v === null ? "–" : told(v, range)}`;
  const more = history.at(-1)[MEASURES[measure].of].size - lines.length;
  const keys = ends.map((end, i) => {
    const key = element("li", text(end));
    key.prepend(element("i", "", `c${i}`));
    return key;
  });
  if (more > 0) keys.push(element("li", `and ${count(more)} more`));
  at("keys").replaceChildren(...keys);
  at("plot").setAttribute("aria-label", plain(`The last minutes, now: ${ends.map(text).join("; ") || "nothing"}`));
}

for (const choice of document.getElementsByName("measure")) {
  choice.addEventListener("change", () => { measure = choice.value; plot(); });
}
new ResizeObserver(plot).observe(at("plot").parentElement);
