// What all parts of the page share: asking the server, and making elements of what it says. All
// that comes from data is text (textContent), never markup, and never an address.

export const at = (id) => document.getElementById(id);
const LONGEST = 2000, SVG = "http://www.w3.org/2000/svg";
let token = "";

export const useToken = (said) => { token = said; };

export function ask(path, options = {}) {
  const headers = { ...options.headers };
  if (token) headers.Authorization = `Bearer ${token}`;
  return fetch(path, { ...options, headers, credentials: "omit" });
}

export async function json(path, options) {
  const mine = token, answer = await ask(path, options);
  const said = await answer.json().catch(() => ({ detail: answer.statusText }));
  if (answer.status === 401 && mine === token) {
    document.body.classList.add("locked");
    at("who").hidden = false;
    say(at("who-told"), token ? said.detail : "This server asks for a token.");
  }
  if (!answer.ok) throw Object.assign(new Error(said.detail || "It failed."), { said, status: answer.status });
  return { said, answer };
}

// -- text: cut, and without marks that turn the order of what stands beside them --

const TURNS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

export const turns = (text) => text.search(TURNS) >= 0;

export const seen = (text) => text.replace(TURNS, (mark) => `[U+${mark.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}]`);

export function plain(text) {
  const said = String(text);
  return seen(said.length > LONGEST ? `${said.slice(0, LONGEST)}… (${said.length} characters)` : said);
}

export const short = (text, most) => {
  const said = plain(text);
  return said.length > most ? `${said.slice(0, most - 1)}…` : said;
};

// -- elements --

export function element(name, text = "", kind = "") {
  const made = document.createElement(name);
  if (text !== "") made.textContent = plain(text);
  if (kind) made.className = kind;
  return made;
}

export function drawn(name, said = {}, text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(said)) made.setAttribute(key, value);
  if (text !== "") made.textContent = plain(text);
  return made;
}

// Sets what has changed only, so that nothing flickers and nobody is read the same twice.
export function say(node, text, kind) {
  const said = plain(text);
  if (node.textContent !== said) node.textContent = said;
  if (kind !== undefined && node.className !== kind) node.className = kind;
}

// Rows of a table by a key: cells change in place, rows come and go.
export function fill(body, rows) {
  const there = new Map([...body.children].map((row) => [row.dataset.key, row]));
  rows.forEach(({ key, cells, kind = "" }, i) => {
    let row = there.get(key);
    there.delete(key);
    if (!row || row.children.length !== cells.length) {
      row?.remove();
      row = element("tr");
      row.dataset.key = key;
      row.append(...cells.map(() => element("td")));
    }
    if (row.className !== kind) row.className = kind;
    cells.forEach((cell, k) => say(row.children[k], cell));
    if (body.children[i] !== row) body.insertBefore(row, body.children[i] || null);
  });
  for (const row of there.values()) row.remove();
}

// -- numbers and times --

export const time = (ms) => ms === null || ms === undefined ? "–" : ms === "end" ? "the end" :
  Math.abs(ms) > 8.64e15 ? `${ms} ms` : new Date(ms).toISOString().replace(".000Z", "Z");

export const count = (n) => Number(n).toLocaleString("en");
export const countText = (n, noun) => `${count(n)} ${noun}${Number(n) === 1 ? "" : "s"}`;

export function span(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const s = Math.abs(seconds), cut = (n) => count(Math.round(n * 10) / 10);
  const said = s < 1 ? `${Math.round(s * 1000)} ms` : s < 120 ? `${cut(s)} s` : s < 7200 ? `${cut(s / 60)} min` :
    s < 172800 ? `${cut(s / 3600)} h` : `${cut(s / 86400)} d`;
  return seconds < 0 ? `−${said}` : said;
}

export const perSecond = (n) => `${n >= 10000 ? `${count(Math.round(n / 100) / 10)} k` : n >= 100 ? count(Math.round(n)) : Math.round(n * 10) / 10}/s`;

// How fast a count grows: over what was seen in the last five seconds.
const samplesOf = new Map();

export function rate(key, value) {
  const now = performance.now();
  let samples = samplesOf.get(key);
  if (!samples || value < samples.at(-1)[1]) samplesOf.set(key, samples = []);
  if (!samples.length || now - samples.at(-1)[0] > 400) samples.push([now, value]);
  while (samples.length > 2 && now - samples[0][0] > 5000) samples.shift();
  const [first, last] = [samples[0], samples.at(-1)];
  return last[0] > first[0] ? 1000 * (last[1] - first[1]) / (last[0] - first[0]) : 0;
}
