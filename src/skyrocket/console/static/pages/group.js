// One group: lag with its history, members, subscriptions, retries, dead letters, configuration; moving it.
import { get, path, post, put, query, remove, session } from "../api.js";
import { fill, h } from "../dom.js";
import { chart } from "../chart.js";
import { ago, compact, count, duration, moment, rate } from "../format.js";
import { follow } from "../live.js";
import { badge, callout, confirmByName, dialog, dot, empty, field, figure, head, table, tabs, trouble as shownTrouble } from "../parts.js";
import { go } from "../router.js";
import { t } from "../words.js";
import { differencesTable } from "./differences.js";
import { STATES } from "./groups.js";
import { groupReading, moveGroup } from "./moving.js";

export function show(root, context) {
  const name = context.names.group;
  const tab = context.query.tab || "";
  const here = `/groups/${encodeURIComponent(name)}`;
  const locked = { disabled: !session.may_change, title: session.may_change ? "" : t("Log in to change things") };
  let page = null;
  const state = h("span");
  const trouble = h("div");
  const figures = h("div", { class: "grid" });
  const body = h("div");
  const acting = [ // with what is known of the group: not before
    h("button", { id: "reset", onclick: () => moveGroup({ groups: [name], topics: topicsOf(page) }) }, t("Reset offsets")),
    h("button", { id: "skip", onclick: () => moveGroup({ groups: [name], topics: topicsOf(page), skip: true }) }, t("Skip")),
    h("button", { id: "clone", onclick: () => clone(name, page) }, t("Copy offsets")),
    h("button", { class: "danger", id: "delete", onclick: () => destroy(name, page) }, t("Delete")),
  ];
  acting.forEach((button) => { button.disabled = true; button.title = locked.title; });
  root.append(
    head(name, { crumb: { text: t("Groups"), href: "/groups" }, actions: [state, acting] }),
    tabs(here, tab, [["", t("Lag")], ["clients", t("Clients")], ["subscriptions", t("Subscriptions")], ["retries", t("Retries")], ["dead-letters", t("Dead letters")], ["config", t("Configuration")]]),
    trouble, figures, body);
  const table_ = h("div");
  if (tab === "") body.append(historyCard(name, context.query.hours || "1"), h("div", { style: { height: "16px" } }), table_);
  if (tab === "clients") import("./group_members.js").then(({ members }) => members(body, name)).catch((error) => fill(body, shownTrouble(error)));
  if (tab === "subscriptions") {
    const check = h("div", { style: { "margin-bottom": "16px" } });
    body.append(check, table_);
    import("./group_members.js").then(async ({ agreement }) => fill(check, agreement(await get(`${path("groups", name)}/members`)))).catch((error) => fill(check, shownTrouble(error)));
  }
  if (tab === "retries") import("./group_retries.js").then(({ retries }) => retries(body, name)).catch((error) => fill(body, shownTrouble(error)));
  if (tab === "dead-letters") import("./dead_letters_of_group.js").then(({ letters }) => letters(body, name, context.query)).catch((error) => fill(body, shownTrouble(error)));
  context.onLeave(follow(path("groups", name), (answer) => {
    page = answer;
    acting.forEach((button) => { button.disabled = locked.disabled; });
    fill(trouble);
    fill(state, dot(t(answer.row.state), STATES[answer.row.state]));
    fill(figures,
      figure(t("Lag"), compact(answer.row.lag), { unit: t("messages"), says: answer.row.out_per_second && answer.row.lag ? t("gone in about {time} at this rate, if nothing new came", { time: duration((answer.row.lag / answer.row.out_per_second) * 1000) }) : "" }),
      figure(t("Time lag"), duration(answer.row.late_ms)),
      figure(t("Out"), rate(answer.row.out_per_second), { unit: t("msg/s") }),
      figure(t("Clients"), count(answer.row.clients), { says: [t(answer.row.mode), answer.consume_type === "CONSUME_ACTIVELY" ? t("pull") : "", FROM[answer.consume_from] ? t(FROM[answer.consume_from]) : ""].filter(Boolean).join(", ") }),
      figure(t("Dead letters"), count(answer.row.dead_letters), { href: `${here}?tab=dead-letters` }));
    if (tab === "") fill(table_, queues(answer, name, locked));
    if (tab === "subscriptions") fill(table_, subscriptions(answer, name, locked));
    if (tab === "config") fill(body, config(answer, name, locked));
  }, (text) => fill(trouble, callout(text, "bad"))));
}

