// Every screen has its address. A page is a function that fills the main element; what it leaves running is stopped.
import { fill } from "./dom.js";
import { forget, refocus } from "./focus.js";
import { trouble } from "./parts.js";

const routes = [];
let leaving = [];
let shown = 0;
let shownPath = null;

export function route(pattern, load) {
  const names = [];
  const expression = new RegExp(`^${pattern.replace(/:(\w+)/g, (_, name) => { names.push(name); return "([^/]+)"; })}$`);
  routes.push({ expression, names, load });
}

export function go(address, { replace = false } = {}) {
  if (address === location.pathname + location.search) return;
  history[replace ? "replaceState" : "pushState"](null, "", address);
  show();
}

// Change the query of the address: {page: 2}; null removes.
export function withQuery(changes) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "" || value === undefined) query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  return location.pathname + (text ? `?${text}` : "");
}

// An address that somebody has typed may have a % of its own.
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function found() {
  for (const { expression, names, load } of routes) {
    const match = expression.exec(location.pathname);
    if (match) return { load, names: Object.fromEntries(names.map((name, at) => [name, decoded(match[at + 1])])) };
  }
  return null;
}

// Fetch the script of the page that will be shown, while something else is waited for; `show` tells what goes wrong.
export function prepare() {
  found()?.load().catch(() => null);
}

export async function show() {
  leaving.forEach((leave) => leave());
  leaving = [];
  const main = document.getElementById("main");
  const number = (shown += 1);
  dispatchEvent(new CustomEvent("page"));
  const here = found();
  if (!here) {
    fill(main, "404");
    return;
  }
  const context = {
    names: here.names,
    query: Object.fromEntries(new URLSearchParams(location.search)),
    onLeave: (leave) => (number === shown ? leaving.push(leave) : leave()),
    isShown: () => number === shown,
  };
  const root = document.createElement("div");
  const within = main.contains(document.activeElement);
  fill(main, root);
  if (shownPath !== location.pathname) forget(); // another page: nothing of the old one is looked for
  shownPath = location.pathname;
  if (within) main.focus({ preventScroll: true }); // Tab goes on in the page, not at its beginning
  try {
    await (await here.load())(root, context);
    if (context.isShown()) refocus(root);
  } catch (error) {
    root.querySelectorAll(".skeleton").forEach((each) => each.remove()); // nothing will come in its place
    root.append(trouble(error));
    if (!error.status && error.name !== "Refused") console.error(error);
  }
}

export function begin() {
  addEventListener("popstate", show);
  document.addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest("a[href]");
    if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
    const address = new URL(link.href);
    if (address.origin !== location.origin || link.target || address.pathname.startsWith("/api/") || address.hash) return;
    event.preventDefault();
    go(address.pathname + address.search);
    scrollTo(0, 0);
  });
  show();
}
