// Everybody who is connected.
import { get } from "../api.js";
import { fill, h } from "../dom.js";
import { ago, count } from "../format.js";
import { badge, empty, head, pager, table } from "../parts.js";
import { go, withQuery } from "../router.js";
import { t } from "../words.js";

const SIZE = 100;

export async function show(root, context) {
  const data = h("div", { class: "skeleton" });
  const text = (context.query.search || "").toLowerCase();
  const page = Number(context.query.page || 1);
  root.append(head(t("Clients"), { says: t("connected producers and consumers") }),
    h("div", { class: "bar" }, h("input", { type: "search", value: context.query.search || "", placeholder: t("Filter by client, group or version"), "aria-label": t("Filter by client, group or version"), onchange: (event) => go(withQuery({ search: event.target.value, page: null })) })), data);
  const answer = await get("/api/clients");
  const rows = answer.rows.filter((row) => [row.client_id, row.group, row.version, row.language, row.role].some((value) => value.toLowerCase().includes(text)));
  data.className = "stack";
  fill(data,
    h("div", { class: "card flush" }, h("h2", null, t("Languages and versions")), table([
      { name: t("Language"), kind: "name", of: (row) => row.language || "–" },
      { name: t("Version"), kind: "soft", of: (row) => row.version },
      { name: t("Clients"), kind: "number", of: (row) => count(row.clients) },
    ], answer.languages, { nothing: empty(t("Nobody is connected")) })),
    h("div", { class: "card flush" }, table([
      { name: t("Role"), of: (row) => badge(t(row.role), row.role === "producer" ? "accent" : "note") },
      { name: t("Group"), kind: "name", of: (row) => (row.role === "consumer" ? h("a", { href: `/groups/${encodeURIComponent(row.group)}` }, row.group) : row.group) },
      { name: t("Client"), kind: "mono", of: (row) => row.client_id },
      { name: t("Address"), kind: "mono", of: (row) => row.address },
      { name: t("Language"), of: (row) => row.language },
      { name: t("Version"), kind: "soft", of: (row) => row.version },
      { name: t("Heard of"), kind: "soft", of: (row) => ago(row.last_seen_ms) },
    ], rows.slice((page - 1) * SIZE, page * SIZE), { nothing: empty(t("Nobody is connected")) }), pager(page, SIZE, rows.length, (next) => go(withQuery({ page: next })))));
}
