// One broker: what it counts, and its settings.
import { get, path, post, put, session } from "../api.js";
import { fill, h } from "../dom.js";
import { chart } from "../chart.js";
import { ago, bytes, percent, rate } from "../format.js";
import { badge, callout, dialog, dot, empty, field, figure, head, table, tabs, trouble as shownTrouble } from "../parts.js";
import { show as reload } from "../router.js";
import { counted, t } from "../words.js";
import { differencesTable } from "./differences.js";

export async function show(root, context) {
  const address = context.names.address;
  const tab = context.query.tab || "";
  const here = `/cluster/${encodeURIComponent(address)}`;
  const state = h("span");
  const figures = h("div", { class: "grid" });
  const body = h("div", { class: "stack" }, h("div", { class: "skeleton" }));
  root.append(head(address, { crumb: { text: t("Cluster"), href: "/cluster" }, actions: [state] }), tabs(here, tab, [["", t("Runtime")], ["settings", t("Settings")], ["history", t("History")]]), figures, body);
  const page = await get(path("brokers", address));
  const broker = page.state;
  fill(state, h("b", null, broker.broker), " ", broker.is_up ? dot(t(broker.role), "good") : dot(t("down"), "bad"));
  fill(figures,
    figure(t("In"), rate(broker.in_per_second), { unit: t("msg/s") }), figure(t("Out"), rate(broker.out_per_second), { unit: t("msg/s") }),
    figure(t("Disk"), percent(broker.disk_ratio)), figure(t("Log"), broker.log_max_offset === null ? "–" : bytes(broker.log_max_offset - Math.max(broker.log_min_offset, 0)), { says: t("oldest message {when}", { when: ago(broker.earliest_message_ms) }) }),
    figure(t("Not yet dispatched"), bytes(broker.dispatch_behind_bytes)));
  if (!broker.is_up) { fill(body, callout(broker.trouble, "bad")); return; }
  if (tab === "") fill(body, page.runtime.filter((group) => Object.keys(group.rows).length).map((group) => h("div", { class: "card flush" }, h("h2", null, t(group.name)), keyTable(group.rows))));
  if (tab === "settings") await settings(body, address);
  if (tab === "history") await history(body, broker);
}

function keyTable(rows) {
  return table([{ name: t("Name"), kind: "mono", of: ([key]) => key }, { name: t("Value"), kind: "mono", of: ([, value]) => value }], Object.entries(rows));
}

async function settings(body, address) {
  const answer = await get(`${path("brokers", address)}/settings`);
  const place = h("div", { class: "card flush" });
  const search = h("input", { type: "search", placeholder: t("Filter by name or value"), "aria-label": t("Filter by name or value"), id: "setting-filter" });
  const changed = h("input", { type: "checkbox", id: "setting-changed" });
  const standard = (key) => (Object.hasOwn(answer.defaults, key) ? answer.defaults[key] : null);
  const differs = ([key, value]) => standard(key) !== null && standard(key) !== value;
  const origin = ([key, value]) => {
    if (standard(key) === null) return h("span", { class: "faint" }, "–");
    if (standard(key) === value) return h("span", { class: "faint" }, t("default"));
    return [badge(t("set"), "accent"), " ", h("span", { class: "faint" }, t("default: {value}", { value: standard(key) || t("(none)") }))];
  };
  const draw = () => {
    const text = search.value.toLowerCase();
    const rows = Object.entries(answer.settings).filter(([key, value]) => key.toLowerCase().includes(text) || value.toLowerCase().includes(text)).filter((row) => !changed.checked || differs(row));
    fill(place, table([
      { name: t("Setting"), kind: "mono", of: ([key]) => key },
      { name: t("Value"), kind: "mono", of: ([, value]) => value },
      { name: t("Origin"), of: origin },
      { name: "", kind: "actions", of: ([key, value]) => h("button", { class: "small quiet", "data-key": key, disabled: !session.may_change, title: session.may_change ? "" : t("Log in to change things"), onclick: () => edit(address, key, value) }, t("Change")) },
    ], rows, { nothing: empty(t("No such setting")) }));
  };
  search.addEventListener("input", draw);
  changed.addEventListener("change", draw);
  draw();
  fill(body, h("div", { class: "bar" }, search, h("label", { class: "check" }, changed, t("Only what differs from the default")), h("span", { class: "faint" }, counted(Object.keys(answer.settings).length, "{n} setting", "{n} settings"))), place);
}

function edit(address, key, value) {
  const plan = h("div");
  const base = `${path("brokers", address)}/settings`;
  const box = dialog({
    title: t("Change {name}", { name: key }),
    action: t("Apply"),
    body: [field({ name: "value", label: key, value }), plan, callout(t("The broker takes it at once if it can, and keeps it. What needs a restart, it refuses."))],
    act: async (values) => {
      const done = await put(base, { settings: { [key]: values.value } });
      reload();
      return done.done;
    },
  });
  box.querySelector("[name=value]").addEventListener("input", async (event) => {
    const found = await post(`${base}/preview`, { settings: { [key]: event.target.value } }).catch((error) => error);
    fill(plan, found instanceof Error ? shownTrouble(found) : differencesTable(found.differences));
  });
}

async function history(body, broker) {
  const series = (kind) => get(`/api/history?series=${encodeURIComponent(`${kind}:broker:${broker.broker}:${broker.broker_id}`)}&hours=24`);
  const [incoming, outgoing, disk] = await Promise.all([series("in"), series("out"), series("disk")]);
  fill(body,
    h("div", { class: "card" }, h("h2", null, t("Messages per second, last 24 hours")), chart([{ name: t("In"), kind: "in", samples: incoming.samples }, { name: t("Out"), kind: "out", samples: outgoing.samples }], incoming.from_ms, incoming.to_ms, rate)),
    h("div", { class: "card" }, h("h2", null, t("Disk")), chart([{ name: t("Disk"), kind: "lag", samples: disk.samples }], disk.from_ms, disk.to_ms, percent)));
}
