// One number for a screen on the wall.
import { fill, h } from "../dom.js";
import { count, rate } from "../format.js";
import { follow } from "../live.js";
import { head } from "../parts.js";
import { t } from "../words.js";

export function show(root, context) {
  const number = h("div", { class: "counter", "aria-live": "off" }, "…");
  const says = h("p", { class: "soft", style: { "text-align": "center", "font-size": "20px" } });
  root.append(head(t("Messages today"), { crumb: { text: t("Overview"), href: "/" } }), number, says);
  let shown = 0;
  let speed = 0;
  let at = 0;
  let updated = 0;
  context.onLeave(follow("/api/overview", (answer) => {
    if (answer.updated_ms === updated) return; // drawn again: it would count the same messages twice
    updated = answer.updated_ms;
    shown = answer.in_today;
    speed = answer.in_per_second;
    at = performance.now();
    fill(says, t("{in} in and {out} out per second, {lag} wait", { in: rate(speed), out: rate(answer.out_per_second), lag: count(answer.lag) }));
  }, (text) => fill(says, text)));
  const timer = setInterval(() => { if (at) fill(number, count(shown + (speed * Math.min(performance.now() - at, 6000)) / 1000)); }, 100);
  context.onLeave(() => clearInterval(timer));
}
