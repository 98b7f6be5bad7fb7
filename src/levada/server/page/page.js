// The page of a Levada server: each second what there is, in all its parts. No library, no build.
import { at, count, countText, element, json, perSecond, rate, say, span, time, useToken } from "./base.js";
import { check, edit } from "./editor.js";
import "./complete.js";
import { remember } from "./plot.js";
import { follow, stop } from "./results.js";
import { showLetters, showOutputs, showStreams } from "./tables.js";
import { lightQuery, refresh, showRates } from "./topology.js";

const MOST_QUERIES = 500, OFTEN = 1000, HIDDEN = 5000;
let chosen = "";

async function look() {
  try {
    const status = (await json("/status")).said, queries = (await json("/queries")).said.queries;
    at("who").hidden = true;
    const age = status.epoch_age_seconds === null ? "" : `, the last ${status.epoch_age_seconds < 2 ? "now" : `${span(status.epoch_age_seconds)} ago`}`;
    state(status.engine === "running" ? "on" : "off", `${status.engine === "running" ? "Running" : "Stopped"}: epoch ${count(status.epoch)}${age}`);
    showQueries(queries);
    showStreams(status.streams, remember(status.streams, queries), status.unavailable_streams);
    showOutputs(status.outputs);
    await refresh(JSON.stringify(queries.map((q) => [q.name, q.text, q.state])));
    showRates(status.streams, queries);
    await showLetters(status.streams);
  } catch (error) {
    state("off", error.status ? error.message : "The server does not answer; it is asked again.");
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
    say(button.children[3], query.state === "suspended" ? "" : `next report ${next(query.next_report)}${taken(query)}`);
    if (list.children[i] !== item) list.insertBefore(item, list.children[i] || null);
  });
  for (const item of there.values()) item.remove();
  if (queries.length > MOST_QUERIES) list.append(note(`and ${count(queries.length - MOST_QUERIES)} more; GET /queries has all.`));
  if (!queries.length) list.append(note("There is none yet: write one."));
}

// CPU seconds and bytes of state, as far as the last epoch says
const taken = (query) => query.cpu_seconds === undefined ? ""
  : `, ${query.cpu_seconds.toFixed(2)} CPU s${query.state_bytes === null ? "" : `, ${count(query.state_bytes)} B of state`}`;

const next = (due) => due === null || due === undefined ? "at the next change" : time(due);

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
  at("text").value = query.text;
  at("drop").disabled = false;
  for (const b of document.querySelectorAll("#queries button")) b.setAttribute("aria-pressed", b.query.name === chosen);
  check();
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
at("who").addEventListener("submit", (event) => {
  event.preventDefault();
  useToken(at("token").value);
  at("token").value = "";
  look();
});
always();
