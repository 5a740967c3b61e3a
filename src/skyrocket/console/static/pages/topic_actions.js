// What is done with a whole topic: nobody reads it for a while, and copies of its settings and messages.
import { get, path, post, query, session } from "../api.js";
import { fill, h } from "../dom.js";
import { count, duration, localInput, moment } from "../format.js";
import { badge, callout, dialog, field, notice, table, trouble as shownTrouble, valuesOf } from "../parts.js";
import { counted, t } from "../words.js";

const READ = 4;
const LOOK_MS = 1000;
const STATES = { running: "accent", done: "good", stopped: "warn", failed: "bad" };

export const pausedOn = (configs) => configs.filter((config) => !(config.permission & READ)).map((config) => config.broker);

export async function topicReading(topic, allowed, again) {
  if (allowed) {
    dialog({
      title: t("Resume reading of {topic}", { topic }),
      action: t("Resume reading"),
      body: callout(t("Its brokers let {topic} be read again. Groups go on where they were, within a minute.", { topic })),
      act: async () => done(await post(`${path("topics", topic)}/reading`, { allowed }), again),
    });
    return;
  }
  const impact = await get(`${path("topics", topic)}/impact`).catch((error) => { notice(error.message, "bad"); return null; });
  if (!impact) return;
  dialog({
    title: t("Pause reading of {topic}", { topic }),
    action: t("Pause reading"),
    kind: "primary danger",
    body: [
      callout(t("All its brokers refuse whoever reads {topic}: every group, and these pages. Writing goes on, messages wait; retries are in topics of their own and still come. It lasts until somebody resumes it here, however long that is.", { topic }), impact.clients ? "bad" : "warn"),
      groupsOf(impact.groups, t("No group consumes it.")),
    ],
    act: async () => done(await post(`${path("topics", topic)}/reading`, { allowed }), again),
  });
}

function done(answer, again) {
  again();
  return answer.done;
}

function groupsOf(groups, nothing) {
  if (!groups.length) return callout(nothing);
  return h("div", { class: "card flush" }, table([
    { name: t("Group"), kind: "name", of: (row) => row.group },
    { name: t("Clients"), kind: "number", of: (row) => count(row.clients) },
    { name: t("Lag"), kind: "number", of: (row) => count(row.lag) },
  ], groups));
}

export function copyTopic(topic, again) {
  const plan = h("div", { id: "plan", class: "stack" });
  const wish = (values) => ({
    target: values.target,
    since_ms: values.since ? new Date(values.since).getTime() : 0,
    until_ms: values.until ? new Date(values.until).getTime() : null,
    most: values.most || 1,
    per_second: values.per_second || 0,
  });
  const span = [
    field({ name: "since", label: t("Stored since"), type: "datetime-local", value: localInput(Date.now() - 3600_000) }),
    field({ name: "until", label: t("and before"), type: "datetime-local", hint: t("Empty: now") }),
    field({ name: "most", label: t("At most, the oldest first"), type: "number", value: 10000, min: 1, max: 1000000 }),
    field({ name: "per_second", label: t("Messages per second"), type: "number", value: 100, min: 0, hint: t("0: as fast as it goes") })];
  const box = dialog({
    title: t("Copy {topic}", { topic }),
    action: t("Copy"),
    wide: true,
    body: [
      h("div", { class: "form-row" },
        field({ name: "what", label: t("What"), options: [["messages", t("its messages")], ["settings", t("its settings")]] }),
        field({ name: "target", label: t("To topic"), required: true }), span),
      plan,
    ],
    act: async (values) => {
      if (values.what === "settings") return (await post(`${path("topics", topic)}/settings-copy`, { target: values.target })).done;
      const begun = await post(`${path("topics", topic)}/copy`, wish(values));
      again();
      return t("Copying {n} of {source} to {target}", { n: count(begun.messages), source: begun.source, target: begun.target });
    },
  });
  const preview = async () => {
    const values = valuesOf(box);
    for (const each of span) each.style.display = values.what === "messages" ? "" : "none";
    if (values.what === "settings") fill(plan, callout(t("A new topic on the same brokers, with the same queues, permission and attributes. Messages and groups are not copied.")));
    else if (!values.target) fill(plan, callout(t("Choose a topic, and what would be copied is counted.")));
    else {
      const found = await get(query(`${path("topics", topic)}/copy`, wish(values))).catch((error) => error);
      fill(plan, found instanceof Error ? shownTrouble(found) : planned(found, values.target));
    }
  };
  box.addEventListener("change", preview);
  preview();
}

function planned(found, target) {
  return [
    callout(h("div", null,
      counted(found.copied, "{n} message would be copied", "{n} messages would be copied", count(found.copied)),
      found.copied < found.messages && ` ${t("of {n}", { n: count(found.messages) })}`,
      found.seconds !== null && ` ${t("in {time} at least", { time: duration(found.seconds * 1000) })}`, ". ",
      t("They are new messages of {target}, with body, tag, keys and properties of the old ones; the groups below get them.", { target })), "warn"),
    groupsOf(found.groups, t("No group consumes {topic}.", { topic: target })),
  ];
}

// Copies from and to a topic: looked at again while one runs. Call what it returns when there is a new one.
export function followCopies(place, topic, onLeave) {
  let timer = null;
  const rows = h("div");
  const card = h("div", { class: "card flush", id: "copies", style: { "margin-bottom": "16px" } }, h("h2", null, t("Copies of messages")), rows);
  const look = async () => {
    clearTimeout(timer);
    const answer = await get("/api/copies").catch((error) => error);
    if (answer instanceof Error) { fill(place, shownTrouble(answer)); return; }
    const own = answer.rows.filter((row) => row.source === topic || row.target === topic);
    fill(rows, copies(own, look));
    if (own.length && !card.isConnected) fill(place, card); // a card that is put in anew appears anew
    if (own.some((row) => row.state === "running")) timer = setTimeout(look, LOOK_MS);
  };
  onLeave(() => clearTimeout(timer));
  look();
  return look;
}

function copies(rows, look) {
  const stop = async (row) => {
    const answer = await post(`${path("copies", row.id)}/stop`).catch((error) => error);
    notice(answer instanceof Error ? answer.message : answer.done, answer instanceof Error ? "bad" : "good");
    look();
  };
  return table([
    { name: t("From topic"), kind: "name", of: (row) => h("a", { href: `/topics/${encodeURIComponent(row.source)}` }, row.source) },
    { name: t("To topic"), kind: "name", of: (row) => h("a", { href: `/topics/${encodeURIComponent(row.target)}` }, row.target) },
    { name: t("Began"), kind: "soft", of: (row) => moment(row.began_ms) },
    { name: t("Copied"), of: (row) => [h("span", { class: "meter", role: "progressbar", "aria-label": t("Copied"), "aria-valuemin": 0, "aria-valuenow": row.copied, "aria-valuemax": row.messages }, h("i", { style: { width: `${row.messages ? (row.copied / row.messages) * 100 : 100}%` } })), t("{copied} of {messages}", { copied: count(row.copied), messages: count(row.messages) })] },
    { name: t("State"), of: (row) => [badge(t(row.state), STATES[row.state]), " ", row.trouble] },
    { name: "", kind: "actions", of: (row) => row.state === "running" && h("button", { class: "small", disabled: !session.may_change, onclick: () => stop(row) }, t("Stop")) },
  ], rows);
}
