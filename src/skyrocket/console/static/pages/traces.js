// The way of a message from its send to every consumption.
import { get, path, query } from "../api.js";
import { fill, h } from "../dom.js";
import { count, duration, moment } from "../format.js";
import { badge, callout, empty, field, figure, head, table, trouble as shownTrouble, valuesOf } from "../parts.js";
import { go, withQuery } from "../router.js";
import { said, t } from "../words.js";

export async function show(root, context) {
  const wanted = context.query;
  const data = h("div", { class: "stack" });
  const form = h("form", { class: "card bar", onsubmit: (event) => { event.preventDefault(); go(withQuery(valuesOf(form))); } },
    field({ name: "id", label: t("Message id or key"), value: wanted.id || "" }),
    field({ name: "topic", label: t("Trace topic"), value: wanted.topic || "", placeholder: "RMQ_SYS_TRACE_TOPIC" }),
    h("button", { class: "primary" }, t("Search")));
  root.append(head(t("Traces"), { says: t("from the send to every consumption") }), form, data);
  if (!wanted.id) { await times(data, wanted); return; }
  try {
    const answer = await get(query(path("traces", wanted.id), { trace_topic: wanted.topic }));
    fill(data, answer.trouble && callout(said(answer.trouble, answer.trouble_phrase), "warn"), answer.steps.length ? [summary(answer.steps), waterfall(answer.steps), list(answer.steps)] : empty(t("No trace"), t("Was the trace of its producer and consumers on?")));
  } catch (error) {
    fill(data, shownTrouble(error));
  }
}

const STAGES = { send: "Send", wait: "From the store to a handler", consume: "Handler" };

// Without an id: how long each stage took for everybody.
async function times(data, wanted) {
  fill(data, h("div", { class: "skeleton" }));
  try {
    const answer = await get(query("/api/traces", { trace_topic: wanted.topic }));
    const ms = (name, of) => ({ name, kind: "number", of: (row) => duration(of(row)) });
    fill(data, answer.trouble && callout(said(answer.trouble, answer.trouble_phrase), "warn"), answer.rows.length ? h("div", { class: "card flush", id: "times" }, h("h2", null, t("How long it took")), table([
      { name: t("Step"), of: (row) => badge(t(STAGES[row.stage]), row.stage === "send" ? "accent" : "") },
      { name: t("Topic or group"), kind: "name", of: (row) => h("a", { href: `/${row.stage === "send" ? "topics" : "groups"}/${encodeURIComponent(row.name)}` }, row.name) },
      { name: t("Count"), kind: "number", of: (row) => count(row.count) },
      { name: t("Failures"), kind: "number", of: (row) => (row.failures ? badge(count(row.failures), "bad") : "0") },
      ms("p50", (row) => row.p50_ms), ms("p90", (row) => row.p90_ms), ms("p99", (row) => row.p99_ms), ms(t("Slowest"), (row) => row.slowest_ms),
    ], answer.rows), h("div", { class: "faint", style: { padding: "8px 14px" } }, t("Told between {from} and {to}.", { from: moment(answer.from_ms), to: moment(answer.to_ms) })))
      : empty(t("Give a message id or key"), t("Clients tell what they did when their trace is on.")));
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
  const stores = steps.filter((step) => step.kind === "store").map((step) => step.began_ms);
  const stored = stores.length ? Math.min(...stores) : sends.length ? sends[0].began_ms + (sends[0].cost_ms || 0) : null;
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
    h("div", null, badge(t(step.kind), step.kind === "send" ? "accent" : ""), " ", step.group || step.host),
    h("div", { class: "track" }, h("div", { class: `span ${step.succeeded === false ? "bad" : step.kind === "consume" ? "good" : ""}`, style: { left: `min(${at(step.began_ms)}, calc(100% - 4px))`, width: at(from + (step.cost_ms || 0)) }, title: said(step.says, step.says_phrase) }))))));
}

function list(steps) {
  return h("div", { class: "card flush" }, table([
    { name: t("Time"), kind: "soft", of: (step) => moment(step.began_ms, true) },
    { name: t("Step"), of: (step) => badge(t(step.kind), step.kind === "send" ? "accent" : "") },
    { name: t("Group"), kind: "name", of: (step) => step.group },
    { name: t("Took"), kind: "number", of: (step) => duration(step.cost_ms) },
    { name: t("Outcome"), of: (step) => (step.succeeded === null ? badge(t("not ended")) : step.succeeded ? badge(t("well"), "good") : badge(t("failed"), "bad")) },
    { name: t("Client"), kind: "mono", of: (step) => step.host },
    { name: "", kind: "soft", of: (step) => said(step.says, step.says_phrase) },
  ], steps));
}