// Where a member begins that finds no offset of its group.
const FROM = {
  CONSUME_FROM_LAST_OFFSET: "new ones from the end",
  CONSUME_FROM_FIRST_OFFSET: "new ones from the beginning",
  CONSUME_FROM_TIMESTAMP: "new ones from a time",
};

const topicsOf = (page) => [...new Set([...page.row.topics, ...page.queues.map((queue) => queue.topic)])];

function historyCard(name, hours) {
  const place = h("div");
  const card = h("div", { class: "card" }, h("div", { class: "card-head" }, h("h2", null, t("Lag over time")), h("span", { class: "grow" }),
    [["1", t("1 hour")], ["24", t("24 hours")], ["168", t("7 days")]].map(([each, text]) => h("button", { class: each === hours ? "small primary" : "small", onclick: () => go(query(location.pathname, { hours: each })) }, text))), place);
  const series = (kind) => get(query("/api/history", { series: `${kind}:group:${name}`, hours }));
  Promise.all([series("lag"), series("out")]).then(([lag, out]) => fill(place, lag.samples.length
    ? chart([{ name: t("Lag"), kind: "lag", samples: lag.samples }], lag.from_ms, lag.to_ms)
    : empty(t("No samples yet"), t("One is taken each minute while the console runs.")),
  out.samples.length > 1 && h("div", null, h("h2", null, t("Consumed per second")), chart([{ name: t("Out"), kind: "out", samples: out.samples }], out.from_ms, out.to_ms, rate))))
    .catch((error) => fill(place, shownTrouble(error)));
  return card;
}

function queues(answer, name, locked) {
  return h("div", { class: "card flush" }, table([
    { name: t("Topic"), kind: "name", of: (row) => h("a", { href: `/topics/${encodeURIComponent(row.topic)}` }, row.topic) },
    { name: t("Broker"), kind: "soft", of: (row) => row.broker },
    { name: t("Queue"), kind: "number", of: (row) => row.queue },
    { name: t("Broker's offset"), kind: "number", of: (row) => count(row.broker_offset) },
    { name: t("Group's offset"), kind: "number", of: (row) => count(row.consumer_offset) },
    { name: t("Lag"), kind: "number", of: (row) => (row.lag ? h("b", null, count(row.lag)) : "0") },
    { name: t("Last consumed"), kind: "soft", of: (row) => (row.last_consumed_ms ? `${moment(row.last_consumed_ms)} (${ago(row.last_consumed_ms)})` : "–") },
    { name: "", kind: "actions", of: (row) => h("button", { class: "small quiet", onclick: () => move(name, row), ...locked }, t("Move")) },
  ], answer.queues, { nothing: empty(t("No offsets"), t("The group has not consumed anything yet.")) }));
}

function subscriptions(answer, name, locked) {
  return h("div", { class: "card flush" }, table([
    { name: t("Topic"), kind: "name", of: (row) => h("a", { href: `/topics/${encodeURIComponent(row.topic)}` }, row.topic) },
    { name: t("Filter"), kind: "mono", of: (row) => row.expression },
    { name: t("Kind"), of: (row) => badge(row.kind) },
    { name: "", kind: "actions", of: (row) => [
      h("button", { class: "small", onclick: () => groupReading(name, row.topic, false), ...locked }, t("Pause reading")), " ",
      h("button", { class: "small", onclick: () => groupReading(name, row.topic, true), ...locked }, t("Resume"))] },
  ], answer.subscriptions, { nothing: empty(t("No subscription"), t("Clients tell theirs when they connect.")) }));
}

