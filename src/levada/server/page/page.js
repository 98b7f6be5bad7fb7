// The page of a Levada server: what there is, a text with the server's errors in it, rows as they
// come. All that comes from data is text (textContent), never markup. No library, no build.
"use strict";

const at = (id) => document.getElementById(id);
const MOST_ROWS = 500, LONGEST = 2000;
let token = "", chosen = "", etag = "", reading = null, last = new Map();

function ask(path, options = {}) {
  const headers = { ...options.headers };
  if (token) headers.Authorization = `Bearer ${token}`;
  return fetch(path, { ...options, headers, credentials: "omit" });
}

async function json(path, options) {
  const answer = await ask(path, options);
  if (answer.status === 401) at("who").hidden = false;
  const said = await answer.json().catch(() => ({ detail: answer.statusText }));
  if (!answer.ok) throw Object.assign(new Error(said.detail || "It failed."), { said, status: answer.status });
  return { said, answer };
}

function element(name, text = "", kind = "") {
  const made = document.createElement(name);
  made.textContent = text.length > LONGEST ? `${text.slice(0, LONGEST)}… (${text.length} characters)` : text;
  if (kind) made.className = kind;
  return made;
}

const time = (ms) => ms === null || ms === undefined ? "–" : ms === "end" ? "the end" :
  Math.abs(ms) > 8.64e15 ? `${ms} ms` : new Date(ms).toISOString().replace(".000Z", "Z");
const count = (n) => Number(n).toLocaleString("en");

// -- what there is --

function rate(key, value) {
  const now = performance.now(), before = last.get(key);
  if (!before || value < before.value) { last.set(key, { now, value, rate: 0 }); return 0; }
  if (now - before.now < 900) return before.rate;
  const found = 1000 * (value - before.value) / (now - before.now);
  last.set(key, { now, value, rate: found });
  return found;
}

async function look() {
  try {
    const status = (await json("/status")).said;
    at("who").hidden = true;
    const age = status.age === null ? "" : `, the last epoch ${status.age < 2 ? "now" : `${Math.round(status.age)} s ago`}`;
    at("engine").textContent = `The engine is ${status.engine}: epoch ${count(status.epoch)}${age}.`;
    showStreams(status.streams);
    showQueries((await json("/queries")).said.queries);
  } catch (error) {
    at("engine").textContent = error.status ? error.message : "The server does not answer; it is asked again.";
    if (error.status === 503) showQueries((await json("/queries")).said.queries);
  }
}

function showStreams(streams) {
  const marks = Object.values(streams).map((s) => s.watermark).filter((w) => typeof w === "number");
  const first = Math.max(...marks);
  at("streams").replaceChildren(...Object.entries(streams).map(([name, s]) => {
    const row = document.createElement("tr");
    const lag = typeof s.watermark === "number" ? `${count((first - s.watermark) / 1000)} s` : "–";
    const speed = rate(`s ${name}`, s.elements);
    for (const text of [name, time(s.watermark), lag, count(s.elements), count(Math.round(speed)), count(s.late), count(s.dead)])
      row.append(element("td", text));
    if (s.reasons && s.reasons.length) row.title = s.reasons.join("\n");
    return row;
  }));
}

function showQueries(queries) {
  const focused = document.activeElement && document.activeElement.dataset.query;
  at("queries").replaceChildren(...queries.map((query) => {
    const item = document.createElement("li"), button = element("button", query.name);
    button.dataset.query = query.name;
    button.setAttribute("aria-pressed", String(query.name === chosen));
    const next = query.next_report === null || query.next_report === undefined ? "at the next change" : time(query.next_report);
    const held = query.holds_back ? `, held back by ${query.holds_back}` : "";
    button.append(element("small", query.state === "suspended" || query.why ? query.why :
      `${count(query.solutions || 0)} rows, ${rate(`q ${query.name}`, query.solutions || 0).toFixed(1)} per s; next report ${next}${held}`));
    button.addEventListener("click", () => choose(query));
    item.append(button);
    return item;
  }));
  if (!queries.length) at("queries").append(element("li", "There is none yet: write one."));
  if (focused) [...at("queries").querySelectorAll("button")].find((b) => b.dataset.query === focused)?.focus();
}

async function choose(query) {
  chosen = query.name;
  at("name").value = query.name;
  at("text").value = query.text;
  at("drop").disabled = false;
  at("of").textContent = `of ${query.name}`;
  for (const b of at("queries").querySelectorAll("button")) b.setAttribute("aria-pressed", String(b.dataset.query === chosen));
  check();
  follow(query.name);
}

// -- results, by events: fetch, since EventSource can set no header --

