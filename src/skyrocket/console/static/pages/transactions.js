// Transactions whose producer has not said how they end.
import { post, session } from "../api.js";
import { fill, h } from "../dom.js";
import { count, duration } from "../format.js";
import { follow } from "../live.js";
import { callout, dialog, empty, facts, head, table } from "../parts.js";
import { t } from "../words.js";

export function show(root, context) {
  const data = h("div", { class: "card flush" }, h("div", { class: "skeleton" }));
  const trouble = h("div");
  root.append(head(t("Transactions"), { says: t("half messages that wait for their end") }), trouble, data);
  context.onLeave(follow("/api/transactions", (answer) => {
    fill(trouble, !answer.offered && callout(t("Brokers of Apache RocketMQ do not list their half messages: ask the producers."), "warn"));
    fill(data, table([
      { name: t("Age"), kind: "number", of: (row) => duration(row.age_ms) },
      { name: t("Topic"), kind: "name", of: (row) => h("a", { href: `/topics/${encodeURIComponent(row.topic)}` }, row.topic) },
      { name: t("Producer group"), of: (row) => row.producer_group },
      { name: t("Transaction"), kind: "mono", of: (row) => row.transaction_id },
      { name: t("Keys"), kind: "mono roomy", of: (row) => row.keys.join(" ") },
      { name: t("Checks"), kind: "number", of: (row) => count(row.checks) },
      { name: t("Broker"), kind: "soft", of: (row) => row.broker },
      { name: "", kind: "actions", of: (row) => [
        h("button", { class: "small", disabled: !session.may_change, onclick: () => end(row, "commit") }, t("Commit")), " ",
        h("button", { class: "small danger", disabled: !session.may_change, onclick: () => end(row, "rollback") }, t("Roll back"))] },
    ], answer.rows, { nothing: empty(t("No open transaction"), t("Every half message has been committed or rolled back.")) }));
  }, (text) => fill(trouble, callout(text, "bad"))));
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
