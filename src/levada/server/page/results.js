// Results of a query as they come, by events: with fetch, since EventSource can set no header.
import { ask, at, countText, element, say, time } from "./base.js";

const MOST_ROWS = 500, ALL = "after=-4611686018427387904";
let reading = null, followed = "", waiting = null;  // the rows that came while it is paused

export function stop() {
  if (reading) reading.abort();
  for (const id of ["head", "rows"]) at(id).replaceChildren();
  for (const id of ["pause", "save"]) at(id).disabled = true;
  for (const id of ["of", "why"]) at(id).textContent = "";
}

// Says why there are no rows, where they would be.
export function why(reason) { say(at("why"), at("rows").children.length ? "" : reason); }

at("pause").addEventListener("click", () => {
  const rows = waiting;
  waiting = rows ? null : [];
  at("pause").setAttribute("aria-pressed", String(waiting !== null));
  at("pause").textContent = waiting ? "Go on" : "Pause";
  for (const put of rows || []) put();
});

at("save").addEventListener("click", async () => {
  const answer = await ask(`/queries/${encodeURIComponent(followed)}/results?${ALL}&format=csv`), link = at("saved");
  if (!answer.ok) return why((await answer.json()).detail);
  link.href = URL.createObjectURL(await answer.blob());
  link.download = `${followed}.csv`;
  link.click();
  URL.revokeObjectURL(link.href);
});

export async function follow(name) {
  stop();
  const mine = reading = new AbortController();
  followed = name;
  for (const id of ["pause", "save"]) at(id).disabled = false;
  if (waiting) waiting = [];
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
  if (waiting) {
    waiting.push(() => showReport(report));
    if (waiting.length > MOST_ROWS) waiting.shift();
    return say(at("live"), `Paused: ${countText(waiting.length, "report")} came meanwhile.`);
  }
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
  why("");
  while (at("rows").children.length > MOST_ROWS) at("rows").lastChild.remove();
}

function showGap(gap) {
  row([`What was reported after ${time(gap.after)}${gap.before === null ? "" : ` and before ${time(gap.before)}`} is not kept any more.`], "gap");
}
