// The editor: what the server says of a text while one types, underlined where it is wrong.
import { ask, at, element, json, plain, turns } from "./base.js";
import { coloured, isPlain } from "./colours.js";

let changed = () => {};

let checking = 0, timer = 0;

export function check() {
  clearTimeout(timer);
  mark([]);
  timer = setTimeout(checkNow, 250);
}

async function checkNow() {
  const text = at("text").value, mine = ++checking;
  if (!text.trim()) return verdict("");
  try {
    const { said } = await json("/check", { method: "POST", body: text, headers: { "Content-Type": "text/plain" } });
    if (mine !== checking || text !== at("text").value) return;
    const wrong = said.errors.length > 0, found = wrong ? said.errors : said.warnings;
    mark(found.map((f) => ({ ...f, kind: wrong ? "wrong" : "warn" })));
    const turned = turns(text) ? ["The text has marks that turn the direction of what stands beside them: it may read otherwise than it is."] : [];
    if (!found.length && !turned.length) return verdict(`${said.form} over ${said.windows.join(", ") || "static data, once"}.`);
    verdict([...turned, ...found.map((f) => sentence(f))].join("\n"), wrong ? "wrong" : "warn");
  } catch (error) {
    if (mine === checking) verdict(error.message, "wrong");
  }
}

function sentence(f) {
  const where = f.line ? `Line ${f.line}, column ${f.column}: ` : "";
  const expected = f.expected && f.expected.length ? ` Expected: ${f.expected.join(", ")}.` : "";
  return `${where}${f.message || f.detail}${expected}${f.hint ? ` ${f.hint}` : ""}`;
}

function verdict(text, kind = "") {
  at("verdict").className = kind;
  at("verdict").textContent = text ? plain(text) : "\u00a0";
}

function mark(found) {
  const text = at("text").value, lines = text.split("\n");
  const spans = found.filter((f) => f.line).map((f) => {
    const start = lines.slice(0, f.line - 1).reduce((n, line) => n + line.length + 1, 0) + f.column - 1;
    const word = /^[\w:?$-]+/.exec(text.slice(start));
    return { start: Math.min(start, Math.max(text.length - 1, 0)), end: start + Math.max(word ? word[0].length : 1, 1), kind: f.kind };
  }).sort((a, b) => a.start - b.start);
  draw(text, coloured(text), spans);
}

// The text as it is, in pieces that have one colour and one line below; it lies under what one types.
function draw(text, colours, spans) {
  const ends = new Set([text.length]);
  for (const { start, end } of [...colours, ...spans]) ends.add(Math.min(start, text.length)).add(Math.min(end, text.length));
  const parts = [];
  let done = 0, colour = 0, under = 0;
  for (const end of [...ends].sort((a, b) => a - b)) {
    if (end === done) continue;
    while (colour < colours.length && colours[colour].end <= done) colour += 1;
    while (under < spans.length && spans[under].end <= done) under += 1;
    const kinds = [colours[colour], spans[under]].filter((s) => s && s.start <= done).map((s) => s.kind);
    const piece = text.slice(done, end);
    if (kinds.length) {
      const part = element("span", "", kinds.join(" "));
      part.textContent = piece;
      parts.push(part);
    } else parts.push(document.createTextNode(piece));
    done = end;
  }
  parts.push(document.createTextNode("\n"));
  at("marks").replaceChildren(...parts);
  at("marks").scrollTop = at("text").scrollTop;
  at("editor").classList.toggle("coloured", !isPlain(text));
}

async function put() {
  const name = at("name").value.trim(), headers = { "Content-Type": "text/plain" };
  const path = `/queries/${encodeURIComponent(name)}`, body = at("text").value;
  try {
    const there = await ask(path);
    if (there.ok) headers["If-Match"] = there.headers.get("ETag");
    const { said } = await json(path, { method: "PUT", body, headers });
    verdict((said.messages || [`${name} is there.`]).join(" "));
    await changed(name, body);
  } catch (error) {
    const said = error.said || { detail: error.message };
    mark([{ ...said, kind: "wrong" }]);
    verdict(sentence(said), "wrong");
  }
}

async function drop() {
  try {
    const { said } = await json(`/queries/${encodeURIComponent(at("name").value.trim())}`, { method: "DELETE" });
    verdict(said.messages.join(" "));
    at("drop").disabled = true;
    await changed("");
  } catch (error) { verdict(error.message, "wrong"); }
}

// Begins; ``then(name, text)`` is told of what was registered, ``then("")`` when one was dropped.
export function edit(then) {
  changed = then;
  at("text").addEventListener("input", check);
  at("text").addEventListener("scroll", () => { at("marks").scrollTop = at("text").scrollTop; });
  at("text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); put(); }
  });
  at("put").addEventListener("click", put);
  at("drop").addEventListener("click", drop);
}
