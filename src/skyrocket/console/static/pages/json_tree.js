// A JSON value that can be folded; every piece is text.
import { h } from "../dom.js";

const MOST = 500;

// A number as it is written: browsers round ids beyond 2^53.
class Written {
  constructor(text) {
    this.text = text;
  }
}

// An object or a list, for the tree; null for what is none, or no JSON.
export function parsedTree(text) {
  try {
    // Older browsers do not tell the source: there numbers are as they can be.
    const value = JSON.parse(text, (_, each, context) => (typeof each === "number" && context ? new Written(context.source) : each));
    return value instanceof Written || typeof value !== "object" ? null : value;
  } catch {
    return null;
  }
}

export function jsonTree(value, name = null, depth = 0) {
  const key = name === null ? null : [h("span", { class: "json-key" }, JSON.stringify(name)), ": "];
  if (value instanceof Written) return h("div", null, key, h("span", { class: "json-number" }, value.text));
  if (value === null || typeof value !== "object") {
    const kind = typeof value === "string" ? "text" : typeof value === "number" ? "number" : "word";
    return h("div", null, key, h("span", { class: `json-${kind}` }, JSON.stringify(value)));
  }
  const entries = Array.isArray(value) ? value.map((each, at) => [at, each]) : Object.entries(value);
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  if (!entries.length) return h("div", null, key, open + close);
  const shown = entries.slice(0, MOST).map(([each, inner]) => jsonTree(inner, Array.isArray(value) ? null : each, depth + 1));
  return h("details", { open: depth < 3 }, h("summary", null, key, open, h("span", { class: "faint" }, ` ${entries.length} `), close), shown, entries.length > MOST && h("div", { class: "faint" }, "…"));
}
