// One topic: its messages, queues, groups, producers, route, configuration and rights.
import { get, path, post, put, remove, session } from "../api.js";
import { fill, h } from "../dom.js";
import { chart } from "../chart.js";
import { ago, compact, count, duration, moment, rate } from "../format.js";
import { follow } from "../live.js";
import { badge, callout, confirmByName, dialog, empty, facts, field, figure, head, notice, table, tabs, trouble as shownTrouble } from "../parts.js";
import { go, show as reload } from "../router.js";
import { counted, t } from "../words.js";
import { KINDS, PERMISSIONS } from "./topics.js";
import { differencesTable } from "./differences.js";
import { messageSearch } from "./messages.js";
import { groupReading, moveGroup } from "./moving.js";
import { copyTopic, followCopies, pausedOn, topicReading } from "./topic_actions.js";

export function show(root, context) {
  const name = context.names.topic;
  const tab = context.query.tab || "";
  const here = `/topics/${encodeURIComponent(name)}`;
  const trouble = h("div");
  const data = h("div");
  const kind = h("span");
  const paused = h("div");
  let shut = [];
  const copies = h("div");
  const lookAtCopies = followCopies(copies, name, context.onLeave);
  const groupNames = async () => (await get(`${path("topics", name)}/impact`)).groups.map((row) => row.group);
  const move = (skip) => groupNames().then((groups) => moveGroup({ groups, topics: [name], skip })).catch((error) => notice(error.message, "bad"));
  const locked = { disabled: !session.may_change, title: session.may_change ? "" : t("Log in to change things") };
  const reading = h("button", { id: "reading", onclick: () => topicReading(name, shut.length > 0, reload), ...locked }, t("Pause reading"));
  root.append(
    head(name, { crumb: { text: t("Topics"), href: "/topics" }, actions: [
      kind,
      h("a", { class: "button", href: `${here}/tail` }, t("Live tail")),
      h("button", { id: "send", onclick: () => send(name), ...locked }, t("Send message")),
      h("button", { id: "reset", onclick: () => move(false), ...locked }, t("Reset offsets")),
      h("button", { id: "skip", onclick: () => move(true), ...locked }, t("Skip")),
      reading,
      h("button", { id: "copy", onclick: () => copyTopic(name, lookAtCopies), ...locked }, t("Copy")),
      h("button", { class: "danger", id: "delete", onclick: () => destroy(name), ...locked }, t("Delete")),
    ] }),
    tabs(here, tab, [["", t("Messages")], ["queues", t("Queues")], ["groups", t("Groups")], ["producers", t("Producers")], ["route", t("Route")], ["config", t("Configuration")], ["statistics", t("Statistics")], ["rights", t("Rights")]]),
    trouble, paused, copies, data);
  const figures = h("div", { class: "grid" });
  const body = h("div");
  data.append(figures, body);
  if (tab === "") messageSearch(body, { ...context, fixedTopic: name });
  const spans = {};
  let drawQueues = () => null;
  if (tab === "queues") get(`${path("topics", name)}/spans`).then((found) => {
    for (const row of found.rows) spans[`${row.broker} ${row.queue}`] = row.oldest_ms;
    drawQueues();
  }).catch((error) => fill(trouble, shownTrouble(error)));
  if (tab === "statistics") statistics(body, name).catch((error) => body.append(shownTrouble(error)));
  if (["producers", "route", "rights"].includes(tab)) import("./topic_places.js").then(({ TABS }) => TABS[tab](body, name)).catch((error) => fill(body, shownTrouble(error)));
  context.onLeave(follow(path("topics", name), (answer) => {
    fill(trouble);
    fill(kind, badge(answer.kind, KINDS[answer.kind]));
    fill(figures,
      figure(t("In"), rate(answer.in_per_second), { unit: t("msg/s") }),
      figure(t("Messages"), compact(answer.messages), { says: t("newest {when}", { when: ago(answer.newest_ms) }) }),
      figure(t("Waiting for groups"), compact(answer.lag), { says: counted(answer.groups.length, "in {n} group", "in {n} groups", count(answer.groups.length)) }),
      figure(t("Queues"), count(answer.queues.length), { says: counted(answer.configs.length, "on {n} broker", "on {n} brokers") }));
    shut = pausedOn(answer.configs);
    fill(paused, shut.length > 0 && callout(t("Reading is paused on {brokers}: nobody reads this topic there, these pages neither.", { brokers: shut.join(", ") }), "warn"));
    fill(reading, shut.length ? t("Resume reading") : t("Pause reading"));
    drawQueues = () => tab === "queues" && fill(body, queues(answer, spans));
    drawQueues();
    if (tab === "groups" && !document.querySelector("dialog[open]")) fill(body, groups(answer, name, locked));
    if (tab === "config" && !document.querySelector("dialog[open]")) fill(body, config(answer, name, locked));
  }, (text) => fill(trouble, callout(text, "bad"))));
}

