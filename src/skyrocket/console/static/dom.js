// Elements made of text and other elements: nothing from a message, a name or a property is ever read as HTML.
import { noteFocus, refocus } from "./focus.js";

const SVG = "http://www.w3.org/2000/svg";

export function h(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.entries(value).forEach(([property, to]) => element.style.setProperty(property, to));
    else if (name === "value" || name === "checked" || name === "disabled" || name === "selected") element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(element, child);
    else element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

// Pages are drawn anew while people are in them: who has come to a link by keys, or has scrolled a wide table, stays there.
export function fill(element, ...children) {
  noteFocus(element);
  const scrolled = [...element.querySelectorAll(".table-wrap")].map((wrap) => wrap.scrollLeft);
  element.replaceChildren();
  append(element, children);
  if (scrolled.some(Boolean)) element.querySelectorAll(".table-wrap").forEach((wrap, at) => { wrap.scrollLeft = scrolled[at] || 0; });
  refocus(element);
  return element;
}
