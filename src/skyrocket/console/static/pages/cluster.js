// Brokers, slaves, name servers and controllers.
import { post, session } from "../api.js";
import { fill, h } from "../dom.js";
import { ago, bytes, compact, rate } from "../format.js";
import { follow } from "../live.js";
import { badge, callout, dialog, dot, empty, field, head, meter, table } from "../parts.js";
import { t } from "../words.js";
import { controllers } from "./controllers.js";

export function show(root, context) {
  const trouble = h("div");
  const data = h("div", { class: "stack" }, h("div", { class: "skeleton" }));
  const led = h("div", { class: "stack" });
  root.append(head(t("Cluster")), trouble, data, led);
  controllers(led, context.onLeave);
  context.onLeave(follow("/api/cluster", (answer) => {
    fill(trouble);
    fill(data, brokers(answer), h("div", { class: "halves" }, slaves(answer), names(answer)));
  }, (text) => fill(trouble, callout(text, "bad"))));
}

function brokers(answer) {
  const locked = { disabled: !session.may_change, title: session.may_change ? "" : t("Log in to change things") };
  return h("div", { class: "card flush" }, h("h2", null, t("Brokers")), table([
    { name: t("Name"), kind: "name", of: (row) => h("a", { href: `/cluster/${encodeURIComponent(row.address)}` }, row.broker, " ", h("span", { class: "faint" }, row.broker_id)) },
    { name: t("State"), of: (row) => (row.is_up ? dot(t(row.role), "good") : h("span", { title: row.trouble }, dot(t("down"), "bad"))) },
    ...(new Set(answer.brokers.map((row) => row.cluster)).size > 1 ? [{ name: t("Cluster"), kind: "soft", of: (row) => row.cluster }] : []),
    { name: t("Address"), kind: "address", of: (row) => row.address },
    { name: t("Version"), kind: "soft", of: (row) => row.version || "–" },
    { name: t("In/s"), kind: "number", of: (row) => rate(row.in_per_second) },
    { name: t("Out/s"), kind: "number", of: (row) => rate(row.out_per_second) },
    { name: t("Today in / out"), kind: "number", of: (row) => `${compact(row.in_today)} / ${compact(row.out_today)}` },
    { name: t("Disk"), of: (row) => meter(row.disk_ratio) },
    { name: t("Started"), kind: "soft", of: (row) => ago(row.started_ms) },
    { name: "", kind: "actions", of: (row) => row.role === "master" && h("button", { class: "small", onclick: () => writing(row.broker), ...locked }, t("Writing …")) },
  ], answer.brokers));
}

function slaves(answer) {
  return h("div", { class: "card flush" }, h("h2", null, t("Replication")), table([
    { name: t("Master"), kind: "name", of: (row) => row.broker },
    { name: t("Slave"), kind: "mono", of: (row) => row.address },
    { name: t("State"), of: (row) => (row.in_sync ? badge(t("in step"), "good") : badge(t("behind"), "warn")) },
    { name: t("Behind"), kind: "number", of: (row) => bytes(row.lag_bytes) },
    { name: t("Copies"), kind: "number", of: (row) => `${bytes(row.bytes_per_second)}/s` },
  ], answer.slaves, { nothing: empty(t("No slaves"), t("Each broker has its log alone.")) }));
}

function names(answer) {
  return h("div", { class: "card flush" }, h("h2", null, t("Name servers")), table([
    { name: t("Address"), kind: "mono", of: (row) => row.address },
    { name: t("State"), of: (row) => (row.is_up ? dot(t("up"), "good") : dot(t("down"), "bad")) },
    { name: "", kind: "soft", of: (row) => row.trouble },
  ], answer.name_servers));
}

function writing(broker) {
  dialog({
    title: t("Writing to {broker}", { broker }),
    action: t("Apply"),
    body: [
      field({ name: "allowed", label: t("Clients"), options: [["false", t("send to other brokers")], ["true", t("may send to this broker")]] }),
      callout(t("Clients hear of it within half a minute; what is there can still be read. Topics that are on this broker alone cannot be written to meanwhile."), "warn"),
    ],
    act: async (values) => (await post("/api/writing", { broker, allowed: values.allowed === "true" })).done,
  });
}
