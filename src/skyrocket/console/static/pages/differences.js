// What a change would do, line by line.
import { h } from "../dom.js";
import { callout, table } from "../parts.js";
import { t } from "../words.js";

export function differencesTable(differences) {
  if (!differences.length) return callout(t("Nothing would change."));
  return h("div", { class: "card flush" }, table([
    { name: t("Broker"), of: (row) => row.broker },
    { name: t("Setting"), kind: "mono", of: (row) => row.field },
    { name: t("Now"), kind: "mono", of: (row) => h("span", { class: "before" }, row.before || "–") },
    { name: t("Then"), kind: "mono", of: (row) => h("span", { class: "after" }, row.after) },
  ], differences));
}
