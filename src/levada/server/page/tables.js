// What streams, outputs and letters there are, as tables.
import { at, count, countText, element, fill, json, perSecond, rate, say, short, span, time } from "./base.js";

const MOST = 200, MOST_TEXT = 240, AGAIN = 3000;

export function showStreams(streams, { first, clock }, away) {
  const all = Object.entries(streams);
  const none = all.flatMap(([name, s]) => s.missing_values ? `${name}: ${s.missing_values}` : []);
  say(at("away"), [...away.map((a) => `${a.reason} Since ${time(a.since_ms)}.`), ...none].slice(0, MOST).join("\n"));
  say(at("behind-what"), clock ? "behind the clock" : "behind the first");
  fill(at("streams"), all.slice(0, MOST).map(([name, s]) => ({
    key: name,
    cells: [name, time(s.watermark), typeof s.watermark === "number" ? span((first - s.watermark) / 1000) : "–",
      ...waiting(s.backlog), count(s.elements), perSecond(rate(`s ${name}`, s.elements)), count(s.late), count(s.dead_letters)],
  })));
  say(at("more-streams"), all.length > MOST ? `and ${count(all.length - MOST)} more.` : all.length ? "" : "There is no stream.");
  choices(all.map(([name]) => name));
}

function waiting(b) {
  const n = b && (b.elements ?? b.size_bytes), left = b?.catch_up_seconds;
  return n ? [`${count(n)}${b.elements ? "" : " bytes"}, ${span(b.age_seconds ?? 0)}`, left ? span(left) : "–"] : ["–", "–"];
}

export function showOutputs(outputs) {
  at("no-outputs").hidden = outputs.length > 0;
  at("with-outputs").hidden = !outputs.length;
  fill(at("outputs"), outputs.slice(0, MOST).map((o) => ({
    key: `${o.query}\n${o.target}`, kind: o.reason || o.blocks_intake ? "away" : "",
    cells: [o.query, o.target, o.pending_reports ? count(o.pending_reports) : "none", o.pending_reports ? span(o.age_seconds) : "–",
      [o.reason, o.blocks_intake ? "The intake waits for it." : ""].filter(Boolean).join(" ") || (o.pending_reports ? "It catches up." : "It has all.")],
  })));
}

// -- letters: asked for when there are more than before --

let seen = "", asked = 0, wanted = 20;

function choices(names) {
  const select = at("letters-of"), known = [...select.options].slice(1).map((o) => o.value);
  if (known.join("\n") === names.join("\n")) return;
  const chosen = select.value;
  const made = names.slice(0, MOST).map((name) => Object.assign(element("option", name), { value: name }));
  select.replaceChildren(select.options[0], ...made);
  select.value = names.includes(chosen) ? chosen : "";
}

export async function showLetters(streams) {
  const stream = at("letters-of").value, kind = at("letters-kind").value;
  const counts = Object.entries(streams).filter(([name]) => !stream || name === stream).map(([, s]) => s);
  const [dead, late] = ["dead_letters", "late"].map((k) => counts.reduce((sum, s) => sum + s[k], 0));
  const now = JSON.stringify([stream, kind, dead, late, wanted]);
  if (now === seen || performance.now() - asked < AGAIN) return;
  asked = performance.now();
  say(at("letters-told"), dead + late ? `${countText(dead, "dead letter")}, ${countText(late, "late element")}.` : "There is none: all that came was in time, and well-formed.");
  at("with-letters").hidden = !(dead + late);
  if (!(dead + late)) { seen = now; return; }
  try {
    const query = new URLSearchParams({ limit: wanted, ...(stream && { stream }), ...(kind && { kind }) });
    const { said } = await json(`/letters?${query}`);
    at("letters").replaceChildren(...said.letters.map(letter));
    if (said.message) say(at("letters-told"), `${at("letters-told").textContent} ${said.message}`);
    at("more-letters").hidden = !said.has_more || wanted >= 100;
    seen = now;
  } catch (error) { say(at("letters-told"), error.message); }
}

function letter(l) {
  const row = element("tr");
  const where = l.offset === null ? l.source : `${l.source}, ${l.offset}`;
  row.append(...[l.kind, l.stream, where ?? "", l.reason].map((text) => element("td", text)));
  const cell = element("td"), text = element("code", short(l.text, MOST_TEXT));
  cell.append(text);
  if (l.characters > MOST_TEXT) cell.append(element("small", ` ${count(l.characters)} characters`));
  row.append(cell);
  return row;
}

function anew() { asked = -AGAIN; }
at("letters-of").addEventListener("change", anew);
at("letters-kind").addEventListener("change", anew);
at("more-letters").addEventListener("click", () => { wanted = 100; anew(); });
