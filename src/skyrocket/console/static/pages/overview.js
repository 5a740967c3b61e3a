// Is everything up, how much comes and goes, what waits.
import { h, fill } from "../dom.js";
import { chart, spark } from "../chart.js";
import { ago, compact, count, duration, rate } from "../format.js";
import { follow } from "../live.js";
import { badge, callout, dot, empty, figure, head, meter, table } from "../parts.js";
import { counted, said, t } from "../words.js";
import { ALERT_KINDS } from "./alert_kinds.js";

const PLACES = { "transactions-open": "/transactions", "default-password": "/access" };

export const findingLink = (finding) => PLACES[finding.code] || (finding.subject === "broker" ? "/cluster" : `/${finding.subject}s/${encodeURIComponent(finding.name)}`);

const MOST = 6;

const KINDS = { critical: "bad", warning: "warn", note: "note" };

export function findingRow(finding) {
  return h("div", { class: "finding" }, badge(t(finding.severity), KINDS[finding.severity]),
    h("div", null, h("div", null, h("a", { href: findingLink(finding) }, finding.name), " ", said(finding.says, finding.says_phrase)), h("div", { class: "remedy" }, "→ ", said(finding.remedy, finding.remedy_phrase))));
}

export function show(root, context) {
  const trouble = h("div");
  const data = h("div", { class: "skeleton" });
  root.append(head(t("Overview"), { actions: [h("a", { class: "button", href: "/counter" }, t("Big counter"))] }), trouble, data);
  context.onLeave(follow("/api/overview", (answer) => {
    fill(trouble);
    data.className = "";
    fill(data, figures(answer), charts(answer), h("div", { class: "halves" }, brokers(answer), h("div", { class: "stack" }, late(answer), alerts(answer), findings(answer))));
  }, (text) => fill(trouble, callout(text, "bad"))));
}

function figures(answer) {
  const up = answer.brokers.filter((broker) => broker.is_up).length;
  const growth = answer.dead_letters === null ? null : answer.dead_letters - answer.dead_letters_before;
  return [h("div", { class: "grid" },
    figure(t("In"), rate(answer.in_per_second), { unit: t("msg/s"), says: t("{n} today", { n: compact(answer.in_today) }), extra: spark(answer.in_history, "in") }),
    figure(t("Out"), rate(answer.out_per_second), { unit: t("msg/s"), says: t("{n} today", { n: compact(answer.out_today) }), extra: spark(answer.out_history, "out") }),
    figure(t("Waiting for groups"), compact(answer.lag), { unit: answer.lag === 1 ? t("message") : t("messages"), says: counted(answer.groups, "in {n} group", "in {n} groups", count(answer.groups)), extra: spark(answer.lag_history, "lag"), href: "/groups?sort=-lag" })),
  h("div", { class: "grid" },
    figure(t("Brokers"), `${up} / ${answer.brokers.length}`, { unit: t("up"), says: `${answer.clusters.join(", ")} · ${counted(answer.topics, "{n} topic", "{n} topics", count(answer.topics))}`, href: "/cluster" }),
    figure(t("Dead letters"), answer.dead_letters === null ? "–" : compact(answer.dead_letters), { says: growth === null ? "" : growth > 0 ? t("{n} in the last hour", { n: `+${count(growth)}` }) : t("none in the last hour"), href: "/dead-letters" }),
    figure(t("Delayed"), compact(answer.delayed), { says: t("wait for their time"), href: "/delayed" }),
    figure(t("Half messages"), answer.half_messages === null ? "–" : count(answer.half_messages), { says: answer.half_messages === null ? t("these brokers do not tell") : t("wait for their transaction"), href: "/transactions" }))];
}

function charts(answer) {
  const from = answer.updated_ms - 3600_000;
  return h("div", { class: "halves" },
    h("div", { class: "card" }, h("h2", null, t("Messages per second, last hour")), chart([{ name: t("In"), kind: "in", samples: answer.in_history }, { name: t("Out"), kind: "out", samples: answer.out_history }], from, answer.updated_ms, rate)),
    h("div", { class: "card" }, h("h2", null, t("Waiting for groups, last hour")), chart([{ name: t("Lag"), kind: "lag", samples: answer.lag_history }], from, answer.updated_ms)));
}

function brokers(answer) {
  return h("div", { class: "card flush" }, h("h2", null, t("Brokers")), table([
    { name: t("Name"), kind: "name", of: (row) => h("a", { href: `/cluster/${encodeURIComponent(row.address)}` }, row.broker, row.broker_id ? ` (${row.broker_id})` : "") },
    { name: t("State"), of: (row) => (row.is_up ? dot(t(row.role), "good") : dot(t("down"), "bad")) },
    { name: t("In/s"), kind: "number", of: (row) => rate(row.in_per_second) },
    { name: t("Out/s"), kind: "number", of: (row) => rate(row.out_per_second) },
    { name: t("Disk"), of: (row) => meter(row.disk_ratio) },
  ], answer.brokers));
}

function late(answer) {
  return h("div", { class: "card flush" }, h("h2", null, t("Groups that are behind")), table([
    { name: t("Group"), kind: "name", of: (row) => h("a", { href: `/groups/${encodeURIComponent(row.group)}` }, row.group) },
    { name: t("Lag"), kind: "number", of: (row) => count(row.lag) },
    { name: t("Time lag"), kind: "number", of: (row) => duration(row.late_ms) },
    { name: t("Out/s"), kind: "number", of: (row) => rate(row.out_per_second) },
  ], answer.late_groups, { nothing: empty(t("Nobody is behind")) }));
}

function alerts(answer) {
  return h("div", { class: "card flush", id: "recent-alerts" }, h("div", { class: "card-head" }, h("h2", null, t("Recent alerts")), h("span", { class: "grow" }), answer.firing > 0 && badge(counted(answer.firing, "{n} fires", "{n} fire"), "bad")), table([
    { name: t("Time"), kind: "soft", of: (row) => ago(row.at_ms) },
    { name: "", of: (row) => (row.is_firing ? badge(t("began"), row.severity === "critical" ? "bad" : "warn") : badge(t("ended"), "good")) },
    { name: t("What"), of: (row) => t(ALERT_KINDS[row.kind]) },
    { name: t("Name"), kind: "name", of: (row) => h("a", { href: "/alerts" }, row.name) },
  ], answer.recent_alerts, { nothing: empty(t("No alert lately")) }));
}

// Notes are no illness: they are counted here, and told on the page of alerts.
function findings(answer) {
  const ill = answer.findings.filter((finding) => finding.severity !== "note");
  const notes = answer.findings.length - ill.length;
  const more = ill.length > MOST ? t("All {n}", { n: answer.findings.length }) : notes > 0 && counted(notes, "{n} note", "{n} notes");
  return h("div", { class: "card", id: "findings" }, h("div", { class: "card-head" }, h("h2", null, t("To look at")), h("span", { class: "grow" }), more && h("a", { href: "/alerts" }, more)),
    ill.length ? ill.slice(0, MOST).map(findingRow) : empty(t("All well"), t("No check has found anything wrong.")));
}
