// The page of a Levada server: each second what there is, in all its parts. Nothing is built; the
// editor's library is in modules/, as its packages have it.
import { at, count, countText, element, json, perSecond, rate, say, span, time, useToken } from "./base.js";
import { edit, learn, put, write } from "./editor.js";
import { remember } from "./plot.js";
import { follow, stop, why } from "./results.js";
import { showLetters, showOutputs, showStreams } from "./tables.js";
import { lightQuery, refresh, showRates } from "./topology.js";

const MOST_QUERIES = 500, OFTEN = 1000, HIDDEN = 5000;
let chosen = "", answered = 0;

async function look() {
  try {
    const status = (await json("/status")).said, queries = (await json("/queries")).said.queries;
    if (document.body.classList.contains("locked")) learn();
    at("who").hidden = true;
    document.body.classList.remove("locked", "stale");
    answered = Date.now();
    const age = status.epoch_age_seconds === null ? "" : `, the last ${status.epoch_age_seconds < 2 ? "now" : `${span(status.epoch_age_seconds)} ago`}`;
    state(status.engine === "running" ? "on" : "off", `${status.engine === "running" ? "Running" : "Stopped"}: epoch ${count(status.epoch)}${age}`);
    showQueries(queries);
    showStreams(status.streams, remember(status.streams, queries), status.unavailable_streams);
    showOutputs(status.outputs);
    await refresh(JSON.stringify(queries.map((q) => [q.name, q.text, q.state])));
    showRates(status.streams, queries);
    await showLetters(status.streams);
  } catch (error) {
    if (error.status === 401) return state("", "Locked");
    document.body.classList.remove("locked");
    document.body.classList.toggle("stale", !error.status && answered > 0);
    state("off", error.status ? error.message : `The server does not answer; it is asked again.${answered ? ` The figures are of ${time(answered - answered % 1000)}.` : ""}`);
    if (error.status === 503) await json("/queries").then(({ said }) => showQueries(said.queries), () => {});
  }
}

async function always() {
  for (;;) {
    await look();
    await new Promise((done) => setTimeout(done, document.hidden ? HIDDEN : OFTEN));
  }
}

const state = (kind, text) => say(at("engine"), text, kind);

// -- queries: buttons that stay, with lines that change --

function showQueries(queries) {
  const list = at("queries"), there = new Map([...list.children].map((item) => [item.dataset.key, item]));
  queries.slice(0, MOST_QUERIES).forEach((query, i) => {
    const item = there.get(query.name) || queryItem(query.name);
    there.delete(query.name);
    const button = item.firstChild;
    button.query = query;
    button.setAttribute("aria-pressed", query.name === chosen);
    button.classList.toggle("away", query.state === "suspended");
    const speed = perSecond(rate(`q ${query.name}`, query.results || 0));
    const none = query.state === "suspended" || query.reason ? query.reason : "";
    say(button.children[1], query.state === "suspended" ? "suspended" : query.results ? speed : "no result");
    say(button.children[2], none || query.unmatched_patterns?.[0] || `${countText(query.results || 0, "row")}${query.blocking_stream ? `, held back by ${query.blocking_stream}` : ""}`);
    if (query.name === chosen) why(none || [query.unmatched_patterns?.[0], `The next report is ${due(query.next_report)}.`].filter(Boolean).join(" "));
    say(button.children[3], query.state === "suspended" ? "" : `next report ${due(query.next_report)}${taken(query)}`);
    if (list.children[i] !== item) list.insertBefore(item, list.children[i] || null);
  });
  for (const item of there.values()) item.remove();
  if (queries.length > MOST_QUERIES) list.append(note(`and ${count(queries.length - MOST_QUERIES)} more; GET /queries has all.`));
  at("empty").hidden = queries.length > 0;
}

// CPU seconds and bytes of state, as far as the last epoch says
const taken = (query) => query.cpu_seconds === undefined ? ""
  : `, ${query.cpu_seconds.toFixed(2)} CPU s${query.state_bytes === null ? "" : `, ${count(query.state_bytes)} B of state`}`;

const due = (next) => next === null || next === undefined ? "at the next change" : time(next);

function queryItem(name) {
  const item = element("li"), button = element("button");
  item.dataset.key = name;
  button.append(element("span", name, "name"), element("span", "", "speed"), element("small"), element("small", "", "next"));
  button.addEventListener("click", () => choose(button.query));
  item.append(button);
  return item;
}

const note = (text) => element("li", text);

function choose(query) {
  chosen = query.name;
  at("name").value = query.name;
  write(query.text);
  at("drop").disabled = false;
  for (const b of document.querySelectorAll("#queries button")) b.setAttribute("aria-pressed", b.query.name === chosen);
  lightQuery(query.name);
  follow(query.name);
}

edit(async (name, text) => {
  chosen = name;
  if (!name) {
    stop();
    at("live").className = "";
    at("live").textContent = "Dropped.";
  }
  await look();
  if (name) choose({ name, text });
});

// -- the example: a stream, a query over it, and rows of the last ten seconds --

const EXAMPLE = `PREFIX : <http://example.org/>
SELECT ?room (AVG(?t) AS ?mean)
FROM NAMED WINDOW :w ON :readings [RANGE PT4S STEP PT2S]
WHERE { WINDOW :w { ?room :temperature ?t } }
GROUP BY ?room
`;

at("example").addEventListener("click", async () => {
  const rows = Array.from({ length: 22 }, (_, i) => `<http://example.org/${i % 2 ? "hall" : "lab"}> <http://example.org/temperature> "${20 + i % 5}"^^<http://www.w3.org/2001/XMLSchema#integer> ${Date.now() - 10500 + 500 * i} .`);
  at("name").value = "example";
  write(EXAMPLE);
  try {
    await json("/streams/readings", { method: "PUT" });
    await put();
    await json("/streams/readings", { method: "POST", body: rows.join("\n"), headers: { "Content-Type": "application/n-quads" } });
  } catch (error) { say(at("verdict"), error.message, "wrong"); }
});

at("who").addEventListener("submit", (event) => {
  event.preventDefault();
  useToken(at("token").value);
  at("token").value = "";
  look();
});
always();
