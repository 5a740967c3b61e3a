// What the checks have found, worst first.
import { fill, h } from "../dom.js";
import { follow } from "../live.js";
import { callout, empty, head } from "../parts.js";
import { t } from "../words.js";
import { findingRow } from "./overview.js";

export function show(root, context) {
  const trouble = h("div");
  const data = h("div", { class: "card" }, h("div", { class: "skeleton" }));
  root.append(head(t("Alerts"), { says: t("what the checks find now, worst first") }), trouble, data);
  context.onLeave(follow("/api/health", (answer) => fill(data, answer.findings.length ? answer.findings.map(findingRow) : empty(t("All well"), t("No check has found anything."))), (text) => fill(trouble, callout(text, "bad"))));
}
