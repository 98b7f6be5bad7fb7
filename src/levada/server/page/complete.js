// Completion in the editor: keywords, streams, graphs and prefixes that the server knows. A list
// below the text, by keyboard: arrows choose, Enter or Tab takes, Escape closes, Ctrl Space opens.
import { at, element, json } from "./base.js";
import { know } from "./colours.js";
import { check } from "./editor.js";

const MOST_WORDS = 8;
let words = [], found = [], picked = 0, missed = false;

async function learn() {
  try { words = (await json("/words")).said.words; } catch { words = []; }
  know(words.filter((word) => !word.kind).map((word) => word.insert));
  if (missed) offer(false);  // who types does not wait for the words
}

function before() {
  const text = at("text"), end = text.selectionStart;
  return /[\w:<\/#.-]*$/.exec(text.value.slice(0, end))[0];
}

function offer(asked) {
  const typed = before(), low = typed.toLowerCase();
  const wanted = typed.length > 1 || asked;
  missed = wanted && !words.length;
  found = wanted ? words.filter((w) => w.insert.toLowerCase().startsWith(low) && w.insert !== typed).slice(0, MOST_WORDS) : [];
  picked = 0;
  draw();
}

function draw() {
  const list = at("words"), text = at("text");
  list.hidden = !found.length;
  text.setAttribute("aria-expanded", String(found.length > 0));
  list.replaceChildren(...found.map((word, i) => {
    const item = element("li", word.insert);
    item.id = `word${i}`;
    item.setAttribute("role", "option");
    item.setAttribute("aria-selected", String(i === picked));
    item.append(element("small", word.kind));
    item.addEventListener("mousedown", (event) => { event.preventDefault(); picked = i; take(); });
    return item;
  }));
  if (found.length) text.setAttribute("aria-activedescendant", `word${picked}`);
  else text.removeAttribute("aria-activedescendant");
}

function take() {
  const text = at("text"), typed = before(), word = found[picked].insert, end = text.selectionStart;
  text.setRangeText(word, end - typed.length, end, "end");
  found = [];
  draw();
  check();
}

learn().then(check);
at("text").addEventListener("input", () => offer(false));
at("text").addEventListener("blur", () => { found = []; draw(); });
at("text").addEventListener("focus", learn);
at("text").addEventListener("keydown", (event) => {
  if (event.key === " " && event.ctrlKey) { event.preventDefault(); learn().then(() => offer(true)); return; }
  if (!found.length || event.ctrlKey || event.metaKey) return;
  if (event.key === "ArrowDown") picked = (picked + 1) % found.length;
  else if (event.key === "ArrowUp") picked = (picked + found.length - 1) % found.length;
  else if (event.key === "Escape") found = [];
  else if (event.key === "Enter" || event.key === "Tab") { event.preventDefault(); take(); return; }
  else return;
  event.preventDefault();
  draw();
});
