// Lines over time, as SVG.
import { h, svg } from "./dom.js";
import { clock, compact, moment } from "./format.js";

const GAP_MS = 5 * 60_000; // a line is not drawn over a time of which nothing is known

function paths(samples, from, to, top, width, height, gap) {
  const x = (at) => ((at - from) / (to - from || 1)) * width;
  const y = (value) => height - (value / top) * height;
  const runs = [];
  samples.forEach((sample, at) => {
    if (!at || sample.at_ms - samples[at - 1].at_ms > gap) runs.push([]);
    runs.at(-1).push(sample);
  });
  const line = (run) => run.map((sample, at) => `${at ? "L" : "M"}${x(sample.at_ms).toFixed(1)} ${y(sample.value).toFixed(1)}`).join("");
  return runs.map((run) => ({
    line: run.length > 1 ? line(run) : `${line(run)}h1`,
    area: `${line(run)}L${x(run.at(-1).at_ms).toFixed(1)} ${height}L${x(run[0].at_ms).toFixed(1)} ${height}Z`,
  }));
}

export function spark(samples, kind) {
  const [width, height] = [200, 36];
  const root = svg("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  if (!samples.length) return root;
  const top = Math.max(...samples.map((sample) => sample.value), 1e-9) * 1.15;
  for (const { line, area } of paths(samples, samples[0].at_ms, samples.at(-1).at_ms, top, width, height, GAP_MS)) {
    root.append(svg("path", { d: area, class: `area ${kind}` }), svg("path", { d: line, class: `line ${kind}` }));
  }
  return root;
}

function niceTop(value, least) {
  if (value <= least) return least;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 5, 8, 10].map((step) => step * power).find((step) => step >= value);
}

// An SVG in the pixels of its place, drawn again when that changes.
function sized(height, draw) {
  const place = h("div", { style: { height: `${height}px` } });
  let width = 0;
  new ResizeObserver(() => {
    if (place.clientWidth === width) return;
    width = place.clientWidth;
    if (width > 80) place.replaceChildren(draw(width));
  }).observe(place);
  return place;
}

// lines: [{name, kind, samples}]
export function chart(lines, from, to, format = compact) {
  const [height, left, foot] = [170, 52, 26];
  const draw = (full) => {
    const width = full - left - 6;
    const top = niceTop(Math.max(0, ...lines.flatMap((line) => line.samples.map((sample) => sample.value))), format === compact ? 4 : 1);
    const root = svg("svg", { class: "chart", viewBox: `0 0 ${full} ${height + foot + 8}`, role: "img", "aria-label": lines.map((line) => line.name).join(", ") });
    const field = svg("g", { transform: `translate(${left} 8)` });
    for (let step = 0; step <= 4; step += 1) {
      const at = height - (height * step) / 4;
      field.append(svg("line", { x1: 0, x2: width, y1: at, y2: at, class: "gridline" }));
      field.append(svg("text", { x: -8, y: at + 4, "text-anchor": "end" }, format((top * step) / 4)));
    }
    const days = to - from > 36 * 3600_000;
    const steps = Math.max(2, Math.min(8, Math.floor(width / 90)));
    for (let step = 0; step <= steps; step += 1) {
      const at = from + ((to - from) * step) / steps;
      const text = days ? moment(at).slice(5, 16) : clock(at).slice(0, 5);
      field.append(svg("text", { x: (width * step) / steps, y: height + 18, "text-anchor": step === steps ? "end" : step ? "middle" : "start" }, text));
    }
    const gap = Math.max(GAP_MS, (to - from) / 100);
    for (const { samples, kind } of lines) {
      if (!samples.length) continue;
      for (const { line, area } of paths(samples, from, to, top, width, height, gap)) {
        field.append(svg("path", { d: area, class: `area ${kind}` }), svg("path", { d: line, class: `line ${kind}` }));
      }
    }
    root.append(field);
    return root;
  };
  const legend = lines.length > 1 ? h("div", { class: "legend" }, lines.map((line) => h("span", null, h("i", { class: `key ${line.kind}` }), line.name))) : null;
  return h("div", null, legend, sized(height + foot + 8, draw));
}

// rows: [{label, value}]
export function bars(rows, format = compact) {
  const height = 130;
  return sized(height + 42, (width) => {
    const top = Math.max(1, ...rows.map((row) => row.value));
    const each = width / Math.max(rows.length, 1);
    const root = svg("svg", { class: "chart bars", viewBox: `0 0 ${width} ${height + 42}`, role: "img" });
    rows.forEach((row, at) => {
      const tall = (row.value / top) * height;
      root.append(svg("rect", { x: at * each + each * 0.2, y: height - tall + 16, width: each * 0.6, height: Math.max(tall, 1), rx: 3 }));
      if (row.value) root.append(svg("text", { x: at * each + each / 2, y: height - tall + 11, "text-anchor": "middle" }, format(row.value)));
      root.append(svg("text", { x: at * each + each / 2, y: height + 34, "text-anchor": "middle" }, row.label));
    });
    return root;
  });
}
