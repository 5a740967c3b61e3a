// Where a topic is, who writes to it and who may: tabs of its page.
import { get, path, session } from "../api.js";
import { fill, h } from "../dom.js";
import { ago, count } from "../format.js";
import { badge, callout, empty, table, trouble as shownTrouble } from "../parts.js";
import { counted, said, t } from "../words.js";
import { rightsTable } from "./access.js";
import { PERMISSIONS } from "./topics.js";

export const TABS = { producers, route, rights };

async function answerOf(place, address) {
  fill(place, h("div", { class: "card flush" }, h("div", { class: "skeleton" })));
  const answer = await get(address).catch((error) => error);
  if (answer instanceof Error) fill(place, shownTrouble(answer));
  return answer instanceof Error ? null : answer;
}

async function producers(place, topic) {
  const answer = await answerOf(place, `${path("topics", topic)}/producers`);
  if (!answer) return;
  fill(place, h("div", { class: "stack" },
    callout(counted(answer.looked_at, "Producers do not tell brokers what they write to. Shown are all that are connected to the brokers of this topic; the newest message says who sent it.", "Producers do not tell brokers what they write to. Shown are all that are connected to the brokers of this topic; the newest {n} messages say who sent them.", count(answer.looked_at))),
    h("div", { class: "card flush", id: "producers" }, table([
      { name: t("Producer group"), kind: "name", of: (row) => row.group || badge(t("not connected"), "warn") },
      { name: t("Client"), kind: "mono", of: (row) => row.client_id || "–" },
      { name: t("Address"), kind: "mono", of: (row) => row.address },
      { name: t("Broker"), kind: "soft", of: (row) => row.broker },
      { name: t("Language"), of: (row) => row.language || "–" },
      { name: t("Version"), kind: "soft", of: (row) => row.version || "–" },
      { name: t("Sent of these"), kind: "number", of: (row) => count(row.messages) },
      { name: t("Last sent"), kind: "soft", of: (row) => ago(row.last_sent_ms) },
    ], answer.rows, { nothing: empty(t("No producer is connected"), t("One appears here when it connects to a broker of this topic.")) }))));
}

async function route(place, topic) {
  const answer = await answerOf(place, `${path("topics", topic)}/route`);
  if (!answer) return;
  const role = (id) => badge(id === "0" ? t("master") : t("slave"), id === "0" ? "accent" : "");
  fill(place, h("div", { class: "stack" },
    callout(t("What clients hear from the name servers: {servers}", { servers: answer.name_servers.join(", ") })),
    answer.order && callout(t("The queues of this topic are fixed: {order}", { order: answer.order }), "warn"),
    h("div", { class: "card flush", id: "route" }, table([
      { name: t("Broker"), kind: "name", of: (row) => row.broker },
      { name: t("Cluster"), kind: "soft", of: (row) => row.cluster },
      { name: t("Read queues"), kind: "number", of: (row) => count(row.read_queues) },
      { name: t("Write queues"), kind: "number", of: (row) => count(row.write_queues) },
      { name: t("Permission"), of: (row) => t(PERMISSIONS[row.permission] || String(row.permission)) },
      { name: t("Addresses"), kind: "mono", of: (row) => Object.entries(row.addresses).map(([id, address]) => h("div", null, role(id), " ", h("a", { href: `/cluster/${encodeURIComponent(address)}` }, address))) },
    ], answer.rows, { nothing: empty(t("No queues")) }))));
}

async function rights(place, topic) {
  if (!session.account) { fill(place, callout(t("Log in to see accounts."), "warn")); return; }
  const answer = await answerOf(place, path("access", "topics", topic));
  if (!answer) return;
  fill(place, h("div", { class: "stack" },
    answer.trouble ? callout(said(answer.trouble, answer.trouble_phrase), "warn") : callout(t("Rights that name this topic, or a pattern that it fits. Super users may do everything.")),
    !answer.trouble && h("div", { class: "card flush", id: "rights" }, rightsTable(answer.rights, empty(t("No right names this topic"), t("Only super users may use it.")))),
    h("div", { class: "bar" }, h("a", { class: "button", href: "/access" }, t("Access")))));
}
