// What a group has failed to consume and will get again: a tab of its page.
import { get, path } from "../api.js";
import { fill, h } from "../dom.js";
import { clock, count, duration, moment } from "../format.js";
import { badge, callout, empty, figure, table, trouble as shownTrouble } from "../parts.js";
import { t } from "../words.js";

const until = (ms) => (ms === null ? "–" : t("in {time}", { time: duration(Math.max(ms - Date.now(), 0)) }));

// Not followed, for each look reads queues. What was seen stays until the next look has its answer.
export async function retries(place, group) {
  const figures = h("div", { class: "stack" });
  const seen = h("span", { class: "faint", id: "seen" });
  const rows = h("div", { class: "card flush", id: "retries" }, h("div", { class: "skeleton" }));
  let asked = 0;
  let drawn = 0;
  const look = async () => {
    const number = (asked += 1);
    const answer = await get(`${path("groups", group)}/retries`).catch((error) => error);
    if (number < drawn) return; // one that was asked later tells more
    drawn = number;
    fill(seen, t("seen at {time}", { time: clock(Date.now()) }));
    if (answer instanceof Error) { fill(rows, shownTrouble(answer)); return; }
    fill(figures, summary(answer));
    fill(rows, list(answer));
  };
  fill(place, h("div", { class: "stack" }, figures, h("div", { class: "bar" }, h("span", { class: "grow" }), seen, h("button", { onclick: look }, t("Look again"))), rows));
  await look();
}

const link = (topic, text) => h("a", { href: `/topics/${encodeURIComponent(topic)}` }, text);

function summary(answer) {
  return [
    h("div", { class: "grid" },
      figure(t("Due now"), count(answer.due), { says: t("wait for a client of the group") }),
      figure(t("Wait for their time"), count(answer.waiting), { says: answer.next_ms === null ? "" : t("the next {when}", { when: until(answer.next_ms) }) }),
      figure(t("Retry topics"), count(answer.topics.length), { says: answer.topics.map((topic) => [link(topic, topic), " "]) })),
    !answer.is_complete && callout(t("There are more than were looked at."), "warn"),
  ];
}

function list(answer) {
  return table([
    { name: t("State"), of: (row) => (row.is_due ? badge(t("due"), "warn") : badge(t("waits"), "note")) },
    { name: t("Due"), kind: "soft", of: (row) => moment(row.due_ms) },
    { name: "", kind: "soft", of: (row) => (row.is_due ? "" : until(row.due_ms)) },
    { name: t("Message id"), kind: "mono", of: (row) => (row.topic ? h("a", { href: `/messages/${encodeURIComponent(row.topic)}/${encodeURIComponent(row.message_id)}` }, row.message_id) : row.message_id) },
    { name: t("From topic"), kind: "name", of: (row) => (row.topic ? link(row.topic, row.topic) : "–") },
    { name: t("Attempts"), kind: "number", of: (row) => count(row.attempts) },
    { name: t("Keys"), kind: "mono roomy", of: (row) => row.keys.join(" ") },
    { name: t("Body"), kind: "preview", of: (row) => row.preview },
  ], answer.rows, { nothing: empty(t("Nothing comes again"), t("What a client fails to consume waits here until it is delivered again.")) });
}
