// Where something is created: on all brokers, on those of a cluster, or on one.
import { get } from "../api.js";
import { field, notice } from "../parts.js";
import { t } from "../words.js";

// What there is to choose from; null, and a notice, while nobody says it.
export const places = () => get("/api/places").catch((error) => { notice(error.message, "bad"); return null; });

export function whereField({ clusters, brokers }) {
  const options = [["", t("on all brokers")],
    ...clusters.map((name) => [`cluster ${name}`, t("on those of cluster {name}", { name })]),
    ...brokers.map(({ broker, cluster }) => [`broker ${broker}`, t("on {broker} of {cluster}", { broker, cluster })])];
  return field({ name: "where", label: t("Where"), options });
}

// The values of a form with such a field, as the endpoints want them.
export function withPlace({ where, ...values }) {
  if (!where) return values;
  const end = where.indexOf(" ");
  return { ...values, [where.slice(0, end)]: where.slice(end + 1) };
}
