// Everybody who is connected.
import { get } from "../api.js";
import { fill, h } from "../dom.js";
import { ago, count, duration } from "../format.js";
import { badge, callout, empty, head, pager, table } from "../parts.js";
import { go, withQuery } from "../router.js";
import { counted, t } from "../words.js";

const SIZE = 100;

export async function show(root, context) {
  const data = h("div", { class: "skeleton" });
  const text = (context.query.search || "").toLowerCase();
  const page = Number(context.query.page || 1);
  root.append(head(t("Clients"), { says: t("connected producers and consumers") }),
    h("div", { class: "bar" }, h("input", { type: "search", value: context.query.search || "", placeholder: t("Filter by client, group or version"), "aria-label": t("Filter by client, group or version"), onchange: (event) => go(withQuery({ search: event.target.value, page: null })) })), data);
  const answer = await get("/api/clients");
  const old = context.query.outdated === "true";
  const rows = answer.rows.filter((row) => (!old || row.is_outdated) && [row.client_id, row.group, row.version, row.language, row.role].some((value) => value.toLowerCase().includes(text)));
  data.className = "stack";
  const outdated = new Set(answer.rows.filter((row) => row.is_outdated).map((row) => row.client_id)).size;
  fill(data,
    outdated > 0 && callout(h("a", { href: "/clients?outdated=true" }, counted(outdated, "{n} client is of an outdated version: releases before 4.9.3 miss fixes of lost and repeated messages.", "{n} clients are of outdated versions: releases before 4.9.3 miss fixes of lost and repeated messages.")), "warn"),
    h("div", { class: "card flush", id: "matrix" }, h("h2", null, t("Languages and versions")), matrix(answer.languages)),
    h("div", { class: "card flush" }, table([
      { name: t("Role"), of: (row) => badge(t(row.role), row.role === "producer" ? "accent" : "note") },
      { name: t("Group"), kind: "name", of: (row) => (row.role === "consumer" ? h("a", { href: `/groups/${encodeURIComponent(row.group)}` }, row.group) : row.group) },
      { name: t("Client"), kind: "mono", of: (row) => row.client_id },
      { name: t("Address"), kind: "address", of: (row) => row.address },
      { name: t("Language"), of: (row) => row.language },
      { name: t("Version"), kind: "soft", of: (row) => [row.version, row.is_outdated && [" ", badge(t("outdated"), "warn")]] },
      { name: t("Connected"), kind: "soft", of: (row) => (row.connected_ms ? duration(Math.max(Date.now() - row.connected_ms, 0)) : "–") },
      { name: t("Heard of"), kind: "soft", of: (row) => ago(row.last_seen_ms) },
    ], rows.slice((page - 1) * SIZE, page * SIZE), { nothing: empty(t("Nobody is connected")) }), pager(page, SIZE, rows.length, (next) => go(withQuery({ page: next })))));
}

// A row for each version, a column for each language.
function matrix(languages) {
  const names = [...new Set(languages.map((each) => each.language))].sort();
  const versions = [...new Set(languages.map((each) => each.version))].sort().reverse();
  const found = (version, language) => languages.find((each) => each.version === version && each.language === language);
  return table([
    { name: t("Version"), kind: "name", of: (version) => [version, languages.some((each) => each.version === version && each.is_outdated) && [" ", badge(t("outdated"), "warn")]] },
    ...names.map((language) => ({ name: language || "–", kind: "number", of: (version) => { const here = found(version, language); return here ? count(here.clients) : h("span", { class: "faint" }, "·"); } })),
  ], versions, { nothing: empty(t("Nobody is connected")) });
}
