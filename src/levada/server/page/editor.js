// The editor (CodeMirror 6): colours, completion at the cursor, and what the server says of a text
// while one types. It lies in a shadow root, where its styles are sheets that the policy allows.
import { acceptCompletion, autocompletion, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching, HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { lintKeymap, setDiagnostics } from "@codemirror/lint";
import { Compartment, EditorState } from "@codemirror/state";
import { EditorView, highlightSpecialChars, keymap, lineNumbers, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { ask, at, json, plain, turns } from "./base.js";

const HEADERS = { "Content-Type": "text/plain" }, WORD = /[\w:<\/#.-]*$/;
let changed = () => {}, checking = 0, timer = 0, words = [], keywords = new Set();

// -- colours: of one line each; the server alone knows what is right --

const TOKENS = [
  [/^<[^<>"{}|^`\\\s]*>/, "link"], [/^(#|--).*/, "comment"], [/^("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')/, "string"],
  [/^[?$]\w+/, "variableName"], [/^[\p{L}\w.-]*:[\p{L}\w.%-]*/u, "typeName"],
  [/^(P(?=[\dT])[\dTYMWDHS.]+|\d[\d.]*(?:[eE][+-]?\d+)?)\b/, "number"],
];

function token(stream, state) {
  if (!state.end && stream.match(/^("""|'''|\/\*)/)) state.end = stream.current().replace("/*", "*/");
  if (state.end) {
    const kind = state.end === "*/" ? "comment" : "string";
    if (stream.skipTo(state.end)) { stream.match(state.end); state.end = ""; } else stream.skipToEnd();
    return kind;
  }
  for (const [expression, kind] of TOKENS) if (stream.match(expression)) return kind;
  if (stream.match(/^\p{L}[\p{L}\w]*/u)) return keywords.has(stream.current().toUpperCase()) ? "keyword" : null;
  stream.next();
  return null;
}

const language = () => StreamLanguage.define({ startState: () => ({ end: "" }), token, languageData: { commentTokens: { line: "#" } } });
const spoken = new Compartment();
const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--water)" }, { tag: tags.variableName, color: "var(--leaf)" }, { tag: tags.comment, color: "var(--soft)" },
  { tag: [tags.string, tags.number], color: "var(--warn)" }, { tag: [tags.link, tags.typeName], color: "var(--term)" },
]);
const theme = EditorView.theme({
  "&": { minHeight: "12rem", maxHeight: "60vh", background: "var(--ground)", color: "var(--ink)" },
  ".cm-scroller": { font: "14px/1.5 ui-monospace, monospace", minHeight: "12rem" },
  ".cm-content": { caretColor: "var(--ink)", minHeight: "12rem" },
  ".cm-gutters": { background: "none", color: "var(--soft)", border: "0" },
  ".cm-tooltip": { background: "var(--panel)", color: "var(--ink)", border: "var(--edge)", maxWidth: "90vw" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { background: "var(--water)", color: "var(--panel)" },
  ".cm-lintRange": { backgroundImage: "none", textDecoration: "underline wavy var(--wrong)", textUnderlineOffset: "3px" },
  ".cm-lintRange-warning": { textDecorationColor: "var(--warn)" },
  ".cm-placeholder": { color: "var(--soft)" },
  "&.cm-focused .cm-matchingBracket": { background: "var(--tint)", outline: "1px solid var(--water)" },
});

// -- completion: where ON stands before the cursor, streams; else what the server expects there --

// Asks the server for the words that it knows; again when a token has come.
export async function learn() {
  try { words = (await json("/words")).said.words; } catch { return; }
  keywords = new Set(words.filter((word) => !word.kind).map((word) => word.insert.toUpperCase()));
  view.dispatch({ effects: spoken.reconfigure(language()) });
}

async function complete(context) {
  const word = context.matchBefore(WORD), typed = word.text;
  if (!typed && !context.explicit) return null;
  if (!words.length || context.explicit) await learn();
  const before = context.state.sliceDoc(0, word.from);
  const options = /\bWINDOW\s+\S+\s+ON\s+(STREAM\s+)?$/i.test(before) ? streams(text()) : await all(before);
  return { from: word.from, options, validFor: /^[\w:<\/#.-]*$/ };
}

// Streams as a query names them: by IRI, or by a prefix that the text has, since the last word counts.
function streams(said) {
  const prefixes = [...said.matchAll(/\bPREFIX\s+([\w.-]*:)\s*<[^<>\s]*[\/#]>/gi)].map((match) => match[1]);
  return words.filter((w) => w.kind === "stream").flatMap(({ insert, kind }) => {
    const iri = insert[0] === "<" ? insert.slice(1, -1) : insert, last = /[\w-]+$/.exec(iri);
    return [`<${iri}>`, ...(last ? prefixes.map((prefix) => prefix + last) : [])].map((label) => ({ label, detail: kind }));
  });
}

async function all(before) {
  const expected = await expectedAt(before);
  return words.map((w) => ({ label: w.insert, detail: w.kind, boost: expected.includes(w.insert) ? 50 : 0 }));
}

async function expectedAt(before) {
  try { return (await json("/check", { method: "POST", body: before.trim() ? before : "x", headers: HEADERS })).said.errors.flatMap((e) => e.expected || []); } catch { return []; }
}

// -- what the server says --

export const text = () => view.state.doc.toString();

export function write(said) {
  view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: said } });
}

function check() {
  clearTimeout(timer);
  timer = setTimeout(checkNow, 250);
}

async function checkNow() {
  const body = text(), mine = ++checking;
  if (!body.trim()) { mark([]); return verdict(""); }
  try {
    const { said } = await json("/check", { method: "POST", body, headers: HEADERS });
    if (mine !== checking || body !== text()) return;
    const wrong = said.errors.length > 0, found = wrong ? said.errors : said.warnings;
    mark(found, wrong ? "error" : "warning");
    const turned = turns(body) ? ["The text has marks that turn the direction of what stands beside them: it may read otherwise than it is."] : [];
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

function verdict(said, kind = "") {
  at("verdict").className = kind;
  at("verdict").textContent = said ? plain(said) : "\u00a0";
}

function mark(found, severity) {
  const { doc } = view.state;
  const marks = found.filter((f) => f.line && f.line <= doc.lines).map((f) => {
    const from = Math.min(doc.line(f.line).from + f.column - 1, Math.max(doc.length - 1, 0));
    const [word] = /^[\w:?$-]*/.exec(doc.sliceString(from, from + 200));
    return { from, to: Math.min(from + (word.length || 1), doc.length), severity, message: plain(sentence(f)) };
  });
  view.dispatch(setDiagnostics(view.state, marks));
}

export async function put() {
  const name = at("name").value.trim(), headers = { ...HEADERS };
  const path = `/queries/${encodeURIComponent(name)}`, body = text();
  try {
    const there = await ask(path);
    if (there.ok) headers["If-Match"] = there.headers.get("ETag");
    const { said } = await json(path, { method: "PUT", body, headers });
    verdict((said.messages || [`${name} is there.`]).join(" "));
    await changed(name, body);
  } catch (error) {
    const said = error.said || { detail: error.message };
    mark([said], "error");
    verdict(sentence(said), "wrong");
  }
}

async function drop() {
  try {
    const { said } = await json(`/queries/${encodeURIComponent(at("name").value.trim())}`, { method: "DELETE" });
    verdict(said.messages.join(" "));
    at("drop").disabled = true;
    write("");
    await changed("");
  } catch (error) { verdict(error.message, "wrong"); }
}

const root = at("editor").attachShadow({ mode: "open" });
const view = new EditorView({
  root,
  parent: root,
  state: EditorState.create({ extensions: [
    keymap.of([{ key: "Mod-Enter", run: () => { put(); return true; } }, { key: "Tab", run: acceptCompletion },
      ...completionKeymap, ...lintKeymap, ...historyKeymap, ...defaultKeymap]),
    lineNumbers(), history(), bracketMatching(), highlightSpecialChars(), EditorView.lineWrapping, theme,
    spoken.of(language()), syntaxHighlighting(colours), autocompletion({ override: [complete] }),
    placeholder("Ctrl Space says what may stand here"),
    EditorView.contentAttributes.of({ "aria-label": "The query's text", spellcheck: "false", autocapitalize: "off" }),
    EditorView.updateListener.of((update) => { if (update.docChanged) check(); }),
  ] }),
});

// Begins; ``then(name, text)`` is told of what was registered, ``then("")`` when one was dropped.
export function edit(then) {
  changed = then;
  at("put").addEventListener("click", put);
  at("drop").addEventListener("click", () => {
    at("sure-of").textContent = plain(`Drop the query ${at("name").value.trim()}? Its results end, also for others.`);
    at("sure").showModal();
  });
  at("keep").addEventListener("click", () => at("sure").close());
  at("drop-it").addEventListener("click", () => { at("sure").close(); drop(); });
}
