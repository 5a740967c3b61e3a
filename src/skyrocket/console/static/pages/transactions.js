// Transactions whose producer has not said how they end.
import { post, query, session } from "../api.js";
import { fill, h } from "../dom.js";
import { count, duration, moment } from "../format.js";
import { follow } from "../live.js";
import { callout, dialog, empty, facts, head, table } from "../parts.js";
import { go, withQuery } from "../router.js";
import { t } from "../words.js";

export function show(root, context) {
  const wanted = { sort: "-age", producer_group: "", ...context.query };
  const data = h("div", { class: "card flush", id: "open" }, h("div", { class: "skeleton" }));
  const gone = h("div", { class: "card flush", id: "given-up" });
  const trouble = h("div");
  const locked = { disabled: !session.may_change, title: session.may_change ? "" : t("Log in to change things") };
  root.append(head(t("Transactions"), { says: t("half messages that wait for their end") }),
    h("div", { class: "bar" }, h("input", { type: "search", value: wanted.producer_group, placeholder: t("Producer group"), "aria-label": t("Producer group"), onchange: (event) => go(withQuery({ producer_group: event.target.value })) })),
    trouble, h("div", { class: "stack" }, data, gone));
  context.onLeave(follow(query("/api/transactions", wanted), (answer) => {
    fill(trouble, !answer.offered && callout(t("Brokers of Apache RocketMQ do not list their half messages: ask the producers."), "warn"));
    fill(data, table([
      { name: t("Age"), kind: "number", sort: "age", of: (row) => duration(row.age_ms) },
      { name: t("Topic"), kind: "name", sort: "topic", of: (row) => h("a", { href: `/topics/${encodeURIComponent(row.topic)}` }, row.topic) },
      { name: t("Producer group"), sort: "group", of: (row) => row.producer_group },
      { name: t("Transaction"), kind: "mono", of: (row) => row.transaction_id },
      { name: t("Keys"), kind: "mono roomy", of: (row) => row.keys.join(" ") },
      { name: t("Checks"), kind: "number", sort: "checks", of: (row) => count(row.checks) },
      { name: t("Broker"), kind: "soft", of: (row) => row.broker },
      { name: "", kind: "actions", of: (row) => [
        h("button", { class: "small", onclick: () => check(row), ...locked }, t("Check")), " ",
        h("button", { class: "small", onclick: () => end(row, "commit"), ...locked }, t("Commit")), " ",
        h("button", { class: "small danger", onclick: () => end(row, "rollback"), ...locked }, t("Roll back"))] },
    ], answer.rows, { sort: wanted.sort, onSort: (sort) => go(withQuery({ sort })), nothing: empty(t("No open transaction"), t("Every half message has been committed or rolled back.")) }));
  }, (text) => fill(trouble, callout(text, "bad"))));
  context.onLeave(follow("/api/transactions/given-up", (answer) => fill(gone, h("h2", null, t("Discarded after too many checks")), table([
    { name: t("Time"), kind: "soft", of: (row) => moment(row.given_up_ms) },
    { name: t("Topic"), kind: "name", of: (row) => h("a", { href: `/topics/${encodeURIComponent(row.topic)}` }, row.topic) },
    { name: t("Producer group"), of: (row) => row.producer_group },
    { name: t("Transaction"), kind: "mono", of: (row) => row.transaction_id },
    { name: t("Keys"), kind: "mono roomy", of: (row) => row.keys.join(" ") },
    { name: t("Checks"), kind: "number", of: (row) => count(row.checks) },
    { name: t("Broker"), kind: "soft", of: (row) => row.broker },
    { name: "", kind: "actions", of: (row) => h("button", { class: "small", onclick: () => resume(row), ...locked }, t("Open again")) },
  ], answer.rows, { nothing: empty(t("None was discarded")) })), (text) => fill(gone, callout(text, "bad"))));
}

function check(row) {
  dialog({
    title: t("Check transaction"),
    action: t("Check"),
    body: [callout(t("A connected producer of {group} is asked now how the transaction ends. It counts as one of its checks.", { group: row.producer_group })), facts([[t("Topic"), row.topic], [t("Transaction"), row.transaction_id], [t("Checks"), count(row.checks)]])],
    act: async () => (await post("/api/transactions/check", { broker: row.broker, transaction_id: row.transaction_id, half_offset: row.half_offset })).done,
  });
}

function resume(row) {
  dialog({
    title: t("Open again"),
    action: t("Open again"),
    body: [callout(t("The half message is open again: producers of {group} are asked from the beginning.", { group: row.producer_group }), "warn"), facts([[t("Topic"), row.topic], [t("Transaction"), row.transaction_id]])],
    act: async () => (await post("/api/transactions/given-up/resume", { broker: row.broker, offset_message_id: row.offset_message_id })).done,
  });
}

function end(row, outcome) {
  const commits = outcome === "commit";
  dialog({
    title: commits ? t("Commit transaction") : t("Roll back transaction"),
    action: commits ? t("Commit") : t("Roll back"),
    kind: commits ? "primary" : "primary danger",
    body: [
      callout(commits ? t("The message becomes visible to all groups of {topic}. Your word takes the place of the producer's.", { topic: row.topic }) : t("The message will never be delivered. Your word takes the place of the producer's."), "warn"),
      facts([[t("Topic"), row.topic], [t("Transaction"), row.transaction_id], [t("Keys"), row.keys.join(" ")], [t("Age"), duration(row.age_ms)], [t("Checks"), count(row.checks)]])],
    act: async () => (await post("/api/transactions/end", { broker: row.broker, transaction_id: row.transaction_id, half_offset: row.half_offset, outcome })).done,
  });
}
