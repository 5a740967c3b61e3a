// Where the keyboard is, when what it was on is drawn anew: on the new one of the same name.
const STOPS = "a[href], button, input, select, textarea, summary";

let lost = null;
// A key or a click is a new wish.
for (const kind of ["keydown", "pointerdown"]) addEventListener(kind, forget, true);

export function forget() {
  lost = null;
}

// Buttons of a table have the same words in every row; an arrow says how a column is sorted.
function nameOf(stop) {
  const row = stop.closest("tr")?.querySelector("td.name, td.mono");
  const own = [stop.tagName, stop.id, ...["href", "name", "aria-label"].map((each) => stop.getAttribute(each)), stop.textContent.replace(/ [↑↓]$/, "")];
  return JSON.stringify([...own, row ? row.textContent : ""]);
}

function alike(element, name) {
  return [...element.querySelectorAll(STOPS)].filter((stop) => nameOf(stop) === name);
}

// Before the contents of an element go away.
export function noteFocus(element) {
  const stop = document.activeElement;
  if (!stop || stop === element || !element.contains(stop) || !stop.matches(STOPS)) return;
  const name = nameOf(stop);
  lost = { stop, name, at: alike(element, name).indexOf(stop) };
}

// After new ones have come; they may come later, and elsewhere.
export function refocus(element) {
  const now = document.activeElement;
  if (!lost || (now && now !== document.body && now.id !== "main")) return;
  const found = element.contains(lost.stop) ? [lost.stop] : alike(element, lost.name);
  const stop = found[lost.at] || found[0];
  if (!stop) return;
  stop.focus({ preventScroll: true });
  lost = null;
}

// For a dialog: back to what has opened it, or to what stands in its place by then.
export function returning() {
  const stop = document.activeElement;
  if (!stop || !stop.matches(STOPS)) return () => null;
  const name = nameOf(stop);
  const at = alike(document.body, name).indexOf(stop);
  return () => {
    if (stop.isConnected) return; // the browser has done it
    lost = { stop, name, at };
    refocus(document.body);
  };
}
