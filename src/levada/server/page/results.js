// Results of a query as they come, by events: with fetch, since EventSource can set no header.
import { ask, at, element, time } from "./base.js";

const MOST_ROWS = 500;
let reading = null;

export function stop() { if (reading) reading.abort(); }

export async function follow(name) {
  stop();
  const mine = reading = new AbortController();
  at("head").replaceChildren();
  at("rows").replaceChildren();
  at("of").textContent = `of ${name}`;
  at("live").className = "";
  at("live").textContent = "Not live yet.";
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
      at("live").className = "on";
      at("live").textContent = "Live.";
      for await (const event of events(answer.body)) {
        if (event.id) id = event.id;
        if (event.event === "gap") showGap(JSON.parse(event.data));
        else for (const line of event.data.split("\n")) showReport(JSON.parse(line));
      }
    } catch (error) {
      if (mine.signal.aborted) return;
      at("live").className = "";
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
