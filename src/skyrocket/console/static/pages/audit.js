// Who did what, when, from where.
import { get, query, session } from "../api.js";
import { fill, h } from "../dom.js";
import { moment } from "../format.js";
import { badge, callout, empty, head, table, trouble as shownTrouble } from "../parts.js";
import { go, withQuery } from "../router.js";
import { t } from "../words.js";

export async function show(root, context) {
  const data = h("div", { class: "card flush" });
  root.append(head(t("Audit"), { says: t("changes that were asked for here") }),
    h("div", { class: "bar" }, h("input", { type: "search", value: context.query.search || "", placeholder: t("Search"), "aria-label": t("Search"), onchange: (event) => go(withQuery({ search: event.target.value, before: null })) })), data);
  if (!session.account) { fill(data, callout(t("Log in to see who changed what."), "warn")); return; }
  let page;
  try { page = await get(query("/api/audit", { search: context.query.search, before_id: context.query.before })); } catch (error) { fill(data, shownTrouble(error)); return; }
  fill(data, table([
    { name: t("Time"), kind: "soft", of: (row) => moment(row.at_ms) },
    { name: t("Who"), kind: "name", of: (row) => row.account || "–" },
    { name: t("From"), kind: "address", of: (row) => row.address },
    { name: t("What"), kind: "mono", of: (row) => `${row.action.split(" ")[0]} ${row.target}` },
    { name: t("Outcome"), of: (row) => (row.outcome === "done" ? badge(t("done"), "good") : h("span", { title: row.outcome }, badge(t("refused"), "bad"), " ", row.outcome.slice(0, 120))) },
    { name: t("Asked for"), kind: "mono", of: (row) => row.details },
    { name: t("Before"), kind: "mono", of: (row) => row.before },
    { name: t("After"), kind: "mono", of: (row) => row.after },
  ], page.rows, { nothing: empty(t("Nothing yet"), t("Every change made here is written down.")) }),
  page.rows.length === 100 && h("div", { class: "pager" }, h("span", { class: "grow" }), h("button", { class: "small", onclick: () => go(withQuery({ before: page.rows.at(-1).id })) }, t("Older"))));
}
