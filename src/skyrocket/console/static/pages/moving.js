// Letting groups go on elsewhere in a topic, skip what waits, or read no more: for the pages of groups and of topics.
import { get, path, post, query } from "../api.js";
import { fill, h } from "../dom.js";
import { count, localInput } from "../format.js";
import { callout, dialog, field, notice, table, trouble as shownTrouble, valuesOf } from "../parts.js";
import { t } from "../words.js";

const PLACES = () => [["latest", t("the end: skip what waits")], ["earliest", t("the beginning: everything again")], ["time", t("a time")], ["offset", t("an offset of every queue")]];

// `groups` and `topics` are those to choose from; `skip`: only to the end.
export function moveGroup({ groups, topics, skip = false }) {
  if (!groups.length) { notice(t("No group consumes it."), "bad"); return; }
  if (!topics.length) { notice(t("The group has not consumed anything yet."), "bad"); return; }
  const plan = h("div", { id: "plan", class: "stack" });
  const at = field({ name: "at", label: t("Time"), type: "datetime-local", value: localInput(Date.now() - 3600_000) });
  const offset = field({ name: "offset", label: t("Offset"), type: "number", value: 0, min: 0 });
  const wish = (values) => ({
    topic: values.topic,
    to: skip ? "latest" : values.to,
    at_ms: values.to === "time" && values.at ? new Date(values.at).getTime() : null,
    offset: values.to === "offset" ? values.offset : null,
  });
  const words = skip ? { title: t("Skip what waits"), action: t("Skip") } : { title: t("Reset offsets of {name}", { name: groups.length === 1 ? groups[0] : topics[0] }), action: t("Reset offsets") };
  const box = dialog({
    ...words,
    kind: "primary danger",
    wide: true,
    body: [
      h("div", { class: "form-row" },
        field({ name: "group", label: t("Group"), options: groups }),
        field({ name: "topic", label: t("Topic"), options: topics }),
        !skip && field({ name: "to", label: t("Go to"), options: PLACES() }),
        !skip && at, !skip && offset),
      plan,
    ],
    act: async (values) => (await post(`${path("groups", values.group)}/reset`, wish(values))).done,
  });
  const preview = async () => {
    const values = valuesOf(box);
    at.style.display = values.to === "time" ? "" : "none";
    offset.style.display = values.to === "offset" ? "" : "none";
    const blank = (value) => value === "" || value === null || value === undefined || Number.isNaN(value);
    if (!skip && ((values.to === "time" && !values.at) || (values.to === "offset" && blank(values.offset)))) { fill(plan); return; }
    const found = await get(query(`${path("groups", values.group)}/reset`, wish(values))).catch((error) => error);
    fill(plan, found instanceof Error ? shownTrouble(found) : planned(found));
  };
  box.addEventListener("change", preview);
  preview();
}

function planned(found) {
  return [
    callout(t("Messages that would be skipped: {skipped}, consumed again: {repeated}. Connected clients: {clients}.", { skipped: count(found.skipped), repeated: count(found.repeated), clients: count(found.clients) }), found.skipped ? "bad" : "warn"),
    h("div", { class: "card flush" }, table([
      { name: t("Broker"), of: (row) => row.broker },
      { name: t("Queue"), kind: "number", of: (row) => row.queue },
      { name: t("Now"), kind: "number", of: (row) => count(row.committed) },
      { name: t("Then"), kind: "number", of: (row) => h("b", null, count(row.target)) },
      { name: t("Skipped"), kind: "number", of: (row) => count(row.skipped) },
      { name: t("Again"), kind: "number", of: (row) => count(row.repeated) },
      { name: t("Left to consume"), kind: "number", of: (row) => count(row.left) },
    ], found.moves))];
}

export function groupReading(group, topic, allowed) {
  dialog({
    title: allowed ? t("Resume reading") : t("Pause reading"),
    action: allowed ? t("Resume") : t("Pause reading"),
    body: callout(allowed ? t("{group} reads {topic} again.", { group, topic }) : t("Brokers refuse {group} what it pulls from {topic}; messages wait meanwhile.", { group, topic }), "warn"),
    act: async () => (await post(`${path("groups", group)}/reading`, { topic, allowed })).done,
  });
}
