// Line icons, drawn here.
import { svg } from "./dom.js";

const PATHS = {
  overview: "M3 12h4l3-8 4 16 3-8h4",
  topics: "M4 6h16M4 12h16M4 18h10",
  messages: "M4 5h16v11H9l-5 4z",
  tail: "M5 4v16M10 8h9M10 12h6M10 16h9",
  groups: "M8 11a3 3 0 100-6 3 3 0 000 6zM2 20c0-4 3-6 6-6s6 2 6 6M16 5a3 3 0 010 6M17 14c3 0 5 2 5 6",
  dead: "M12 3a8 8 0 00-5 14v3h10v-3a8 8 0 00-5-14zM9 12h.01M15 12h.01M11 20v-3M13 20v-3",
  delayed: "M12 21a9 9 0 100-18 9 9 0 000 18zM12 7v5l3 2",
  transactions: "M4 8h13l-3-3M20 16H7l3 3",
  traces: "M4 6h7M8 12h8M13 18h7",
  clients: "M4 5h16v10H4zM9 20h6M12 15v5",
  cluster: "M4 4h16v6H4zM4 14h16v6H4zM8 7h.01M8 17h.01",
  metrics: "M4 20V4M4 20h16M8 16v-4M12 16V8M16 16v-6",
  alerts: "M6 9a6 6 0 0112 0c0 6 2 7 2 7H4s2-1 2-7zM10 20h4",
  access: "M8 15a4 4 0 110-8 4 4 0 010 8zM12 11h9M18 11v4",
  audit: "M6 3h9l4 4v14H6zM9 12h7M9 16h7M9 8h3",
  pipelines: "M3 7h5a3 3 0 013 3v4a3 3 0 003 3h7M17 13l4 4-4 4",
  settings: "M5 8h8M17 8h2M5 16h2M11 16h8M15 6v4M9 14v4",
  moon: "M20 14A8 8 0 0110 4a8 8 0 1010 10z",
  sun: "M12 16a4 4 0 100-8 4 4 0 000 8zM12 2v2M12 20v2M4 12H2M22 12h-2M5 5l1 1M18 18l1 1M5 19l1-1M18 6l1-1",
  close: "M6 6l12 12M18 6L6 18",
  docs: "M8 5l-5 7 5 7M16 5l5 7-5 7",
};

export function icon(name) {
  return svg(
    "svg",
    { viewBox: "0 0 24 24", width: 16, height: 16, fill: "none", stroke: "currentColor", "stroke-width": 1.8, "stroke-linecap": "round", "stroke-linejoin": "round", "aria-hidden": "true" },
    svg("path", { d: PATHS[name] }),
  );
}
