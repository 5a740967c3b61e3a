// The list of groups, and making a new one.
import { post, query, session } from "../api.js";
import { fill, h } from "../dom.js";
import { compact, count, duration, rate } from "../format.js";
import { follow } from "../live.js";
import { callout, dialog, dot, empty, field, head, pager, table } from "../parts.js";
import { go, withQuery } from "../router.js";
import { counted, t } from "../words.js";
import { places, whereField, withPlace } from "./where.js";

export const STATES = { online: "good", lagging: "warn", stopped: "bad", idle: "", unknown: "" };

export function show(root, context) {
  const wanted = { search: "", sort: "name", page: 1, system: "false", ...context.query };
  const trouble = h("div");
  const data = h("div", { class: "card flush" }, h("div", { class: "skeleton" }));
  root.append(
    head(t("Groups"), { actions: [h("button", { class: "primary", id: "create", onclick: create, disabled: !session.may_change, title: session.may_change ? "" : t("Log in to change things") }, t("Create group"))] }),
    h("div", { class: "bar" },
      h("input", { type: "search", value: wanted.search, placeholder: t("Filter by name"), "aria-label": t("Filter by name"), onchange: (event) => go(withQuery({ search: event.target.value, page: null })) }),
      h("label", { class: "check" }, h("input", { type: "checkbox", checked: wanted.system === "true", onchange: (event) => go(withQuery({ system: event.target.checked ? "true" : null, page: null })) }), t("those of the system"))),
    trouble, data);
  context.onLeave(follow(query("/api/groups", { ...wanted, size: 50 }), (answer) => {
    fill(trouble);
    fill(data, rows(answer, wanted), pager(Number(wanted.page), 50, answer.total, (page) => go(withQuery({ page }))));
  }, (text) => fill(trouble, callout(text, "bad"))));
}

// Of the last five minutes.
function trend(row) {
  if (!row.lag_change) return "";
  const says = t("{n} in the last minutes", { n: `${row.lag_change > 0 ? "+" : ""}${count(row.lag_change)}` });
  return row.lag_change > 0 ? h("span", { class: "before trend", title: says, style: { "text-decoration": "none" } }, " ▲") : h("span", { class: "after trend", title: says }, " ▼");
}

function rows(answer, wanted) {
  return table([
    { name: t("Name"), kind: "name", sort: "name", of: (row) => h("a", { href: `/groups/${encodeURIComponent(row.name)}` }, row.name) },
    { name: t("State"), of: (row) => dot(t(row.state), STATES[row.state]) },
    { name: t("Clients"), kind: "number", of: (row) => count(row.clients) },
    { name: t("Topics"), kind: "soft", sort: "topics", of: (row) => (row.topics.length > 2 ? counted(row.topics.length, "{n} topic", "{n} topics") : row.topics.join(", ")) },
    { name: t("Lag"), kind: "number", sort: "lag", of: (row) => [row.lag ? h("b", null, compact(row.lag)) : "0", trend(row)] },
    { name: t("Time lag"), kind: "number", sort: "late", of: (row) => duration(row.late_ms) },
    { name: t("Out/s"), kind: "number", sort: "out", of: (row) => rate(row.out_per_second) },
    { name: t("Retries"), kind: "number", sort: "retries", of: (row) => (row.retries ? h("a", { href: `/groups/${encodeURIComponent(row.name)}?tab=retries` }, count(row.retries)) : "0") },
    { name: t("Dead letters"), kind: "number", of: (row) => (row.dead_letters ? h("a", { href: `/dead-letters/${encodeURIComponent(row.name)}` }, count(row.dead_letters)) : "0") },
    { name: t("Mode"), kind: "soft", of: (row) => (row.mode ? t(row.mode) : "–") },
  ], answer.rows, { sort: wanted.sort, onSort: (sort) => go(withQuery({ sort, page: null })), nothing: empty(t("No group"), t("A group appears when its first client subscribes, or when it is created here.")) });
}

async function create() {
  const found = await places();
  if (!found) return;
  dialog({
    title: t("Create group"),
    action: t("Create group"),
    body: [
      field({ name: "name", label: t("Name"), required: true, placeholder: "billing" }),
      h("div", { class: "form-row" },
        field({ name: "retry_max_times", label: t("Attempts before a dead letter"), type: "number", value: 16, min: 0 }),
        field({ name: "retry_queues", label: t("Retry queues"), type: "number", value: 1, min: 1 })),
      whereField(found),
      field({ name: "consumes_orderly", label: t("Pops in order"), type: "checkbox" }),
      field({ name: "may_consume_broadcast", label: t("May broadcast (every client gets every message)"), type: "checkbox", value: true }),
    ],
    act: async (values) => {
      const done = await post("/api/groups", withPlace(values));
      go(`/groups/${encodeURIComponent(values.name)}`);
      return done.done;
    },
  });
}
