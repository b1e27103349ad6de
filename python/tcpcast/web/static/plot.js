// The curve: one line per model, and simulated points with intervals.

import uPlot from "./vendor/uPlot.esm.js";
import { $, make, table } from "./elements.js";

// Palette of Okabe and Ito; lines also differ in dashes, points in shape.
const LIGHT = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8a7f00", "#7570b3"];
const DARK = ["#56B4E9", "#E69F00", "#2fc39a", "#e39cc6", "#F0E442", "#ff9a73", "#c9c2ff", "#ffffff"];
const dark = matchMedia("screen and (prefers-color-scheme: dark)");
// A page of the documentation has a switch of its own for light and dark.
const isDark = () => ({ dark: true, light: false })[document.body.dataset.theme] ?? dark.matches;
const hue = (index) => (isDark() ? DARK : LIGHT)[index % LIGHT.length];
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [14, 4], [4, 4], [2, 6], [6, 2, 2, 2]];
const SHAPES = ["circle", "square", "triangle"];
const PREFIXES = [[1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"]];

const MOST_TICKS = 9;
const TICK_PX = 62;
const LARGER = { B: "KB", KB: "MB", MB: "GB", kbit: "mbit", mbit: "gbit", us: "ms", ms: "s" };

const brief = (value) => String(Number(value.toPrecision(3)));

export function amount(value, unit) {
  if (value === null || value === undefined) return "–";
  if (unit === "%") return `${brief(100 * value)} %`;
  if (value === 0) return `0 ${unit}`.trim();
  const [factor, prefix] = unit === "bit/s" || unit === "s"
    ? PREFIXES.find(([size]) => Math.abs(value) >= size * 0.9995) ?? PREFIXES.at(-1) : [1, ""];
  return `${brief(value / factor)} ${prefix}${unit}`.trim();
}

function shorter(number, suffix) {
  const exact = Number(number.toPrecision(3));
  return exact >= 1000 && LARGER[suffix] ? shorter(exact / 1000, LARGER[suffix]) : `${exact}${suffix}`;
}

const colour = (name) => getComputedStyle(document.body).getPropertyValue(name).trim();

function marks(points) {
  const names = [...new Set(points.flatMap((point) => point.values.map((value) => value.name)))];
  return names.map((name, at) => ({
    name,
    shape: SHAPES[at % SHAPES.length],
    colour: hue(at + 1),
    points: points.flatMap((point) => point.values.filter((value) => value.name === name)
      .map((value) => ({ ...value, x: point.x, at: point.text }))),
  }));
}

function shape(context, kind, x, y, size) {
  context.beginPath();
  if (kind === "circle") context.arc(x, y, size, 0, 2 * Math.PI);
  else if (kind === "square") context.rect(x - size, y - size, 2 * size, 2 * size);
  else { context.moveTo(x, y - size); context.lineTo(x + size, y + size); context.lineTo(x - size, y + size); context.closePath(); }
  context.fill();
  context.stroke();
}

function drawMarks(plot, groups) {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.setLineDash([]); // reset the dash pattern of uPlot's last line
  ctx.beginPath();
  ctx.rect(bbox.left - 8, bbox.top - 8, bbox.width + 16, bbox.height + 16);
  ctx.clip();
  for (const group of groups) {
    for (const point of group.points) {
      if (point.value === null) continue;
      const x = plot.valToPos(point.x, "x", true);
      const y = (value) => plot.valToPos(value, "y", true);
      ctx.lineWidth = 2 * ratio;
      ctx.strokeStyle = group.colour;
      if (point.low !== null && point.high !== null) {
        ctx.beginPath();
        ctx.moveTo(x, y(Math.max(point.low, plot.scales.y.min)));
        ctx.lineTo(x, y(point.high));
        ctx.stroke();
      }
      ctx.fillStyle = group.colour;
      ctx.strokeStyle = colour("--ground");
      ctx.lineWidth = ratio;
      shape(ctx, group.shape, x, y(point.value), 5 * ratio);
    }
  }
  ctx.restore();
}

function drawHere(plot, here) {
  if (!(here >= plot.scales.x.min && here <= plot.scales.x.max)) return;
  const { ctx, bbox } = plot;
  const x = plot.valToPos(here, "x", true);
  ctx.save();
  ctx.strokeStyle = colour("--dim");
  ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  ctx.restore();
}

// Bounds of an axis: from 0 if it is linear, from positive values if it is logarithmic.
function bounds(values, linear) {
  if (linear) return [0, Math.max(1e-9, ...values) * 1.05];
  const kept = values.filter((value) => value !== null && value > 0);
  if (!kept.length) return [1, 10];
  const [low, high] = [Math.min(...kept), Math.max(...kept)];
  const least = Math.max(low, high / 1e6);
  return least < high ? [least / 1.3, high * 1.3] : [least / 2, high * 2];
}

function lines(curve) {
  const models = curve.series.map((each, at) => ({
    name: each.name, colour: hue(at), dash: DASHES[at % DASHES.length],
    values: curve.linear ? each.values : each.values.map((value) => (value > 0 ? value : null)), width: 2, sparse: each.sparse,
  }));
  const references = Object.entries(curve.references).map(([name, value]) => ({
    name, colour: colour("--dim"), dash: [4, 4], values: curve.x.map(() => value), width: 1,
  }));
  return [...models, ...references];
}

function legend(container, drawn, groups) {
  const ratio = 28;
  const svg = (children) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    made.setAttribute("viewBox", `0 0 ${ratio} 12`);
    made.setAttribute("aria-hidden", "true");
    made.append(...children);
    return made;
  };
  const part = (name, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const items = drawn.map((line) => make("li", {}, svg([part("path", {
    d: `M0 6H${ratio}`, stroke: line.colour, "stroke-width": line.width + 0.5, "stroke-dasharray": line.dash.join(" "),
  })]), line.name));
  const shapes = { circle: ["circle", { cx: 14, cy: 6, r: 5 }], square: ["rect", { x: 9, y: 1, width: 10, height: 10 }], triangle: ["path", { d: "M14 1l5 10h-10z" }] };
  for (const group of groups) {
    const [name, attributes] = shapes[group.shape];
    const intervals = group.points.some((point) => point.low !== null) ? ", with 95 % interval" : "";
    items.push(make("li", {}, svg([part(name, { ...attributes, fill: group.colour })]), `${group.name}, simulated${intervals}`));
  }
  container.replaceChildren(...items);
}

function numbers(container, curve, groups) {
  const unit = curve.metric.unit;
  const texts = new Map(curve.x.map((x, at) => [x, { text: curve.texts[at], at }]));
  for (const group of groups) for (const point of group.points) if (!texts.has(point.x)) texts.set(point.x, { text: point.at });
  const rows = [...texts].sort(([a], [b]) => a - b).map(([x, { text, at }]) => [
    text,
    ...curve.series.map((each) => (at === undefined ? "" : amount(each.values[at], unit) + (each.values[at] !== null && each.trusted?.[at] === false ? " †" : ""))),
    ...groups.map((group) => {
      const point = group.points.find((each) => each.x === x);
      return point ? `${point.text} (${point.interval || "no interval"})` : "";
    }),
  ]);
  const columns = [curve.across.label, ...curve.series.map((each) => each.name), ...groups.map((group) => `${group.name}, simulated`)];
  container.replaceChildren(table("", columns, rows));
}

// uPlot measures its container only once, so it is redrawn when the size changes.
export class Plot {
  #plot = null;
  #drawn = null;

  constructor(container, { legend: key, numbers: values } = { legend: $("legend"), numbers: $("numbers-table") }) {
    this.container = container;
    this.key = key;
    this.values = values;
    new ResizeObserver(() => this.#resize()).observe(container);
    dark.addEventListener("change", () => this.redraw());
    // Paper is light and has a different width than the window.
    const paper = matchMedia("print");
    paper.addEventListener("change", () => { this.#resize(); this.redraw(); });
  }

  #size() {
    const width = Math.max(240, this.container.clientWidth);
    return { width, height: Math.round(Math.min(420, Math.max(260, width * 0.55))) };
  }

  #resize() {
    const size = this.#size();
    if (this.#plot && this.#plot.width !== size.width) this.#plot.setSize(size);
  }

  redraw() {
    if (this.#drawn) this.draw(...this.#drawn);
  }

  clear() {
    this.#plot?.destroy();
    this.#plot = null;
  }

  draw(curve, points) {
    this.#drawn = [curve, points];
    this.clear();
    const groups = marks(points);
    const drawn = lines(curve);
    const axis = { stroke: colour("--ink"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") }, font: "12px system-ui, sans-serif", labelFont: "13px system-ui, sans-serif" };
    const unit = curve.metric.unit;
    const xs = [...curve.x, ...points.map((point) => point.x)].filter((x) => curve.linear || x > 0);
    const [low, high] = [Math.min(...xs), Math.max(...xs)];
    const ys = bounds([...drawn.flatMap((line) => line.values), ...groups.flatMap((group) => group.points.flatMap((point) => [point.value, point.high]))], curve.linear);
    const written = this.#axis(curve);
    const distr = curve.linear ? 1 : 3;
    const places = (ends) => curve.linear ? {} : ({ splits: (plot, which) => ticks(ends, which ? MOST_TICKS : Math.floor(plot.width / TICK_PX) - 1), filter: (_, splits) => splits });
    this.#plot = new uPlot({
      ...this.#size(),
      legend: { show: false },
      cursor: { show: false },
      scales: { x: { time: false, distr, range: () => [low, high] }, y: { distr, range: () => ys } },
      axes: [
        { ...axis, ...places([low, high]), label: curve.across.label, values: (_, splits) => splits.map(curve.linear ? brief : written) },
        { ...axis, ...places(ys), label: curve.metric.label, size: 86, values: (_, splits) => splits.map((value) => amount(value, unit)) },
      ],
      series: [{}, ...drawn.map((line) => ({ stroke: line.colour, dash: line.dash, width: line.width, points: { show: false }, spanGaps: line.sparse === true }))],
      hooks: { draw: [(plot) => { drawHere(plot, curve.here); drawMarks(plot, groups); }] },
    }, [curve.x, ...drawn.map((line) => line.values)], this.container);
    this.container.firstElementChild.setAttribute("role", "img");
    this.container.firstElementChild.setAttribute("aria-label", `${curve.metric.label} by ${curve.across.label.toLowerCase()}; the table below contains the values`);
    legend(this.key, drawn, groups);
    numbers(this.values, curve, groups);
  }

  // Tick labels use the units of the server's texts and of the inputs.
  #axis(curve) {
    const scales = curve.x.map((x, at) => ({ x, text: curve.texts[at] }));
    return (value) => {
      const near = scales.reduce((best, each) => (Math.abs(Math.log(each.x / value)) < Math.abs(Math.log(best.x / value)) ? each : best));
      const [, number, suffix] = /^([0-9.e+-]+)\s*(.*)$/.exec(near.text) ?? [];
      return number ? shorter((Number(number) * value) / near.x, suffix) : brief(value);
    };
  }
}

// Ticks at powers of ten on a long axis, and at further values on a short one.
function ticks([low, high], most) {
  const decades = Math.log10(high / low);
  const leads = decades > 2.5 ? [1] : decades > 0.9 ? [1, 2, 5] : [1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9];
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
    for (const lead of leads) {
      const value = Number((lead * 10 ** power).toPrecision(12));
      if (value >= low && value <= high) found.push(value);
    }
  }
  const step = Math.ceil(found.length / Math.max(2, most));
  return found.filter((_, at) => at % step === 0);
}
