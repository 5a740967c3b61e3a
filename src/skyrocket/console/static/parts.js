// What pages are made of: figures, tables, badges, tabs, dialogs, notices.
import { Refused } from "./api.js";
import { fill, h } from "./dom.js";
import { returning } from "./focus.js";
import { count } from "./format.js";
import { icon } from "./icons.js";
import { counted, t } from "./words.js";

export function figure(name, value, { unit = "", says = "", extra = null, href = null } = {}) {
  const inner = [h("div", { class: "name" }, name), h("div", { class: "value" }, value, unit && h("small", null, unit)), h("div", { class: "says" }, says), extra];
  return h("div", { class: "card figure" }, href ? h("a", { href, class: "plain" }, inner) : inner);
}

export const badge = (text, kind = "") => h("span", { class: `badge ${kind}` }, text);

export const dot = (text, kind) => h("span", { class: `badge ${kind}` }, h("i", { class: "dot" }), text);

export function meter(ratio) {
  if (ratio === null || ratio === undefined) return h("span", { class: "faint" }, "–");
  const kind = ratio >= 0.85 ? "bad" : ratio >= 0.75 ? "warn" : "";
  return h("span", { class: "meter-box" }, h("span", { class: `meter ${kind}` }, h("i", { style: { width: `${Math.min(ratio * 100, 100)}%` } })), `${Math.round(ratio * 100)} %`);
}

export function head(title, { crumb = null, says = "", actions = [] } = {}) {
  const before = crumb ? [h("a", { href: crumb.href, class: "crumb" }, crumb.text), h("span", { class: "crumb" }, " / ")] : null;
  document.title = `${title} · Skyrocket`;
  return h("div", { class: "page-head" }, h("h1", null, before, title), says && h("span", { class: "says" }, says), h("span", { class: "grow" }), actions);
}

export function tabs(base, chosen, names) {
  return h("div", { class: "tabs", role: "navigation" }, names.map(([key, text]) => h("a", { href: key ? `${base}?tab=${key}` : base, "aria-current": key === chosen ? "page" : null }, text)));
}

export function empty(title, says = "", action = null) {
  return h("div", { class: "empty" }, h("strong", null, title), says, action && h("div", { style: { "margin-top": "12px" } }, action));
}

// columns: [{name, of(row), kind: "number"|"name"|…, sort: key}]
export function table(columns, rows, { sort = "", onSort = null, nothing = null } = {}) {
  if (!rows.length && nothing) return nothing;
  const title = (column) => {
    const classes = column.kind === "number" ? "number" : "";
    if (!column.sort || !onSort) return h("th", { class: classes }, column.name);
    const is = sort.replace("-", "") === column.sort;
    const next = is && sort.startsWith("-") ? column.sort : is ? `-${column.sort}` : column.kind === "number" ? `-${column.sort}` : column.sort;
    const arrow = is ? (sort.startsWith("-") ? " ↓" : " ↑") : "";
    return h("th", { class: classes, "aria-sort": is ? (sort.startsWith("-") ? "descending" : "ascending") : null }, h("button", { onclick: () => onSort(next) }, column.name + arrow));
  };
  return h("div", { class: "table-wrap" }, h("table", null,
    h("thead", null, h("tr", null, columns.map(title))),
    h("tbody", null, rows.map((row) => h("tr", null, columns.map((column) => h("td", { class: column.kind || "" }, column.of(row))))))));
}

export function pager(page, size, total, go) {
  const last = Math.max(1, Math.ceil(total / size));
  page = Math.min(Math.max(page, 1), last); // as the endpoint does
  if (last === 1) return h("div", { class: "pager" }, h("span", null, counted(total, "{n} row", "{n} rows", count(total))));
  return h("div", { class: "pager" },
    h("span", null, t("{from}–{to} of {n}", { from: count((page - 1) * size + 1), to: count(Math.min(page * size, total)), n: count(total) })),
    h("span", { class: "grow" }),
    h("button", { class: "small", disabled: page <= 1, onclick: () => go(page - 1) }, t("Back")),
    h("span", null, `${page} / ${last}`),
    h("button", { class: "small", disabled: page >= last, onclick: () => go(page + 1) }, t("Next")));
}

