// The list of topics, and making a new one.
import { post, query, session } from "../api.js";
import { fill, h } from "../dom.js";
import { ago, compact, count, rate } from "../format.js";
import { follow } from "../live.js";
import { badge, callout, dialog, empty, field, head, pager, table } from "../parts.js";
import { go, withQuery } from "../router.js";
import { counted, t } from "../words.js";
import { places, whereField, withPlace } from "./where.js";

export const KINDS = { FIFO: "accent", DELAY: "note", TRANSACTION: "warn", DLQ: "bad", RETRY: "warn", SYSTEM: "", NORMAL: "" };

export const PERMISSIONS = { 6: "read and write", 4: "read only", 2: "write only", 0: "closed", 7: "read and write", 3: "write only", 5: "read only" };

const EXPLAINED = {
  NORMAL: "Messages of any order; the usual choice.",
  FIFO: "Messages with the same sharding key keep their order: they lie in one queue, which one client of a group reads at a time. A message that fails holds up those behind it.",
  DELAY: "Messages that are delivered later: each has its delay, or its time. They can be taken back until then.",
  TRANSACTION: "Messages that become visible when their producer commits. A producer that says nothing is asked again and again, and given up in the end.",
  MIXED: "All kinds in one topic; brokers check nothing.",
};

export function show(root, context) {
  const wanted = { search: "", kind: "own", sort: "name", page: 1, ...context.query };
  const trouble = h("div");
  const data = h("div", { class: "card flush" }, h("div", { class: "skeleton" }));
  const search = h("input", { type: "search", name: "search", value: wanted.search, placeholder: t("Filter by name"), "aria-label": t("Filter by name"), onchange: (event) => go(withQuery({ search: event.target.value, page: null })) });
  const kind = h("select", { "aria-label": t("Kind"), onchange: (event) => go(withQuery({ kind: event.target.value, page: null })) },
    [["own", t("Of applications")], ["all", t("All")], ["NORMAL", "Normal"], ["FIFO", "FIFO"], ["DELAY", "Delay"], ["TRANSACTION", "Transaction"], ["MIXED", "Mixed"], ["PRIORITY", "Priority"], ["LITE", "Lite"], ["RETRY", "Retry"], ["DLQ", "Dead letter"], ["SYSTEM", t("System")]].map(([key, text]) => h("option", { value: key, selected: key === wanted.kind }, text)));
  root.append(head(t("Topics"), { actions: [h("button", { class: "primary", id: "create", onclick: create, disabled: !session.may_change, title: session.may_change ? "" : t("Log in to change things") }, t("Create topic"))] }),
    h("div", { class: "bar" }, search, kind), trouble, data);
  context.onLeave(follow(query("/api/topics", { search: wanted.search, kind: wanted.kind, sort: wanted.sort, page: wanted.page, size: 50 }), (answer) => {
    fill(trouble);
    fill(data, rows(answer, wanted), pager(Number(wanted.page), 50, answer.total, (page) => go(withQuery({ page }))));
  }, (text) => fill(trouble, callout(text, "bad"))));
}

function rows(answer, wanted) {
  return table([
    { name: t("Name"), kind: "name", sort: "name", of: (row) => h("a", { href: `/topics/${encodeURIComponent(row.name)}` }, row.name) },
    { name: t("Kind"), sort: "kind", of: (row) => badge(row.kind, KINDS[row.kind]) },
    { name: t("Queues"), kind: "number", sort: "queues", of: (row) => (row.read_queues === row.write_queues ? count(row.read_queues) : `${row.read_queues} / ${row.write_queues}`) },
    { name: t("In/s"), kind: "number", sort: "in", of: (row) => rate(row.in_per_second) },
    { name: t("Out/s"), kind: "number", sort: "out", of: (row) => rate(row.out_per_second) },
    { name: t("Messages"), kind: "number", sort: "messages", of: (row) => compact(row.messages) },
    { name: t("Oldest"), kind: "soft", of: (row) => ago(row.oldest_ms) },
    { name: t("Newest"), kind: "soft", sort: "newest", of: (row) => ago(row.newest_ms) },
    { name: t("Groups"), kind: "number", sort: "groups", of: (row) => count(row.groups) },
    { name: t("Lag"), kind: "number", sort: "lag", of: (row) => (row.lag ? h("b", null, compact(row.lag)) : "0") },
    { name: t("Brokers"), kind: "soft", of: (row) => (row.brokers.length > 2 ? counted(row.brokers.length, "{n} broker", "{n} brokers") : row.brokers.join(", ")) },
  ], answer.rows, { sort: wanted.sort, onSort: (sort) => go(withQuery({ sort, page: null })), nothing: empty(t("No topic"), t("Nothing here has this name and kind.")) });
}

async function create() {
  const found = await places();
  if (!found) return;
  const kept = found.retention_hours;
  const hours = kept.length > 1 ? `${kept[0]}–${kept.at(-1)}` : kept[0];
  const says = h("span", { class: "hint" }, t(EXPLAINED.NORMAL));
  const body = [
    field({ name: "name", label: t("Name"), required: true, placeholder: "Orders", hint: t("Letters, digits, _ and -; it cannot be renamed.") }),
    h("div", { class: "form-row" },
      field({ name: "kind", label: t("Kind of messages"), options: Object.keys(EXPLAINED) }),
      field({ name: "queues", label: t("Queues per broker"), type: "number", value: 8, min: 1, max: 4096, hint: t("As many clients of a group can share the work.") })),
    says,
    h("div", { class: "form-row" },
      field({ name: "permission", label: t("Permission"), options: [[6, t("read and write")], [4, t("read only")], [2, t("write only")]] }),
      whereField(found)),
    h("p", { class: "hint", id: "retention" }, kept.length ? t("Retention: brokers keep the messages of all topics for {hours} hours (fileReservedTime), consumed or not.", { hours }) : t("Retention: fileReservedTime of the brokers, for all topics alike.")),
  ];
  const box = dialog({
    title: t("Create topic"),
    action: t("Create topic"),
    body,
    act: async (values) => {
      const done = await post("/api/topics", { ...withPlace(values), permission: Number(values.permission) });
      go(`/topics/${encodeURIComponent(values.name)}`);
      return done.done;
    },
  });
  box.querySelector("[name=kind]").addEventListener("change", (event) => fill(says, t(EXPLAINED[event.target.value])));
}
