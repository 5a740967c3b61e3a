// What fires, what the checks find, and the rules.
import { path, post, put, remove, session } from "../api.js";
import { fill, h } from "../dom.js";
import { ago, count, moment } from "../format.js";
import { follow } from "../live.js";
import { badge, callout, dialog, empty, field, head, table } from "../parts.js";
import { show as reload } from "../router.js";
import { t } from "../words.js";
import { ALERT_KINDS } from "./alert_kinds.js";
import { findingRow } from "./overview.js";


export function show(root, context) {
  const locked = { disabled: !session.may_change, title: session.may_change ? "" : t("Log in to change things") };
  const trouble = h("div");
  const firing = h("div", { class: "card flush", id: "firing" });
  const checks = h("div", { class: "card", id: "checks" });
  const rules = h("div", { class: "card flush", id: "rules" });
  const muted = h("div", { class: "card flush", id: "muted", hidden: true });
  const news = h("div", { class: "card flush" });
  root.append(head(t("Alerts"), { actions: [h("button", { class: "primary", id: "new-rule", onclick: () => edit(null), ...locked }, t("New rule"))] }), trouble, h("div", { class: "stack" }, firing, muted, checks, rules, news));
  context.onLeave(follow("/api/health", (answer) => fill(checks, h("div", { class: "card-head" }, h("h2", null, t("What the checks find now")), h("span", { class: "grow" }), h("span", { class: "soft" }, answer.examined_ms ? t("examined {when}", { when: ago(answer.examined_ms) }) : t("the examination goes on"))), answer.findings.length ? answer.findings.map(findingRow) : empty(t("All well"), t("No check has found anything."))), (text) => fill(checks, callout(text, "bad"))));
  context.onLeave(follow("/api/alerts", (answer) => {
    fill(trouble);
    fill(firing, h("h2", null, t("Firing")), table([
      { name: "", of: (row) => badge(t(row.severity), row.severity === "critical" ? "bad" : "warn") },
      { name: t("What"), of: (row) => t(ALERT_KINDS[row.kind]) },
      { name: t("Name"), kind: "name", of: (row) => row.name },
      { name: t("Value"), kind: "number", of: (row) => `${count(row.value)} / ${row.threshold}` },
      { name: t("Since"), kind: "soft", of: (row) => ago(row.since_ms) },
      { name: "", of: (row) => mutedBadge(row.muted_until_ms) },
      { name: "", kind: "actions", of: (row) => h("button", { class: "small", onclick: () => mute(row.rule, row.name), ...locked }, t("Mute")) },
    ], answer.firing, { nothing: empty(t("No alert fires")) }));
    muted.hidden = answer.mutes.length === 0;
    fill(muted, h("h2", null, t("Muted")), table([
      { name: t("Rule"), kind: "name", of: (row) => row.rule },
      { name: t("Names"), kind: "mono", of: (row) => row.name },
      { name: t("Until"), kind: "soft", of: (row) => moment(row.until_ms) },
      { name: t("Who"), of: (row) => row.by || "–" },
      { name: "", kind: "actions", of: (row) => h("button", { class: "small", onclick: () => mute(row.rule, row.name), ...locked }, t("Change")) },
    ], answer.mutes));
    fill(rules, h("h2", null, t("Rules")), table([
      { name: t("Rule"), kind: "name", of: (row) => row.id },
      { name: t("What"), of: (row) => t(ALERT_KINDS[row.kind]) },
      { name: t("Threshold"), kind: "number", of: (row) => row.threshold },
      { name: t("Names"), kind: "mono", of: (row) => row.subject },
      { name: t("For minutes"), kind: "number", of: (row) => row.minutes },
      { name: "", of: (row) => badge(t(row.severity), row.severity === "critical" ? "bad" : "warn") },
      { name: "", kind: "actions", of: (row) => [h("button", { class: "small", onclick: () => mute(row.id, "*"), ...locked }, t("Mute")), " ", h("button", { class: "small", onclick: () => edit(row), ...locked }, t("Change")), " ", h("button", { class: "small danger", onclick: () => drop(row), ...locked }, t("Delete"))] },
    ], answer.rules));
    fill(news, h("h2", null, t("Lately")), table([
      { name: t("Time"), kind: "soft", of: (row) => moment(row.at_ms) },
      { name: "", of: (row) => (row.is_firing ? badge(t("began"), "bad") : badge(t("ended"), "good")) },
      { name: t("What"), of: (row) => t(ALERT_KINDS[row.kind]) },
      { name: t("Name"), kind: "name", of: (row) => row.name },
      { name: t("Value"), kind: "number", of: (row) => count(row.value) },
    ], answer.news, { nothing: empty(t("Nothing yet")) }));
  }, (text) => fill(trouble, callout(text, "bad"))));
}

const again = (done) => { reload(); return done.done; };

function edit(rule) {
  dialog({
    title: rule ? t("Change {name}", { name: rule.id }) : t("New rule"),
    action: t("Apply"),
    body: [
      !rule && field({ name: "id", label: t("Name"), required: true, placeholder: "orders-late" }),
      field({ name: "kind", label: t("What"), options: Object.entries(ALERT_KINDS).map(([key, text]) => [key, t(text)]), value: rule ? rule.kind : "lag" }),
      h("div", { class: "form-row" },
        field({ name: "threshold", label: t("Threshold"), value: rule ? rule.threshold : 1000 }),
        field({ name: "minutes", label: t("For minutes"), type: "number", value: rule ? rule.minutes : 5, min: 0 }),
        field({ name: "severity", label: t("Severity"), options: [["warning", t("warning")], ["critical", t("critical")]], value: rule ? rule.severity : "warning" })),
      field({ name: "subject", label: t("Names"), value: rule ? rule.subject : "*", hint: t("A pattern, as shop-*") }),
    ],
    act: async (values) => again(await put(path("alerts", "rules", rule ? rule.id : values.id), { kind: values.kind, threshold: Number(values.threshold), minutes: values.minutes, severity: values.severity, subject: values.subject })),
  });
}

const mutedBadge = (until) => until > 0 && badge(t("muted until {when}", { when: moment(until) }), "warn");

// One name of a rule, or all of it with "*".
function mute(rule, name) {
  dialog({
    title: t("Mute {name}", { name: name === "*" ? rule : `${rule}: ${name}` }),
    action: t("Mute"),
    body: field({ name: "minutes", label: t("For"), options: [[60, t("1 hour")], [1440, t("24 hours")], [10080, t("7 days")], [0, t("not any more")]] }),
    act: async (values) => again(await post(`${path("alerts", "rules", rule)}/mute`, { minutes: Number(values.minutes), name })),
  });
}

function drop(rule) {
  dialog({ title: t("Delete {name}", { name: rule.id }), action: t("Delete"), kind: "primary danger", body: callout(`${t(ALERT_KINDS[rule.kind])} ${rule.subject}`, "warn"), act: async () => again(await remove(path("alerts", "rules", rule.id))) });
}
