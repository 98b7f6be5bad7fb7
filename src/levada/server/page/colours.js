// What the words of a text are, for the eye: the server alone knows what is right. Cut by one
// expression, so each place is looked at once; a text that is long, or turns its direction, is plain.
import { turns } from "./base.js";

const LONGEST = 20_000;
const CUT = new RegExp([
  String.raw`(?<iri><[^<>"{}|^\x60\\\s]*>)`,
  String.raw`(?<note>(?:#|--).*|/\*[^]*?\*/)`,
  String.raw`(?<string>"""[^]*?"""|'''[^]*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')`,
  String.raw`(?<variable>[?$]\w+)`,
  String.raw`(?<term>[\p{L}\w.-]*:[\p{L}\w.%-]*)`,
  String.raw`(?<number>\bP(?=[\dT])[\dTYMWDHS.]+\b|\b\d[\d.]*(?:[eE][+-]?\d+)?\b)`,
  String.raw`(?<word>\p{L}[\p{L}\w]*)`,
].join("|"), "gu");

let keywords = new Set();

// What the server knows as keywords.
export function know(words) { keywords = new Set(words.map((word) => word.toUpperCase())); }

export const isPlain = (text) => !text || text.length > LONGEST || turns(text);

// The coloured places in order: {start, end, kind}.
export function coloured(text) {
  if (isPlain(text)) return [];
  const found = [];
  for (const match of text.matchAll(CUT)) {
    const [kind, word] = Object.entries(match.groups).find(([, part]) => part !== undefined);
    if (kind === "word" && !keywords.has(word.toUpperCase())) continue;
    found.push({ start: match.index, end: match.index + word.length, kind });
  }
  return found;
}
