// The simulated run over time: congestion windows or goodput, or the times of transfers.

import uPlot from "./vendor/uPlot.esm.js";
import { amount, axisStyle, bandShape, brief, Canvas, colour, dash, entry, hue, lineShape } from "./drawing.js";
import { $, make, table } from "./elements.js";

const SHADE = "38"; // opacity of bands, as hexadecimal digits after a colour
const units = { packet: "packets" };

const text = (value, unit) => (unit === "packet" ? (value === null ? "–" : brief(value)) : amount(value, unit));

// The bands of several similar lines would hide each other.
const hasBand = (lines, at) => lines.length <= 2 || at === 0;

function shadeWarmup(plot, until) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.fillStyle = `${colour("--dim")}33`;
  ctx.fillRect(bbox.left, bbox.top, Math.max(0, plot.valToPos(until, "x", true) - bbox.left), bbox.height);
  ctx.restore();
}

function legend(chart, lines) {
  const range = chart.unit === "packet" ? "minimum to maximum" : "95 % interval";
  const items = lines.map((line) => entry(lineShape(line), line.name));
  const banded = lines.filter((line, at) => hasBand(lines, at) && line.low.some((low) => low !== null));
  for (const line of banded) items.push(entry(bandShape(line.colour + SHADE), `${range} of ${line.name}`));
  if (chart.warmup_s > 0) items.push(entry(bandShape(`${colour("--dim")}33`), "warm-up, not counted"));
  $("course-legend").replaceChildren(...items);
}

function values(chart) {
  const rows = chart.x.map((x, at) => [amount(x, "s"), ...chart.lines.map((line) => text(line.values[at], chart.unit))]);
  $("course-table").replaceChildren(table("", [chart.across, ...chart.lines.map((line) => line.name)], rows));
}

class Course extends Canvas {
  create(chart) {
    const lines = chart.lines.map((line, at) => ({ ...line, colour: hue(at), dash: dash(at), width: 1.5 }));
    const series = [{}];
    const columns = [chart.x];
    const bands = [];
    for (const [at, line] of lines.entries()) {
      series.push({ stroke: line.colour, dash: line.dash, width: line.width, points: { show: chart.x.length < 2 } });
      columns.push(line.values);
      if (!hasBand(lines, at)) continue;
      bands.push({ series: [series.length + 1, series.length], fill: line.colour + SHADE });
      for (const end of [line.low, line.high]) {
        series.push({ stroke: "transparent", points: { show: false } });
        columns.push(end);
      }
    }
    const high = Math.max(...columns.slice(1).flat().filter((value) => value !== null), 1e-9);
    const label = `${chart.label}${units[chart.unit] ? ` (${units[chart.unit]})` : ""}`;
    const axis = axisStyle();
    const from = chart.across === "Time" ? 0 : chart.x[0];
    const made = new uPlot({
      ...this.size,
      legend: { show: false },
      cursor: { show: false },
      scales: { x: { time: false, range: () => [from, Math.max(chart.x.at(-1), from + 1e-6)] }, y: { range: () => [0, 1.05 * high] } },
      axes: [
        { ...axis, label: chart.across, space: 70, values: (_, splits) => splits.map((value) => amount(value, "s")) },
        { ...axis, label, size: 86, values: (_, splits) => splits.map((value) => text(value, chart.unit)) },
      ],
      series,
      bands,
      hooks: { drawClear: [(plot) => { if (chart.warmup_s > 0) shadeWarmup(plot, chart.warmup_s); }] },
    }, columns, this.container);
    legend(chart, lines);
    values(chart);
    return { made, label: `${label} by ${chart.across.toLowerCase()} of the simulated run; the table below contains the values` };
  }
}

let course = null;
let charts = [];

const drawChosen = () => course.draw(charts.find((chart) => chart.label === $("course-chart").value));

// Shows the charts of a simulated point, or hides the section without charts.
export function showCourse(given) {
  course ??= new Course($("course-plot"));
  charts = given ?? [];
  $("course").hidden = !charts.length;
  if (!charts.length) { course.clear(); return; }
  const chosen = $("course-chart").value;
  $("course-chart").replaceChildren(...charts.map(({ label }) => make("option", { value: label, text: label })));
  if (charts.some(({ label }) => label === chosen)) $("course-chart").value = chosen;
  $("course-chart").onchange = drawChosen;
  drawChosen();
}