function queues(answer, spans) {
  const most = Math.max(1, ...answer.queues.map((queue) => queue.messages));
  const average = answer.queues.reduce((sum, queue) => sum + queue.messages, 0) / Math.max(1, answer.queues.length);
  const oldest = (row) => spans[`${row.broker} ${row.queue}`];
  return h("div", { class: "card flush", id: "queues" }, table([
    { name: t("Broker"), kind: "name", of: (row) => row.broker },
    { name: t("Queue"), kind: "number", of: (row) => row.queue },
    { name: t("First offset"), kind: "number", of: (row) => count(row.min_offset) },
    { name: t("Next offset"), kind: "number", of: (row) => count(row.max_offset) },
    { name: t("Messages"), kind: "number", of: (row) => count(row.messages) },
    { name: t("In/s"), kind: "number", of: (row) => rate(row.in_per_second) },
    { name: t("Share"), of: (row) => h("span", { class: "meter" }, h("i", { style: { width: `${(row.messages / most) * 100}%` } })) },
    { name: t("Of the average"), kind: "number", of: (row) => (average ? `${(row.messages / average).toFixed(2)} ×` : "–") },
    { name: t("Newest"), kind: "soft", of: (row) => moment(row.newest_ms) },
    { name: t("Reaches back"), kind: "number", of: (row) => (oldest(row) ? h("span", { title: moment(oldest(row)) }, duration(Date.now() - oldest(row))) : "–") },
  ], answer.queues, { nothing: empty(t("No queues")) }));
}

function groups(answer, name, locked) {
  return h("div", { class: "card flush", id: "groups" }, table([
    { name: t("Group"), kind: "name", of: (row) => h("a", { href: `/groups/${encodeURIComponent(row.group)}` }, row.group) },
    { name: t("Clients"), kind: "number", of: (row) => count(row.clients) },
    { name: t("Lag"), kind: "number", of: (row) => count(row.lag) },
    { name: t("Time lag"), kind: "number", of: (row) => duration(row.late_ms) },
    { name: t("Out/s"), kind: "number", of: (row) => rate(row.out_per_second) },
    { name: "", kind: "actions", of: (row) => [
      h("button", { class: "small", onclick: () => moveGroup({ groups: [row.group], topics: [name] }), ...locked }, t("Reset offsets")), " ",
      h("button", { class: "small", onclick: () => moveGroup({ groups: [row.group], topics: [name], skip: true }), ...locked }, t("Skip")), " ",
      h("button", { class: "small", onclick: () => groupReading(row.group, name, false), ...locked }, t("Pause reading")), " ",
      h("button", { class: "small", onclick: () => groupReading(row.group, name, true), ...locked }, t("Resume"))] },
  ], answer.groups, { nothing: empty(t("No group consumes it"), t("A group appears here when it subscribes.")) }));
}

function config(answer, name, locked) {
  return h("div", { class: "stack" },
    h("div", { class: "bar" }, h("span", { class: "grow" }), h("button", { id: "edit", onclick: () => edit(answer, name), ...locked }, t("Change"))),
    h("div", { class: "card flush" }, table([
      { name: t("Broker"), kind: "name", of: (row) => row.broker },
      { name: t("Address"), kind: "mono", of: (row) => h("a", { href: `/cluster/${encodeURIComponent(row.address)}` }, row.address) },
      { name: t("Read queues"), kind: "number", of: (row) => row.read_queues },
      { name: t("Write queues"), kind: "number", of: (row) => row.write_queues },
      { name: t("Permission"), of: (row) => t(PERMISSIONS[row.permission] || String(row.permission)) },
      { name: t("Ordered"), of: (row) => (row.ordered ? t("yes") : t("no")) },
      { name: t("Attributes"), kind: "mono", of: (row) => Object.entries(row.attributes).map(([key, value]) => `${key}=${value}`).join(" ") || "–" },
    ], answer.configs)));
}

