// Messages, found by id, key, time, offset, tag, SQL, text or property.
import { get, path, query } from "../api.js";
import { fill, h } from "../dom.js";
import { bytes, count, localInput, moment } from "../format.js";
import { badge, empty, field, head, table, trouble as shownTrouble, valuesOf } from "../parts.js";
import { go, withQuery } from "../router.js";
import { counted, t } from "../words.js";
import { EMPTY, parsed, written } from "./search_words.js";

export function show(root, context) {
  root.append(head(t("Messages")));
  messageSearch(root, context);
}

const link = (row) => `/messages/${encodeURIComponent(row.topic)}/${encodeURIComponent(row.message_id)}`;

export function messagesTable(rows, nothing = empty(t("No message"), t("Nothing fits what was asked for."))) {
  return table([
    { name: t("Stored"), kind: "address soft", of: (row) => moment(row.stored_ms, true) },
    { name: t("Message id"), kind: "address", of: (row) => h("a", { href: link(row) }, row.message_id) },
    { name: t("Place"), kind: "address soft", of: (row) => `${row.broker} ${row.queue} @ ${row.offset}` },
    { name: t("Tag"), of: (row) => (row.tags ? badge(row.tags, "accent") : "") },
    { name: t("Keys"), kind: "mono roomy", of: (row) => row.keys.join(" ") },
    { name: t("Size"), kind: "number", of: (row) => bytes(row.size) },
    { name: t("Body"), kind: "preview", of: (row) => row.preview },
  ], rows, { nothing });
}

export function messageSearch(root, context) {
  const wanted = context.query;
  const topic = context.fixedTopic || wanted.topic || "";
  const result = h("div", { class: "card flush" });
  const says = h("div", { class: "faint", style: { padding: "8px 2px" } });
  const text = written({ ...wanted, topic: context.fixedTopic ? "" : topic });
  const box = h("input", { id: "search-box", type: "search", autocomplete: "off", value: text, "aria-label": t("Search"), placeholder: t("an id or key, or topic:Orders tag:paid since:2h until:10m queue:broker-a/0 offset:12 sql:\"price > 3\" property:city=Bern body:tea") });
  const form = h("form", { class: "card", style: { "margin-bottom": "12px" } },
    h("div", { class: "search-line" }, box, h("button", { class: "primary", id: "search" }, t("Search"))),
    h("details", null, h("summary", null, t("Fields")), h("div", { class: "form-row" },
      !context.fixedTopic && field({ name: "topic", label: t("Topic"), value: topic, placeholder: t("any, for an id or key") }),
      field({ name: "id", label: t("Message id or key"), value: wanted.id || "" }),
      field({ name: "tags", label: t("Tags"), value: wanted.tags || "", placeholder: "TagA || TagB" }),
      field({ name: "sql", label: t("SQL filter"), value: wanted.sql || "", placeholder: "price > 3 AND city = 'Bern'" }),
      field({ name: "contains", label: t("Body contains"), value: wanted.contains || "" }),
      field({ name: "offset", label: t("Offset"), type: "number", value: wanted.offset || "", min: 0 }),
      field({ name: "property_name", label: t("Property"), value: wanted.property_name || "", placeholder: "name" }),
      field({ name: "property_value", label: t("contains"), value: wanted.property_value || "" }),
      field({ name: "from", label: t("From"), type: "datetime-local", value: wanted.from || "" }),
      field({ name: "to", label: t("Until"), type: "datetime-local", value: wanted.to || "" }))),
    h("div", { class: "bar", style: { margin: "12px 0 0" } },
      [[5, t("last 5 minutes")], [60, t("last hour")], [1440, t("last day")]].map(([minutes, text]) => h("button", { class: "quiet", type: "button", onclick: () => go(withQuery({ from: localInput(Date.now() - minutes * 60000), to: null })) }, text)),
      h("button", { class: "quiet", type: "button", onclick: () => go(withQuery(EMPTY)) }, t("Clear"))));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    let asked;
    try {
      asked = box.value === text ? valuesOf(form) : { ...parsed(box.value, (name, names) => t("{name}: is not known here; there are {names}", { name, names })), ...(context.fixedTopic && { topic: "" }) };
    } catch (error) {
      fill(result, shownTrouble(error));
      return;
    }
    const address = withQuery(asked);
    if (address === location.pathname + location.search) search();
    else go(address);
  });
  root.append(form, result, says);

  async function search() {
    fill(says);
    if (!topic && !wanted.id) { fill(result, empty(t("Choose a topic"), t("or give a message id or key: all topics are searched for it."))); return; }
    fill(result, h("div", { class: "skeleton" }));
    try {
      const answer = await find(topic, wanted);
      if (answer.only) { go(link(answer.only), { replace: true }); return; }
      fill(result, messagesTable(answer.rows));
      fill(says, answer.says);
    } catch (error) {
      fill(result, shownTrouble(error));
    }
  }
  search();
}

async function find(topic, wanted) {
  if (!topic) {
    const answer = await get(query("/api/messages", { id: wanted.id }));
    return { rows: answer.rows, says: counted(answer.topics_searched, "{n} topic was searched.", "{n} topics were searched.", count(answer.topics_searched)) };
  }
  const times = { from_ms: wanted.from ? new Date(wanted.from).getTime() : null, to_ms: wanted.to ? new Date(wanted.to).getTime() : null };
  const base = `${path("topics", topic)}/messages`;
  if (wanted.id) {
    const byKey = await get(query(base, { key: wanted.id, ...times }));
    if (byKey.rows.length) return { rows: byKey.rows, says: "" };
    const page = await get(`${base}/${encodeURIComponent(wanted.id)}`).catch((error) => { if (error.status === 400 || error.status === 404) return null; throw error; });
    return page ? { only: { topic, message_id: wanted.id } } : { rows: [], says: "" };
  }
  const answer = await get(query(base, { tags: wanted.tags, sql: wanted.sql, offset: wanted.offset, contains: wanted.contains, property_name: wanted.property_name, property_value: wanted.property_value, broker: wanted.broker, queue: wanted.queue, ...times, most: 100 }));
  return { rows: answer.rows, says: answer.is_complete ? counted(answer.read, "{n} message was looked at: this is all.", "{n} messages were looked at: these are all.", count(answer.read)) : counted(answer.read, "{n} message was looked at; there may be more.", "{n} messages were looked at, newest first; there may be more.", count(answer.read)) };
}
