// The way of a message from its send to every consumption.
import { get, path, query } from "../api.js";
import { fill, h } from "../dom.js";
import { duration, moment } from "../format.js";
import { badge, callout, empty, field, figure, head, table, trouble as shownTrouble, valuesOf } from "../parts.js";
import { go, withQuery } from "../router.js";
import { t } from "../words.js";

export async function show(root, context) {
  const wanted = context.query;
  const data = h("div", { class: "stack" });
  const form = h("form", { class: "card bar", onsubmit: (event) => { event.preventDefault(); go(withQuery(valuesOf(form))); } },
    field({ name: "id", label: t("Message id or key"), value: wanted.id || "" }),
    field({ name: "topic", label: t("Trace topic"), value: wanted.topic || "", placeholder: "RMQ_SYS_TRACE_TOPIC" }),
    h("button", { class: "primary" }, t("Search")));
  root.append(head(t("Traces"), { says: t("from the send to every consumption") }), form, data);
  if (!wanted.id) { fill(data, empty(t("Give a message id or key"), t("Clients tell what they did when their trace is on."))); return; }
  try {
    const answer = await get(query(path("traces", wanted.id), { trace_topic: wanted.topic }));
    fill(data, answer.trouble && callout(answer.trouble, "warn"), answer.steps.length ? [summary(answer.steps), waterfall(answer.steps), list(answer.steps)] : empty(t("No trace"), t("Was the trace of its producer and consumers on?")));
  } catch (error) {
    fill(data, shownTrouble(error));
  }
}

function percentile(values, share) {
  const sorted = values.filter((value) => value !== null).sort((a, b) => a - b);
  return sorted.length ? sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] : null;
}

function summary(steps) {
  const sends = steps.filter((step) => step.kind === "send");
  const consumes = steps.filter((step) => step.kind === "consume");
  const stored = sends.length ? sends[0].began_ms + (sends[0].cost_ms || 0) : null;
  const waits = stored === null ? [] : consumes.map((step) => Math.max(step.began_ms - stored, 0));
  return h("div", { class: "grid" },
    figure(t("Send"), duration(percentile(sends.map((step) => step.cost_ms), 0.5))),
    figure(t("From the store to a handler"), duration(percentile(waits, 0.5)), { says: waits.length > 1 ? t("slowest {time}", { time: duration(percentile(waits, 1)) }) : "" }),
    figure(t("Handler"), duration(percentile(consumes.map((step) => step.cost_ms), 0.5)), { says: consumes.length > 1 ? t("slowest {time}", { time: duration(percentile(consumes.map((step) => step.cost_ms), 1)) }) : "" }),
    figure(t("Failures"), steps.filter((step) => step.succeeded === false).length));
}

function waterfall(steps) {
  const from = Math.min(...steps.map((step) => step.began_ms));
  const to = Math.max(...steps.map((step) => step.began_ms + (step.cost_ms || 1)), from + 1);
  const at = (ms) => `${((ms - from) / (to - from)) * 100}%`;
  return h("div", { class: "card" }, h("h2", null, `${moment(from, true)} + ${duration(to - from)}`), h("div", { class: "waterfall" }, steps.map((step) => h("div", { class: "lane" },
    h("div", null, badge(t(step.kind), step.kind === "send" ? "accent" : ""), " ", step.group),
    h("div", { class: "track" }, h("div", { class: `span ${step.succeeded === false ? "bad" : step.kind === "consume" ? "good" : ""}`, style: { left: `min(${at(step.began_ms)}, calc(100% - 4px))`, width: at(from + (step.cost_ms || 0)) }, title: step.says }))))));
}

function list(steps) {
  return h("div", { class: "card flush" }, table([
    { name: t("Time"), kind: "soft", of: (step) => moment(step.began_ms, true) },
    { name: t("Step"), of: (step) => badge(t(step.kind), step.kind === "send" ? "accent" : "") },
    { name: t("Group"), kind: "name", of: (step) => step.group },
    { name: t("Took"), kind: "number", of: (step) => duration(step.cost_ms) },
    { name: t("Outcome"), of: (step) => (step.succeeded === null ? badge(t("not ended")) : step.succeeded ? badge(t("well"), "good") : badge(t("failed"), "bad")) },
    { name: t("Client"), kind: "mono", of: (step) => step.host },
    { name: "", kind: "soft", of: (step) => step.says },
  ], steps));
}