async function follow(name) {
  if (reading) reading.abort();
  const mine = reading = new AbortController();
  at("head").replaceChildren();
  at("rows").replaceChildren();
  let id = null;
  try {
    const latest = await ask(`/queries/${encodeURIComponent(name)}/results?format=ndjson`, { signal: mine.signal });
    if (latest.ok) {
      id = latest.headers.get("Levada-Report");
      for (const line of (await latest.text()).split("\n")) if (line) showReport(JSON.parse(line));
    }
  } catch { /* it is followed all the same */ }
  while (!mine.signal.aborted) {
    try {
      const headers = { Accept: "text/event-stream" };
      if (id !== null) headers["Last-Event-ID"] = id;
      const answer = await ask(`/queries/${encodeURIComponent(name)}/results`, { headers, signal: mine.signal });
      if (!answer.ok) throw new Error((await answer.json()).detail);
      at("live").textContent = "Live.";
      for await (const event of events(answer.body)) {
        if (event.id) id = event.id;
        if (event.event === "gap") showGap(JSON.parse(event.data));
        else for (const line of event.data.split("\n")) showReport(JSON.parse(line));
      }
    } catch (error) {
      if (mine.signal.aborted) return;
      at("live").textContent = `Not live: ${error.message} It is tried again.`;
    }
    await new Promise((done) => setTimeout(done, 1000));
  }
}

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value;
    let end;
    while ((end = rest.indexOf("\n\n")) >= 0) {
      const event = { data: [] };
      for (const line of rest.slice(0, end).split("\n")) {
        const colon = line.indexOf(": ");
        if (colon <= 0) continue;
        const name = line.slice(0, colon), text = line.slice(colon + 2);
        if (name === "data") event.data.push(text); else event[name] = text;
      }
      rest = rest.slice(end + 2);
      if (event.data.length) yield { ...event, data: event.data.join("\n") };
    }
  }
}

function showReport(report) {
  const when = report.report === null ? "once" : time(report.report);
  if (report.results) {
    heads(["report", ...(report.change ? ["change"] : []), ...report.head.vars]);
    for (const binding of report.results.bindings) {
      const cells = report.head.vars.map((v) => binding[v] ? term(binding[v]) : "");
      row([when, ...(report.change ? [report.change] : []), ...cells], report.change || "");
    }
  } else if ("boolean" in report) {
    heads(["report", "answer"]);
    row([when, String(report.boolean)]);
  } else {
    heads(["report", "triple"]);
    for (const line of (report.graph || "").split("\n")) if (line) row([when, line]);
  }
}

const term = (t) => t.type === "uri" ? `<${t.value}>` : t.type === "bnode" ? `_:${t.value}` : t.value;

function heads(names) {
  const said = names.join("\u0000");
  if (at("head").dataset.said === said && at("head").children.length) return;
  at("head").dataset.said = said;
  const made = document.createElement("tr");
  made.append(...names.map((name) => element("th", name)));
  at("head").replaceChildren(made);
}

function row(cells, kind = "") {
  const made = document.createElement("tr");
  if (kind) made.className = kind;
  made.append(...cells.map((cell) => element("td", cell)));
  at("rows").prepend(made);
  while (at("rows").children.length > MOST_ROWS) at("rows").lastChild.remove();
}

function showGap(gap) {
  row([`What was reported after ${time(gap.after)}${gap.before === null ? "" : ` and before ${time(gap.before)}`} is not kept any more.`], "gap");
}

// -- the editor --

let checking = 0, timer = 0;

function check() {
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
    if (!found.length) return verdict(`${said.form} over ${said.windows.join(", ") || "static data, once"}.`);
    verdict(found.map((f) => sentence(f)).join("\n"), wrong ? "wrong" : "warn");
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
  at("verdict").textContent = text || "\u00a0";
}

function mark(found) {
  const text = at("text").value, lines = text.split("\n");
  const spans = found.filter((f) => f.line).map((f) => {
    const start = lines.slice(0, f.line - 1).reduce((n, line) => n + line.length + 1, 0) + f.column - 1;
    const word = /^[\w:?$-]+/.exec(text.slice(start));
    return { start: Math.min(start, Math.max(text.length - 1, 0)), end: start + Math.max(word ? word[0].length : 1, 1), kind: f.kind };
  }).sort((a, b) => a.start - b.start);
  const parts = [];
  let done = 0;
  for (const span of spans) {
    if (span.start < done) continue;
    parts.push(document.createTextNode(text.slice(done, span.start)), element("span", text.slice(span.start, span.end), span.kind));
    done = span.end;
  }
  parts.push(document.createTextNode(`${text.slice(done)}\n`));
  at("marks").replaceChildren(...parts);
  at("marks").scrollTop = at("text").scrollTop;
}

async function put() {
  const name = at("name").value.trim(), headers = { "Content-Type": "text/plain" };
  const path = `/queries/${encodeURIComponent(name)}`, body = at("text").value;
  try {
    const there = await ask(path);
    if (there.ok) headers["If-Match"] = there.headers.get("ETag");
    const { said } = await json(path, { method: "PUT", body, headers });
    verdict((said.told || [`${name} is there.`]).join(" "));
    chosen = name;
    await look();
    await choose({ name, text: body });
  } catch (error) {
    const said = error.said || { detail: error.message };
    mark([{ ...said, kind: "wrong" }]);
    verdict(sentence(said), "wrong");
  }
}

async function drop() {
  try {
    const { said } = await json(`/queries/${encodeURIComponent(at("name").value.trim())}`, { method: "DELETE" });
    verdict(said.told.join(" "));
    if (reading) reading.abort();
    at("drop").disabled = true;
    at("live").textContent = "Dropped.";
    await look();
  } catch (error) { verdict(error.message, "wrong"); }
}

at("text").addEventListener("input", check);
at("text").addEventListener("scroll", () => { at("marks").scrollTop = at("text").scrollTop; });
at("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); put(); }
});
at("put").addEventListener("click", put);
at("drop").addEventListener("click", drop);
at("who").addEventListener("submit", (event) => {
  event.preventDefault();
  token = at("token").value;
  at("token").value = "";
  look();
});
look();
setInterval(look, 1000);
