// The dead letters of one group: why they died, and sending them again.
import { get, path, post, query, session } from "../api.js";
import { fill, h } from "../dom.js";
import { count, moment } from "../format.js";
import { badge, callout, confirmByName, dialog, empty, field, head, table, trouble as shownTrouble, valuesOf } from "../parts.js";
import { go, show as reload, withQuery } from "../router.js";
import { t } from "../words.js";
import { bodyCard, editable, factsCard, propertiesCard, shortened } from "./message.js";
import { send } from "./topic.js";

export async function show(root, context) {
  const group = context.names.group;
  root.append(head(group, { crumb: { text: t("Dead letters"), href: "/dead-letters" }, actions: [
    h("a", { class: "button", href: `/groups/${encodeURIComponent(group)}` }, t("Group")),
    h("button", { class: "danger", id: "purge", disabled: !session.may_change, onclick: () => purge(group) }, t("Delete all"))] }));
  await letters(root, group, context.query);
}

// The choice of them and their table: also a tab of the group's page.
export async function letters(root, group, wanted) {
  const base = path("dead-letters", group);
  const chosen = new Set();
  const ms = (text) => (text ? new Date(text).getTime() : null);
  const asked = { message_id: wanted.message_id, key: wanted.key, error: wanted.error, contains: wanted.contains, from_ms: ms(wanted.from), to_ms: ms(wanted.to) };
  const again = h("button", { class: "primary", id: "resend", disabled: true, onclick: () => resend(group, [...chosen]) }, t("Send again"));
  const data = h("div", { class: "card flush" }, h("div", { class: "skeleton" }));
  const form = h("form", { class: "bar", onsubmit: (event) => { event.preventDefault(); go(withQuery(valuesOf(form))); } },
    field({ name: "message_id", label: t("Message id"), value: wanted.message_id || "" }),
    field({ name: "key", label: t("Key"), value: wanted.key || "" }),
    field({ name: "error", label: t("Type of error contains"), value: wanted.error || "" }),
    field({ name: "contains", label: t("Body contains"), value: wanted.contains || "" }),
    field({ name: "from", label: t("Died since"), type: "datetime-local", value: wanted.from || "" }),
    field({ name: "to", label: t("Until"), type: "datetime-local", value: wanted.to || "" }),
    h("button", null, t("Search")), h("span", { class: "grow" }),
    [["csv", "CSV"], ["json", "JSON"], ["parquet", "Parquet"]].map(([format, text]) => h("a", { class: "button", href: query(`${base}/export`, { format, ...asked }) }, text)), again);
  root.append(form, data);
  const answer = await get(query(base, { ...asked, most: 200 }));
  // By the offset id: one that was sent again and has died again has its unique id for a second time.
  const choose = (row, is) => {
    is ? chosen.add(row.offset_message_id) : chosen.delete(row.offset_message_id);
    again.disabled = !chosen.size || !session.may_change;
    fill(again, chosen.size ? t("Send {n} again", { n: chosen.size }) : t("Send again"));
  };
  const boxes = answer.rows.map((row) => h("input", { type: "checkbox", "aria-label": row.message_id, onchange: (event) => choose(row, event.target.checked) }));
  const all = h("input", { type: "checkbox", "aria-label": t("All"), onchange: () => answer.rows.forEach((row, at) => { boxes[at].checked = all.checked; choose(row, all.checked); }) });
  fill(data, table([
    { name: all, of: (row) => boxes[answer.rows.indexOf(row)] },
    { name: t("Died"), kind: "soft", of: (row) => moment(row.died_ms) },
    { name: t("Message id"), kind: "mono", of: (row) => h("a", { href: "#", onclick: (event) => { event.preventDefault(); look(group, row); } }, row.message_id) },
    { name: t("From topic"), kind: "name", of: (row) => h("a", { href: `/topics/${encodeURIComponent(row.topic)}` }, row.topic) },
    { name: t("Attempts"), kind: "number", of: (row) => count(row.attempts) },
    { name: t("Keys"), kind: "mono roomy", of: (row) => row.keys.join(" ") },
    { name: t("Cause"), of: (row) => (row.error ? [badge(row.error, "bad"), " ", row.error_message] : h("span", { class: "faint" }, t("not told"))) },
    { name: t("Body"), kind: "preview", of: (row) => row.preview },
  ], answer.rows, { nothing: empty(t("No dead letters")) }),
  !answer.is_complete && h("div", { class: "faint", id: "older", style: { padding: "8px 14px" } }, t("These are the newest {n}. For older ones say until when, or take a file.", { n: count(answer.rows.length) })));
}

function resend(group, ids) {
  dialog({
    title: t("Send {n} again", { n: ids.length }),
    action: t("Send again"),
    body: [
      callout(t("They stay among the dead letters; a second time sends them a second time."), "warn"),
      field({ name: "to", label: t("To"), options: [["group", t("{group} alone", { group })], ["topic", t("the topics they came from: all groups get them")]] }),
      field({ name: "per_second", label: t("Messages per second"), type: "number", min: 0, hint: t("Empty: as fast as it goes") })],
    act: async (values) => {
      const done = await post(`${path("dead-letters", group)}/resend`, { message_ids: ids, to_topic: values.to === "topic", per_second: Number(values.per_second) || 0 });
      reload();
      return done.done;
    },
  });
}

function purge(group) {
  confirmByName({
    title: t("Delete the dead letters of {group}", { group }),
    name: group,
    action: t("Delete all"),
    effects: callout(t("They are gone for ever, for everybody."), "bad"),
    act: async () => {
      const done = await post(`${path("dead-letters", group)}/purge`, {});
      reload();
      return done.done;
    },
  });
}

async function look(group, row) {
  const place = h("div", { class: "stack" }, h("div", { class: "skeleton" }));
  dialog({ title: row.message_id, body: place, wide: true });
  try {
    const page = await get(`${path("dead-letters", group)}/messages/${encodeURIComponent(row.offset_message_id)}`);
    fill(place,
      row.error && callout(`${row.error}: ${row.error_message} · ${row.host}`, "bad"),
      page.traceback && h("details", null, h("summary", null, t("Traceback")), h("pre", { class: "body" }, page.traceback)),
      page.attempts.length > 0 && h("div", { class: "card flush" }, table([
        { name: t("Attempt"), kind: "number", of: (attempt) => attempt.number },
        { name: t("Time"), of: (attempt) => moment(attempt.at_ms) },
        { name: t("Host"), of: (attempt) => attempt.host },
        { name: t("Error"), of: (attempt) => attempt.error },
      ], page.attempts)),
      bodyCard(page.message, page.decoded),
      h("div", { class: "bar" }, h("button", { disabled: !session.may_change, onclick: () => send(row.topic, editable(page.message)), ...shortened(page.message) }, t("Edit and send"))),
      factsCard(page.message), propertiesCard(page.message));
  } catch (error) {
    fill(place, shownTrouble(error));
  }
}
