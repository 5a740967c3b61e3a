// A topic as it is written to.
import { path, query, refusalOf } from "../api.js";
import { fill, h } from "../dom.js";
import { clock, count } from "../format.js";
import { troubleOf } from "../live.js";
import { badge, callout, empty, head, valuesOf, field } from "../parts.js";
import { go, withQuery } from "../router.js";
import { t } from "../words.js";

const MOST = 500;
const AGAIN_MS = 5000;
const COLUMNS = ["time", "place", "tags", "keys", "body"];

export function show(root, context) {
  const topic = context.names.topic;
  const here = `/topics/${encodeURIComponent(topic)}`;
  const wanted = context.query;
  const hidden = new Set((wanted.hide || "").split(",").filter(Boolean));
  const state = h("span", { class: "badge" }, "…");
  const trouble = h("div");
  const rows = h("tbody");
  const nothing = empty(t("Nothing yet"), t("What is sent to {topic} from now on appears here.", { topic }));
  const kept = [];
  let paused = false;
  let shown = 0;
  let skipped = 0;
  let source = null;
  let opening = 0;
  let cutAt = 0; // since then nothing is followed

  const pause = h("button", { id: "pause", onclick: () => { paused = !paused; if (!paused) again(); draw(); } });
  const form = h("form", { class: "bar", onsubmit: (event) => { event.preventDefault(); go(withQuery(valuesOf(form))); } },
    field({ name: "tags", label: t("Tags"), value: wanted.tags || "", placeholder: "TagA || TagB" }),
    field({ name: "sql", label: t("SQL filter"), value: wanted.sql || "", placeholder: "price > 3" }),
    field({ name: "contains", label: t("Body contains"), value: wanted.contains || "" }),
    field({ name: "property_name", label: t("Property"), value: wanted.property_name || "", placeholder: "name" }),
    field({ name: "property_value", label: t("contains"), value: wanted.property_value || "" }),
    field({ name: "per_second", label: t("At most per second"), type: "number", value: wanted.per_second || 50, min: 1, max: 500 }),
    h("button", null, t("Apply")));
  root.append(
    head(t("Live tail"), { crumb: { text: topic, href: here }, actions: [state, pause, h("button", { onclick: () => { rows.replaceChildren(); kept.length = 0; draw(); } }, t("Clear")), h("button", { onclick: () => download(topic, kept) }, t("Download"))] }),
    form,
    h("div", { class: "bar" }, COLUMNS.map((name) => h("label", { class: "check" }, h("input", { type: "checkbox", checked: !hidden.has(name), onchange: () => { hidden.has(name) ? hidden.delete(name) : hidden.add(name); history.replaceState(null, "", withQuery({ hide: [...hidden].join(",") })); again(); } }), t(name)))),
    trouble,
    h("div", { class: "card flush tail", id: "tail" }, h("table", null, rows), nothing));

  function draw() {
    nothing.hidden = rows.childElementCount > 0;
    fill(pause, paused ? t("Go on") : t("Pause"));
    const isOpen = source !== null && source.readyState === EventSource.OPEN;
    state.className = `badge ${isOpen ? (paused ? "warn" : "good") : ""}`;
    fill(state, h("i", { class: "dot" }), paused ? t("paused") : isOpen ? t("live") : t("not connected"), ` · ${count(shown)}`, skipped ? ` (${t("{n} not shown", { n: count(skipped) })})` : "");
  }

  // What has come so far, with the columns that are wanted now.
  function again() {
    rows.replaceChildren(...kept.map(line).reverse());
    draw();
  }

  function line(row) {
    const cells = {
      time: h("td", { class: "faint" }, clock(row.stored_ms)),
      place: h("td", { class: "soft" }, `${row.broker}:${row.queue} @ ${row.offset}`),
      tags: h("td", null, row.tags ? badge(row.tags, "accent") : ""),
      keys: h("td", null, row.keys.join(" ")),
      body: h("td", null, h("a", { href: `/messages/${encodeURIComponent(row.topic)}/${encodeURIComponent(row.message_id)}` }, row.preview || "∅")),
    };
    return h("tr", null, COLUMNS.filter((name) => !hidden.has(name)).map((name) => cells[name]));
  }

  const address = query(`${path("topics", topic)}/tail`, { tags: wanted.tags, sql: wanted.sql, contains: wanted.contains, property_name: wanted.property_name, property_value: wanted.property_value, per_second: wanted.per_second });
  const open = () => {
    if (source || document.hidden) return;
    const opened = source = new EventSource(address);
    opened.addEventListener("begun", () => {
      fill(trouble, cutAt > 0 && callout(t("Nothing was followed from {from} to {to}: what was sent meanwhile is among the messages of the topic.", { from: clock(cutAt), to: clock(Date.now()) }), "warn"));
      cutAt = 0;
      draw();
    });
    opened.addEventListener("message", (event) => {
      if (!event.data) return;
      const row = JSON.parse(event.data);
      kept.push(row);
      if (kept.length > MOST) kept.shift();
      shown += 1;
      if (!paused) {
        rows.prepend(line(row));
        while (rows.childElementCount > MOST) rows.lastElementChild.remove();
      }
      draw();
    });
    opened.addEventListener("skipped", (event) => { skipped += JSON.parse(event.data).messages; draw(); });
    opened.addEventListener("trouble", (event) => fill(trouble, callout(troubleOf(event), "bad")));
    opened.onerror = () => {
      cut();
      if (opened.readyState === EventSource.CLOSED) refused(opened);
    };
  };
  const cut = () => { cutAt = cutAt || Date.now(); draw(); };
  // Browsers do not open again what was refused, nor do they say why.
  const refused = async (closed) => {
    const why = await refusalOf(address);
    if (source !== closed) return;
    if (why) fill(trouble, callout(why, "bad"));
    opening = setTimeout(() => { close(); open(); }, AGAIN_MS);
  };
  const close = () => { clearTimeout(opening); if (source) source.close(); source = null; cut(); };
  const look = () => (document.hidden ? close() : open());
  document.addEventListener("visibilitychange", look);
  context.onLeave(() => { document.removeEventListener("visibilitychange", look); close(); });
  open();
  draw();
}

function download(topic, rows) {
  const blob = new Blob(rows.map((row) => `${JSON.stringify(row)}\n`), { type: "application/x-ndjson" });
  const link = h("a", { href: URL.createObjectURL(blob), download: `${topic}.jsonl`, target: "_self" });
  link.click();
  URL.revokeObjectURL(link.href);
}