export const callout = (text, kind = "") => h("div", { class: `callout ${kind}`, role: kind === "bad" ? "alert" : null }, text);

export function facts(rows) {
  return h("dl", { class: "facts" }, rows.map(([name, value]) => [h("dt", null, name), h("dd", null, value === "" || value === null || value === undefined ? "–" : value)]));
}

export function notice(text, kind = "good") {
  const close = h("button", { class: "quiet small", "aria-label": t("Close"), onclick: () => box.remove() }, icon("close"));
  const box = h("div", { class: `notice ${kind}` }, h("span", null, text), close);
  document.getElementById("notices").append(box);
  setTimeout(() => box.remove(), kind === "bad" ? 15000 : 5000);
}

export function trouble(error) {
  return callout(error.message || String(error), "bad");
}

// Fields: [{name, label, hint, type, value, options, rows}]
export function field({ name, label, hint = "", type = "text", value = "", options = null, required = false, placeholder = "", min = null, max = null }) {
  let input;
  if (options) input = h("select", { name }, options.map((option) => {
    const [key, text] = Array.isArray(option) ? option : [option, option];
    return h("option", { value: key, selected: String(key) === String(value) }, text);
  }));
  else if (type === "textarea") input = h("textarea", { name, value, placeholder, required });
  else if (type === "checkbox") return h("label", { class: "check" }, h("input", { type, name, checked: Boolean(value) }), label);
  else input = h("input", { name, type, value, placeholder, required, min, max, autocomplete: type === "password" ? "current-password" : "off", step: type === "datetime-local" ? 1 : null });
  return h("label", { class: "field" }, label, input, hint && h("span", { class: "hint" }, hint));
}

export function valuesOf(form) {
  const found = {};
  for (const input of form.querySelectorAll("input[name], select[name], textarea[name]")) {
    if (input.type === "checkbox") found[input.name] = input.checked;
    else if (input.type === "number") found[input.name] = input.value === "" ? null : Number(input.value);
    else if (input.type !== "radio" || input.checked) found[input.name] = input.value;
  }
  return found;
}

// A dialog that does one thing. `act` gets the values and returns what to say, or null to stay open.
export function dialog({ title, body, action = null, kind = "primary", act = null, wide = false }) {
  const problem = h("div");
  const done = h("button", { class: kind, type: "submit" }, action);
  const form = h("form", { method: "dialog" },
    h("div", { class: "dialog-head" }, h("h2", null, title), h("button", { class: "quiet small", type: "button", "aria-label": t("Close"), onclick: () => box.close() }, icon("close"))),
    h("div", { class: "dialog-body" }, body, problem),
    h("div", { class: "dialog-foot" }, h("button", { type: "button", onclick: () => box.close() }, action ? t("Cancel") : t("Close")), action && done));
  const box = h("dialog", { class: wide ? "wide" : "" }, form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!act) return;
    done.disabled = true;
    try {
      const says = await act(valuesOf(form), box);
      if (says !== null) {
        box.close();
        if (says) notice(says);
      }
    } catch (error) {
      fill(problem, trouble(error));
      if (!(error instanceof Refused)) throw error;
    } finally {
      done.disabled = false;
    }
  });
  const back = returning();
  box.addEventListener("close", () => { box.remove(); back(); });
  document.body.append(box);
  box.showModal();
  return box;
}

// Type the name to go on: for what cannot be undone.
export function confirmByName({ title, effects, name, action, act }) {
  return dialog({
    title,
    kind: "primary danger",
    action,
    body: [effects, field({ name: "confirm", label: t("Type {name} to confirm", { name }), placeholder: name })],
    act: async (values, box) => {
      if (values.confirm !== name) throw new Refused(0, { error: t("The name is not the same.") });
      return act(values, box);
    },
  });
}
