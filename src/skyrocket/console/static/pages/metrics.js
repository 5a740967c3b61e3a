// The built-in history, and where Prometheus finds more.
import { get, query } from "../api.js";
import { fill, h } from "../dom.js";
import { chart } from "../chart.js";
import { rate } from "../format.js";
import { badge, callout, empty, head, table, trouble as shownTrouble } from "../parts.js";
import { go, withQuery } from "../router.js";
import { t } from "../words.js";

const SPANS = [["1", "1 hour"], ["24", "24 hours"], ["168", "7 days"], ["8760", "1 year"]];

export async function show(root, context) {
  const hours = context.query.hours || "24";
  const data = h("div", { class: "stack" });
  root.append(head(t("Metrics"), { actions: SPANS.map(([each, text]) => h("button", { class: each === hours ? "primary" : "", onclick: () => go(withQuery({ hours: each })) }, t(text))) }), data);
  const cards = [
    [t("Messages per second"), [["in:cluster", t("In"), "in"], ["out:cluster", t("Out"), "out"]], rate],
    [t("Waiting for groups"), [["lag:cluster", t("Lag"), "lag"]], undefined],
    [t("Dead letters"), [["dead:cluster", t("Dead letters"), "lag"]], undefined],
  ];
  for (const [title, lines, format] of cards) {
    const place = h("div");
    data.append(h("div", { class: "card" }, h("h2", null, title), place));
    Promise.all(lines.map(async ([series, name, kind]) => ({ ...(await get(query("/api/history", { series, hours }))), name, kind })))
      .then((found) => fill(place, found.some((line) => line.samples.length) ? chart(found, found[0].from_ms, found[0].to_ms, format) : empty(t("No samples yet"), t("One is taken each minute while the console runs."))))
      .catch((error) => fill(place, shownTrouble(error)));
  }
  const found = h("div", { class: "card flush", id: "prometheus" });
  data.append(callout(t("Minutes are kept for 7 days, hours for a year. For more, let Prometheus scrape the brokers.")), found);
  const places = await get("/api/metrics-places").catch((error) => error);
  fill(found, h("h2", null, "Prometheus"), places instanceof Error ? shownTrouble(places) : table([
    { name: t("Broker"), kind: "name", of: (row) => row.broker },
    { name: t("Address"), kind: "mono", of: (row) => row.address || "–" },
    { name: "", of: (row) => (row.address ? badge(t("served"), "good") : row.exporter === "PROM" ? t("on a free port: its log says which") : t("off: set metricsExporterType=PROM and start it again")) },
  ], places.rows, { nothing: empty(t("No broker")) }));
}
