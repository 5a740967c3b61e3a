// Spark queries, as their groups show them and as they report themselves.
import { get } from "../api.js";
import { fill, h } from "../dom.js";
import { ago, count, duration, NONE, rate } from "../format.js";
import { badge, callout, empty, head, table } from "../parts.js";
import { t } from "../words.js";

const STATES = { running: "good", ended: "", failed: "bad" };

export async function show(root) {
  const data = h("div", { class: "card flush" }, h("div", { class: "skeleton" }));
  const note = h("div");
  root.append(head(t("Pipelines"), { says: t("groups that go on without a connected client, as Spark queries do") }), data, note);
  const answer = await get("/api/pipelines");
  fill(data, table([
    { name: t("Group"), kind: "name", of: (row) => h("a", { href: `/groups/${encodeURIComponent(row.group)}` }, row.group) },
    { name: t("Topics"), of: (row) => row.topics.map((topic) => [h("a", { href: `/topics/${encodeURIComponent(topic)}` }, topic), " "]) },
    { name: t("Query"), of: (row) => each(row, link) },
    { name: t("Query's state"), of: (row) => each(row, (query) => h("span", { title: t("reported {when}", { when: ago(query.reported_ms) }) }, badge(t(query.state), STATES[query.state]))) },
    { name: t("Batch"), kind: "number", of: (row) => each(row, (query) => count(query.batch)) },
    { name: t("Rows/s"), kind: "number", of: (row) => each(row, (query) => rate(query.rows_per_second)) },
    { name: t("Sink"), of: (row) => each(row, (query) => query.sink || NONE) },
    { name: t("Lag"), kind: "number", of: (row) => count(row.lag) },
    { name: t("Time lag"), kind: "number", of: (row) => duration(row.late_ms) },
    { name: t("Committed offsets"), kind: "number", of: (row) => h("a", { href: `/groups/${encodeURIComponent(row.group)}` }, count(row.offset)) },
    { name: t("In/s"), kind: "number", of: (row) => rate(row.in_per_second) },
    { name: t("Out/s"), kind: "number", of: (row) => rate(row.out_per_second) },
    { name: t("Last message stored"), kind: "soft", of: (row) => ago(row.last_message_ms) },
    { name: t("Last commit"), kind: "soft", of: (row) => ago(row.moved_ms) },
  ], answer.rows, { nothing: empty(t("No pipeline"), t("A Spark query appears here when its source has a group, and it commits while the console runs.")) }));
  fill(note, advice(answer.rows));
}

// A line for each query of a group.
function each(row, of) {
  return row.queries && row.queries.length ? row.queries.map((query) => h("div", null, of(query))) : NONE;
}

// Whoever reaches a name server can write a report: a link leads to the web or is none.
function link(query) {
  const text = query.name || query.query_id;
  if (isOfTheWeb(query.url)) return h("a", { href: query.url, target: "_blank", rel: "noopener noreferrer", title: query.url }, text);
  return query.url ? `${text} (${query.url})` : text;
}

function isOfTheWeb(url) {
  try {
    return ["http:", "https:"].includes(new URL(url).protocol);
  } catch {
    return false; // no address at all
  }
}

function advice(rows) {
  if (rows.some((row) => row.queries === null)) return callout(t("The name servers do not say what queries have reported."), "warn");
  if (rows.every((row) => row.queries.length)) return null;
  return callout(t("Batch, sink and the link come from queries that report themselves: call skyrocket.pipeline.report_queries(spark) before they start. `skyrocket pipeline run` does so."));
}
