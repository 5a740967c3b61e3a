// Messages that wait for their time.
import { get, post, query, session } from "../api.js";
import { fill, h } from "../dom.js";
import { bars } from "../chart.js";
import { count, duration, moment } from "../format.js";
import { callout, dialog, empty, field, head, table, valuesOf } from "../parts.js";
import { go, show as reload, withQuery } from "../router.js";
import { t } from "../words.js";

export async function show(root, context) {
  const data = h("div", { class: "skeleton" });
  const form = h("form", { class: "bar", onsubmit: (event) => { event.preventDefault(); go(withQuery(valuesOf(form))); } },
    field({ name: "topic", label: t("Topic"), value: context.query.topic || "" }), field({ name: "key", label: t("Key or id"), value: context.query.key || "" }), h("button", null, t("Search")));
  root.append(head(t("Delayed"), { says: t("messages that wait for their time") }), form, data);
  const answer = await get(query("/api/timers", { topic: context.query.topic, key: context.query.key }));
  data.className = "stack";
  const rows = answer.rows;
  const steps = answer.histogram.map((step) => ({ label: t(step.within), value: step.messages }));
  fill(data,
    !answer.offered && callout(t("These brokers tell only how many wait: lists are known to Skyrocket's brokers alone."), "warn"),
    answer.rows.length > 0 && h("div", { class: "card", id: "due" }, h("h2", null, t("Due within")), bars(steps), !answer.is_complete && h("p", { class: "soft" }, t("Of the {n} that are due first.", { n: count(answer.looked_at) }))),
    answer.offered && h("div", { class: "card flush", id: "soonest" }, h("h2", null, rows.length === answer.looked_at ? t("Soonest first") : t("The next {n}", { n: rows.length })), table([
      { name: t("Due"), kind: "soft", of: (row) => `${moment(row.due_ms)} (${t("in {time}", { time: duration(Math.max(row.due_ms - Date.now(), 0)) })})` },
      { name: t("Topic"), kind: "name", of: (row) => row.topic },
      { name: t("Message id"), kind: "mono", of: (row) => row.message_id },
      { name: t("Keys"), kind: "mono roomy", of: (row) => row.keys.join(" ") },
      { name: "", kind: "actions", of: (row) => h("button", { class: "small danger", disabled: !session.may_change, onclick: () => recall(row) }, t("Take back")) },
    ], rows, { nothing: empty(t("Nothing waits")) })),
    h("div", { class: "card flush" }, h("h2", null, t("By topic")), table([
      { name: t("Topic"), kind: "name", of: ([topic]) => h("a", { href: `/topics/${encodeURIComponent(topic)}` }, topic) },
      { name: t("Messages"), kind: "number", of: ([, number]) => count(number) },
    ], Object.entries(answer.counts), { nothing: empty(t("Nothing waits")) })));
}

function recall(row) {
  dialog({
    title: t("Take back"),
    action: t("Take back"),
    kind: "primary danger",
    body: callout(t("Message {id} of {topic} will not be delivered.", { id: row.message_id, topic: row.topic }), "warn"),
    act: async () => {
      const done = await post("/api/timers/recall", { message_id: row.message_id });
      setTimeout(reload, 800);
      return done.done;
    },
  });
}
