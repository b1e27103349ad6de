// The curve: one line per model, and simulated points with intervals.

import uPlot from "./vendor/uPlot.esm.js";
import { amount, axisStyle, brief, Canvas, colour, dash, entry, hue, lineShape } from "./drawing.js";
import { $, table } from "./elements.js";

const SHAPES = ["circle", "square", "triangle"];

const MOST_TICKS = 9;
const TICK_PX = 62;
const LARGER = { B: "KB", KB: "MB", MB: "GB", kbit: "mbit", mbit: "gbit", us: "ms", ms: "s" };

function shorter(number, suffix) {
  const exact = Number(number.toPrecision(3));
  return exact >= 1000 && LARGER[suffix] ? shorter(exact / 1000, LARGER[suffix]) : `${exact}${suffix}`;
}

function marks(points) {
  // The values of a group of flows have the colour of the group's models.
  const groups = new Map(points.flatMap((point) => point.values.map((value) => [value.name, value.group])));
  return [...groups].map(([name, group], at) => ({
    name,
    shape: SHAPES[at % SHAPES.length],
    colour: hue(group ?? at + 1),
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
        ctx.lineTo(x, y(Math.min(point.high, plot.scales.y.max)));
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
    name: each.name, colour: hue(each.group ?? at), dash: dash(at),
    values: each.values.map((value) => (curve.linear || value > 0 ? value : null)), width: 2, sparse: each.sparse,
  }));
  const references = Object.entries(curve.references).map(([name, value]) => ({
    name, colour: colour("--dim"), dash: [4, 4], values: curve.x.map(() => value), width: 1,
  }));
  return [...models, ...references];
}

const MARKS = {
  circle: ["circle", { cx: 14, cy: 6, r: 5 }],
  square: ["rect", { x: 9, y: 1, width: 10, height: 10 }],
  triangle: ["path", { d: "M14 1l5 10h-10z" }],
};

function legend(container, drawn, groups) {
  const marked = groups.map((group) => {
    const [name, attributes] = MARKS[group.shape];
    const intervals = group.points.some((point) => point.low !== null) ? ", with 95 % interval" : "";
    return entry([name, { ...attributes, fill: group.colour }], `${group.name}, simulated${intervals}`);
  });
  container.replaceChildren(...drawn.map((line) => entry(lineShape(line), line.name)), ...marked);
}

function numbers(container, curve, groups) {
  const shown = (each, at) => (each.texts ? each.texts[at] || "–" : amount(each.values[at], curve.metric.unit));
  const texts = new Map(curve.x.map((x, at) => [x, { text: curve.texts[at], at }]));
  for (const group of groups) for (const point of group.points) if (!texts.has(point.x)) texts.set(point.x, { text: point.at });
  const rows = [...texts].sort(([a], [b]) => a - b).map(([x, { text, at }]) => [
    text,
    ...curve.series.map((each) => (at === undefined ? "" : shown(each, at) + (each.values[at] !== null && each.trusted?.[at] === false ? " †" : ""))),
    ...groups.map((group) => {
      const point = group.points.find((each) => each.x === x);
      return point ? `${point.text} (${point.interval || "no interval"})` : "";
    }),
  ]);
  const columns = [curve.across.label, ...curve.series.map((each) => each.name), ...groups.map((group) => `${group.name}, simulated`)];
  container.replaceChildren(table("", columns, rows));
}

export class Plot extends Canvas {
  constructor(container, { legend: key, numbers: values } = { legend: $("legend"), numbers: $("numbers-table") }) {
    super(container);
    this.key = key;
    this.values = values;
  }

  create(curve, points) {
    const groups = marks(points);
    const drawn = lines(curve);
    const axis = axisStyle();
    const unit = curve.metric.unit;
    const xs = [...curve.x, ...points.map((point) => point.x)].filter((x) => curve.linear || x > 0);
    const [low, high] = [Math.min(...xs), Math.max(...xs)];
    const ys = bounds([...drawn.flatMap((line) => line.values), ...groups.flatMap((group) => group.points.flatMap((point) => [point.value, point.high]))], curve.linear);
    const written = this.#axis(curve);
    const distr = curve.linear ? 1 : 3;
    const places = (ends) => curve.linear ? {} : ({ splits: (plot, which) => ticks(ends, which ? MOST_TICKS : Math.floor(plot.width / TICK_PX) - 1), filter: (_, splits) => splits });
    const made = new uPlot({
      ...this.size,
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
    legend(this.key, drawn, groups);
    numbers(this.values, curve, groups);
    return { made, label: `${curve.metric.label} by ${curve.across.label.toLowerCase()}; the table below contains the values` };
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
