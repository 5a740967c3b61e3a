// Spark queries, as their groups show them.
import { get } from "../api.js";
import { fill, h } from "../dom.js";
import { ago, count, duration, rate } from "../format.js";
import { empty, head, table } from "../parts.js";
import { t } from "../words.js";

export async function show(root) {
  const data = h("div", { class: "card flush" }, h("div", { class: "skeleton" }));
  root.append(head(t("Pipelines"), { says: t("groups that go on without a connected client, as Spark queries do") }), data);
  const answer = await get("/api/pipelines");
  fill(data, table([
    { name: t("Group"), kind: "name", of: (row) => h("a", { href: `/groups/${encodeURIComponent(row.group)}` }, row.group) },
    { name: t("Topics"), of: (row) => row.topics.map((topic) => [h("a", { href: `/topics/${encodeURIComponent(topic)}` }, topic), " "]) },
    { name: t("Lag"), kind: "number", of: (row) => count(row.lag) },
    { name: t("Time lag"), kind: "number", of: (row) => duration(row.late_ms) },
    { name: t("Committed offsets"), kind: "number", of: (row) => h("a", { href: `/groups/${encodeURIComponent(row.group)}` }, count(row.offset)) },
    { name: t("In/s"), kind: "number", of: (row) => rate(row.in_per_second) },
    { name: t("Out/s"), kind: "number", of: (row) => rate(row.out_per_second) },
    { name: t("Last message stored"), kind: "soft", of: (row) => ago(row.last_message_ms) },
    { name: t("Last commit"), kind: "soft", of: (row) => ago(row.moved_ms) },
  ], answer.rows, { nothing: empty(t("No pipeline"), t("A Spark query appears here when its source has a group, and it commits while the console runs.")) }));
}