function edit(answer, name) {
  const first = answer.configs[0];
  const plan = h("div");
  const wish = (values) => ({ read_queues: values.read_queues, write_queues: values.write_queues, permission: Number(values.permission) });
  const box = dialog({
    title: t("Change {name}", { name }),
    action: t("Apply"),
    body: [
      h("div", { class: "form-row" },
        field({ name: "read_queues", label: t("Read queues"), type: "number", value: first.read_queues, min: 1 }),
        field({ name: "write_queues", label: t("Write queues"), type: "number", value: first.write_queues, min: 1 }),
        field({ name: "permission", label: t("Permission"), options: [[6, t("read and write")], [4, t("read only")], [2, t("write only")]], value: first.permission })),
      h("span", { class: "hint faint" }, t("To have fewer queues: lower the write queues first, and the read queues when the others are empty.")),
      plan,
    ],
    act: async (values) => (await put(path("topics", name), wish(values))).done,
  });
  const preview = async () => {
    const found = await post(`${path("topics", name)}/preview`, wish({
      read_queues: Number(box.querySelector("[name=read_queues]").value),
      write_queues: Number(box.querySelector("[name=write_queues]").value),
      permission: box.querySelector("[name=permission]").value,
    })).catch((error) => error);
    fill(plan, found instanceof Error ? shownTrouble(found) : differencesTable(found.differences));
  };
  box.addEventListener("change", preview);
  preview();
}

async function statistics(body, name) {
  const canvas = h("div", { class: "card" }, h("h2", null, t("Messages per second, last 24 hours")));
  body.append(canvas);
  const history = await get(`/api/history?series=${encodeURIComponent(`in:topic:${name}`)}&hours=24`);
  canvas.append(history.samples.length ? chart([{ name: t("In"), kind: "in", samples: history.samples }], history.from_ms, history.to_ms, rate) : empty(t("No samples yet"), t("One is taken each minute while the console runs.")));
  const sample = h("div", { class: "halves" });
  body.append(h("div", { style: { height: "16px" } }), sample);
  const answer = await get(`${path("topics", name)}/statistics`);
  fill(sample,
    h("div", { class: "card" }, h("h2", null, counted(answer.messages, "Size of the newest message", "Sizes of the newest {n} messages", count(answer.messages))), facts([
      [t("smallest"), count(answer.smallest_bytes)], [t("median"), count(answer.median_bytes)], [t("99 of 100 are below"), count(answer.p99_bytes)], [t("largest"), count(answer.largest_bytes)], [t("with a key"), count(answer.with_key)], [t("compressed or bytes"), count(answer.not_text)]])),
    h("div", { class: "card flush" }, h("h2", null, t("Tags")), table([
      { name: t("Tag"), kind: "name", of: ([tag]) => tag || t("(none)") },
      { name: t("Messages"), kind: "number", of: ([, number]) => count(number) },
    ], Object.entries(answer.tags), { nothing: empty(t("No messages")) })));
}

export function send(topic, values = {}) {
  dialog({
    title: t("Send to {topic}", { topic }),
    action: t("Send message"),
    wide: true,
    body: [
      values.note && callout(values.note, "warn"),
      values.body_base64
        ? field({ name: "body_base64", label: t("Body in base64: it is no text"), type: "textarea", value: values.body_base64 })
        : field({ name: "body", label: t("Body"), type: "textarea", value: values.body || "", placeholder: '{"order": 1}' }),
      h("div", { class: "form-row" },
        field({ name: "tags", label: t("Tag"), value: values.tags || "" }),
        field({ name: "keys", label: t("Keys"), value: values.keys || "", hint: t("Separated by blanks") }),
        field({ name: "sharding_key", label: t("Sharding key"), value: values.sharding_key || "", hint: t("One key, one queue, in order") }),
        field({ name: "delay_seconds", label: t("Delay in seconds"), type: "number", min: 0 })),
      field({ name: "properties", label: t("Properties"), type: "textarea", value: values.properties || "", placeholder: "name=value", hint: t("One per line, as name=value") }),
    ],
    act: async (given) => {
      const properties = Object.fromEntries(given.properties.split("\n").filter((line) => line.includes("=")).map((line) => [line.slice(0, line.indexOf("=")).trim(), line.slice(line.indexOf("=") + 1)]));
      const sent = await post(`${path("topics", topic)}/messages`, { ...given, properties, delay_seconds: given.delay_seconds || null });
      notice(t("Sent: {id} to queue {queue} of {broker}", { id: sent.message_id, queue: sent.queue, broker: sent.broker }));
      return "";
    },
  });
}

async function destroy(name) {
  const impact = await get(`${path("topics", name)}/impact`).catch((error) => { notice(error.message, "bad"); return null; });
  if (!impact) return;
  confirmByName({
    title: t("Delete {name}", { name }),
    name,
    action: t("Delete topic"),
    effects: callout(h("div", null, counted(impact.messages, "{n} message is lost.", "{n} messages are lost.", count(impact.messages)), " ", impact.groups.length
      ? t("Groups that consume it: {groups}. Messages that still wait for them: {lag}. Connected clients: {clients}.", { groups: impact.groups.length, lag: count(impact.lag), clients: impact.clients })
      : t("No group consumes it.")), impact.clients || impact.lag ? "bad" : "warn"),
    act: async () => {
      const done = await remove(path("topics", name));
      go("/topics");
      return done.done;
    },
  });
}
