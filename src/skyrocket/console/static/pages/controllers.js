// Controllers, and the replica sets under them: a part of the cluster's page.
import { post, session } from "../api.js";
import { fill, h } from "../dom.js";
import { bytes, count } from "../format.js";
import { follow } from "../live.js";
import { badge, callout, dialog, dot, empty, table } from "../parts.js";
import { t } from "../words.js";

export function controllers(place, onLeave) {
  onLeave(follow("/api/controllers", (answer) => fill(place, drawn(answer)), (text) => fill(place, h("div", { class: "card" }, h("h2", null, t("Controllers")), callout(text, "bad")))));
}

function drawn(answer) {
  if (!answer.is_configured) {
    return h("div", { class: "card flush", id: "controllers" }, h("h2", null, t("Controllers")), empty(t("No broker is under a controller"),
      t("A controller makes a slave master when its master is gone. To have one: run `skyrocket controller`, give brokers enableControllerMode=true and controllerAddr=host:9878, and start them anew; the guide failover.md shows it.")));
  }
  return [
    h("div", { class: "card flush", id: "controllers" }, h("h2", null, t("Controllers"), " ", h("span", { class: "faint" }, answer.group)), table([
      { name: t("Address"), kind: "mono", of: (row) => row.address },
      { name: t("Id"), kind: "soft", of: (row) => row.id || "–" },
      { name: t("State"), of: (row) => (row.is_up ? dot(row.is_leader ? t("leads") : t("follows"), row.is_leader ? "accent" : "good") : dot(t("down"), "bad")) },
      { name: "", kind: "soft", of: (row) => row.trouble },
    ], answer.controllers)),
    answer.trouble ? callout(answer.trouble, "bad") : sets(answer),
  ];
}

function sets(answer) {
  const rows = answer.sets.flatMap((set) => set.replicas.map((replica) => ({ set, ...replica })));
  const locked = { disabled: !session.may_change, title: session.may_change ? "" : t("Log in to change things") };
  return h("div", { class: "card flush", id: "replica-sets" }, h("h2", null, t("Replica sets")), table([
    { name: t("Set"), kind: "name", of: (row) => row.set.broker },
    { name: t("Replica"), kind: "number", of: (row) => row.broker_id },
    { name: t("Address"), kind: "address", of: (row) => h("a", { href: `/cluster/${encodeURIComponent(row.address)}` }, row.address) },
    { name: t("Role"), of: (row) => badge(t(row.role), row.role === "master" ? "accent" : "") },
    { name: t("State"), of: (row) => [row.is_alive === false ? badge(t("down"), "bad") : null, " ", row.is_in_sync ? badge(t("in sync"), "good") : badge(t("not in sync"), "warn")] },
    { name: t("Behind"), kind: "number", of: (row) => (row.behind_bytes === null ? "–" : bytes(row.behind_bytes)) },
    { name: t("Master's epoch"), kind: "number", of: (row) => count(row.set.master_epoch) },
    { name: t("Epoch of the set"), kind: "number", of: (row) => count(row.set.set_epoch) },
    { name: "", kind: "actions", of: (row) => row.role !== "master" && h("button", { class: "small", "data-elect": row.broker_id, onclick: () => elect(row), ...locked }, t("Make master")) },
  ], rows, { nothing: empty(t("No replica sets"), t("The controllers know none of the brokers here.")) }));
}

function elect(row) {
  const { broker, master_id: master } = row.set;
  dialog({
    title: t("Make replica {id} master of {broker}", { id: row.broker_id, broker }),
    action: t("Make master"),
    kind: "primary danger",
    body: [
      callout(t("{address} becomes master of {broker} in place of replica {master}, which follows it then. Clients fail until they have heard of it, some seconds; they send again what was not answered.", { address: row.address, broker, master: master ?? "–" }), "warn"),
      !row.is_in_sync && callout(t("It is not in sync: it lacks what was confirmed, so the controllers refuse it."), "bad"),
    ],
    act: async () => (await post("/api/controllers/elect", { broker, broker_id: row.broker_id })).done,
  });
}