const FIELDS = [["may_consume", "May consume"], ["may_consume_broadcast", "May broadcast"], ["consumes_orderly", "Pops in order"], ["retry_max_times", "Attempts before a dead letter"], ["retry_queues", "Retry queues"], ["consume_timeout_minutes", "Minutes a handler may take"]];

function config(answer, name, locked) {
  if (!answer.configs.length) return empty(t("No configuration"), t("No broker knows this group by name; its members use the defaults."));
  const shown = (value) => (typeof value === "boolean" ? (value ? t("yes") : t("no")) : count(value));
  return h("div", { class: "stack" },
    h("div", { class: "bar" }, h("span", { class: "grow" }), h("button", { id: "edit", onclick: () => edit(name, answer.configs[0]), ...locked }, t("Change"))),
    h("div", { class: "card flush" }, table([
      { name: t("Broker"), kind: "name", of: (row) => row.broker },
      ...FIELDS.map(([key, text]) => ({ name: t(text), of: (row) => shown(row[key]) })),
    ], answer.configs)));
}

function edit(name, first) {
  const plan = h("div");
  const wish = (values) => Object.fromEntries(FIELDS.map(([key]) => [key, values[key]]).filter(([key, value]) => value !== first[key]));
  const box = dialog({
    title: t("Change {name}", { name }),
    action: t("Apply"),
    body: [FIELDS.map(([key, text]) => field({ name: key, label: t(text), type: typeof first[key] === "boolean" ? "checkbox" : "number", value: first[key], min: 0 })), plan],
    act: async (values) => (await put(path("groups", name), wish(values))).done,
  });
  box.addEventListener("change", async () => {
    const values = Object.fromEntries(FIELDS.map(([key]) => { const input = box.querySelector(`[name=${key}]`); return [key, input.type === "checkbox" ? input.checked : Number(input.value)]; }));
    const found = await post(`${path("groups", name)}/preview`, wish(values)).catch((error) => error);
    fill(plan, found instanceof Error ? shownTrouble(found) : differencesTable(found.differences));
  });
}

function move(name, row) {
  const plan = h("div", { id: "plan" });
  const preview = (offset) => fill(plan, callout(t("Messages that would be skipped: {skipped}, consumed again: {repeated}.", { skipped: count(Math.max(Math.min(offset, row.broker_offset) - row.consumer_offset, 0)), repeated: count(Math.max(row.consumer_offset - offset, 0)) }), offset > row.consumer_offset ? "bad" : "warn"));
  const box = dialog({
    title: t("Move queue {queue} of {broker}", row),
    action: t("Move"),
    kind: "primary danger",
    body: [callout(t("The group goes on at this offset; it is at {offset} now.", { offset: count(row.consumer_offset) }), "warn"), field({ name: "offset", label: t("Offset"), type: "number", value: row.consumer_offset, min: 0 }), plan],
    act: async (values) => (await post(`${path("groups", name)}/move`, { topic: row.topic, broker: row.broker, queue: row.queue, offset: values.offset })).done,
  });
  box.addEventListener("input", (event) => preview(Number(event.target.value)));
  preview(row.consumer_offset);
}

function clone(name, page) {
  dialog({
    title: t("Copy offsets of {name}", { name }),
    action: t("Copy offsets"),
    body: [
      callout(t("The other group goes on in the topic where this one is. Its clients must not run: they would overwrite it."), "warn"),
      field({ name: "topic", label: t("Topic"), options: page.row.topics }),
      field({ name: "target", label: t("To group"), required: true })],
    act: async (values) => (await post(`${path("groups", name)}/clone`, values)).done,
  });
}

function destroy(name, page) {
  confirmByName({
    title: t("Delete {name}", { name }),
    name,
    action: t("Delete group"),
    effects: callout(t("Its offsets are lost. Messages that wait for it: {lag}, connected clients: {clients}. Retries and dead letters stay.", { lag: count(page.row.lag), clients: count(page.row.clients) }), page.row.clients ? "bad" : "warn"),
    act: async () => {
      const done = await remove(path("groups", name));
      go("/groups");
      return done.done;
    },
  });
}
