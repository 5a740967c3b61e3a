// Numbers and times as people read them.
import { language, t } from "./words.js";

const plain = new Intl.NumberFormat(language);
const short = new Intl.NumberFormat(language, { notation: "compact", maximumFractionDigits: 1 });

export const NONE = "–";

export function count(number) {
  return number === null || number === undefined ? NONE : plain.format(Math.round(number));
}

export function compact(number) {
  if (number === null || number === undefined) return NONE;
  return Math.abs(number) < 10000 ? plain.format(Math.round(number)) : short.format(number);
}

export function rate(number) {
  if (number === null || number === undefined) return NONE;
  if (number > 0 && number < 10) return number.toFixed(1);
  return compact(number);
}

export function bytes(number) {
  if (number === null || number === undefined) return NONE;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (number >= 1024 && at < units.length - 1) { number /= 1024; at += 1; }
  return `${at ? number.toFixed(1) : number} ${units[at]}`;
}

export function percent(ratio) {
  return ratio === null || ratio === undefined ? NONE : `${(ratio * 100).toFixed(0)} %`;
}

// Two units at most: 3 d 4 h, 12 min 5 s.
export function duration(ms) {
  if (ms === null || ms === undefined) return NONE;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const parts = [];
  let rest = Math.round(ms / 1000);
  for (const [size, unit] of [[86400, t("d")], [3600, t("h")], [60, t("min")], [1, t("s")]]) {
    const whole = Math.floor(rest / size);
    if (whole || parts.length) parts.push([whole, unit]);
    rest -= whole * size;
  }
  return parts.slice(0, 2).filter(([whole], at) => whole || !at).map(([whole, unit]) => `${whole} ${unit}`).join(" ");
}

const pad = (number, size = 2) => String(number).padStart(size, "0");

export function moment(ms, withMillis = false) {
  if (!ms || ms < 0) return NONE;
  const date = new Date(ms);
  const day = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
  return `${day} ${clock(ms)}${withMillis ? `.${pad(date.getMilliseconds(), 3)}` : ""}`;
}

export function clock(ms) {
  const date = new Date(ms);
  return `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
}

export function ago(ms, now = Date.now()) {
  return !ms || ms < 0 ? NONE : t("{time} ago", { time: duration(Math.max(now - ms, 0)) });
}

// For <input type=datetime-local>.
export function localInput(ms, withSeconds = false) {
  const date = new Date(ms);
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}T${withSeconds ? clock(ms) : clock(ms).slice(0, 5)}`;
}
