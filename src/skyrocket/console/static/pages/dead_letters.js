// Groups that have given messages up.
import { fill, h } from "../dom.js";
import { ago, count, rate } from "../format.js";
import { follow } from "../live.js";
import { callout, empty, head, table } from "../parts.js";
import { t } from "../words.js";

export function show(root, context) {
  const data = h("div", { class: "card flush" }, h("div", { class: "skeleton" }));
  const trouble = h("div");
  root.append(head(t("Dead letters"), { says: t("what groups have given up") }), trouble, data);
  context.onLeave(follow("/api/dead-letters", (answer) => {
    fill(trouble);
    fill(data, table([
      { name: t("Group"), kind: "name", of: (row) => h("a", { href: `/dead-letters/${encodeURIComponent(row.group)}` }, row.group) },
      { name: t("Dead letters"), kind: "number", of: (row) => count(row.messages) },
      { name: t("New/s"), kind: "number", of: (row) => rate(row.in_per_second) },
      { name: t("Oldest"), kind: "soft", of: (row) => ago(row.oldest_ms) },
      { name: t("Newest"), kind: "soft", of: (row) => ago(row.newest_ms) },
    ], answer.rows, { nothing: empty(t("No dead letters"), t("Every message that failed was consumed in the end.")) }));
  }, (text) => fill(trouble, callout(text, "bad"))));
}
