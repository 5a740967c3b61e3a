// The clients of a group: what they want and have, where they are stuck, and whether they agree.
import { get, path } from "../api.js";
import { fill, h } from "../dom.js";
import { ago, count, rate } from "../format.js";
import { badge, callout, dialog, empty, facts, table, trouble as shownTrouble } from "../parts.js";
import { t } from "../words.js";

// Each client is asked, so this is not followed.
export async function members(root, name) {
  fill(root, h("div", { class: "skeleton" }));
  const answer = await get(`${path("groups", name)}/members`);
  fill(root, h("div", { class: "stack" }, agreement(answer), h("div", { class: "card flush" }, table([
    { name: t("Client"), kind: "mono", of: (row) => [row.client_id, h("div", { class: "faint" }, row.address)] },
    { name: t("Language"), of: (row) => row.language },
    { name: t("Version"), kind: "soft", of: (row) => row.version },
    { name: t("Subscriptions"), kind: "mono", of: (row) => row.subscriptions.map((each) => h("div", null, `${each.topic} ${each.expression}`, each.kind === "TAG" ? "" : ` (${each.kind})`)) },
    { name: t("Assigned queues"), kind: "mono", of: (row) => row.queues.map((each) => h("div", null, `${each.topic} ${each.broker}: ${each.queues.join(" ")}`)) },
    { name: t("Findings"), of: (row) => (row.trouble ? h("span", { class: "faint" }, row.trouble) : row.blocked.length ? row.blocked.map((text) => h("div", null, badge(t("blocked"), "bad"), " ", text)) : badge(t("none"), "good")) },
    { name: "", kind: "actions", of: (row) => h("button", { class: "small", onclick: () => member(name, row.client_id) }, t("Look inside")) },
  ], answer.rows, { nothing: empty(t("Nobody is connected"), t("Messages wait until a client of the group starts.")) }))));
}

// Whether all clients want the same, and every queue has an owner: also above the subscriptions.
export function agreement(answer) {
  return h("div", { class: "stack", id: "agreement" },
    answer.is_consistent === true && callout(t("All clients subscribe to the same."), "good"),
    answer.is_consistent === false && callout([t("Clients subscribe to different things: messages are lost to the wrong ones. Deploy the same version everywhere, or give each its own group."), answer.differences.map((text) => h("div", { class: "mono" }, text))], "bad"),
    answer.unowned.length > 0 && callout([t("Nobody has these queues:"), " ", h("span", { class: "mono" }, answer.unowned.join(", "))], "warn"),
    !answer.is_complete && callout(t("Not every client has answered, so there may be more."), "warn"));
}

async function member(group, client) {
  const place = h("div", { class: "stack" }, h("div", { class: "skeleton" }));
  dialog({ title: client, body: place, wide: true });
  try {
    const answer = await get(`${path("groups", group)}/clients/${encodeURIComponent(client)}?stacks=true`);
    fill(place,
      table([
        { name: t("Topic"), kind: "name", of: (row) => row.topic },
        { name: t("Broker"), of: (row) => row.broker },
        { name: t("Queue"), kind: "number", of: (row) => row.queue },
        { name: t("In hand"), kind: "number", of: (row) => count(row.cached) },
        { name: t("Last pull"), kind: "soft", of: (row) => ago(row.last_pull_ms) },
        { name: t("Last consumed"), kind: "soft", of: (row) => ago(row.last_consume_ms) },
      ], answer.queues, { nothing: empty(t("It has no queue"), t("There are more clients than queues, or it has just started.")) }),
      table([
        { name: t("Topic"), kind: "name", of: (row) => row.topic },
        { name: t("consumed/s"), kind: "number", of: (row) => rate(row.consume_ok_per_second) },
        { name: t("failed/s"), kind: "number", of: (row) => rate(row.consume_failed_per_second) },
        { name: t("handler ms"), kind: "number", of: (row) => rate(row.consume_ms) },
      ], answer.rates),
      answer.stacks && h("pre", { class: "body" }, answer.stacks),
      h("details", null, h("summary", null, t("Properties")), facts(Object.entries(answer.properties))));
  } catch (error) {
    fill(place, shownTrouble(error));
  }
}

