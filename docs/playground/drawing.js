// Colours, amounts and legends of all plots, and the canvas that follows size and colour scheme.

import { make } from "./elements.js";

// Palette of Okabe and Ito; lines also differ in dashes, points in shape.
const LIGHT = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8a7f00", "#7570b3"];
const DARK = ["#56B4E9", "#E69F00", "#2fc39a", "#e39cc6", "#F0E442", "#ff9a73", "#c9c2ff", "#ffffff"];
const dark = matchMedia("screen and (prefers-color-scheme: dark)");
// A page of the documentation has a switch of its own for light and dark.
const isDark = () => ({ dark: true, light: false })[document.body.dataset.theme] ?? dark.matches;
export const hue = (index) => (isDark() ? DARK : LIGHT)[index % LIGHT.length];
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [14, 4], [4, 4], [2, 6], [6, 2, 2, 2]];
export const dash = (index) => DASHES[index % DASHES.length];
const PREFIXES = [[1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"]];
const LEGEND_PX = 28;

export const colour = (name) => getComputedStyle(document.body).getPropertyValue(name).trim();

export const brief = (value) => String(Number(value.toPrecision(3)));

export function amount(value, unit) {
  if (value === null || value === undefined) return "–";
  if (unit === "%") return `${brief(100 * value)} %`;
  if (value === 0) return `0 ${unit}`.trim();
  const [factor, prefix] = unit === "bit/s" || unit === "s"
    ? PREFIXES.find(([size]) => Math.abs(value) >= size * 0.9995) ?? PREFIXES.at(-1) : [1, ""];
  return `${brief(value / factor)} ${prefix}${unit}`.trim();
}

export const axisStyle = () => ({
  stroke: colour("--ink"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") },
  font: "12px system-ui, sans-serif", labelFont: "13px system-ui, sans-serif",
});

function svgElement(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// An entry of a legend: a shape, and its meaning.
export function entry([name, attributes], text) {
  const drawing = svgElement("svg", { viewBox: `0 0 ${LEGEND_PX} 12`, "aria-hidden": "true" }, svgElement(name, attributes));
  return make("li", {}, drawing, text);
}

export const lineShape = (line) => ["path", {
  d: `M0 6H${LEGEND_PX}`, stroke: line.colour, "stroke-width": line.width + 0.5, "stroke-dasharray": line.dash.join(" "),
}];

export const bandShape = (fill) => ["rect", { x: 0, y: 1, width: LEGEND_PX, height: 10, fill }];

// uPlot measures its container only once, so it is redrawn when the size changes.
export class Canvas {
  #made = null;
  #drawn = null;

  constructor(container) {
    this.container = container;
    new ResizeObserver(() => this.#resize()).observe(container);
    dark.addEventListener("change", () => this.redraw());
    // Paper is light and has a different width than the window.
    const paper = matchMedia("print");
    paper.addEventListener("change", () => { this.#resize(); this.redraw(); });
  }

  get size() {
    const width = Math.max(240, this.container.clientWidth);
    return { width, height: Math.round(Math.min(420, Math.max(260, width * 0.55))) };
  }

  #resize() {
    const size = this.size;
    if (this.#made && this.#made.width !== size.width) this.#made.setSize(size);
  }

  redraw() {
    if (this.#drawn) this.draw(...this.#drawn);
  }

  clear() {
    this.#made?.destroy();
    this.#made = null;
    this.#drawn = null;
  }

  // Subclasses implement create(...drawn), which returns the plot and its description.
  draw(...drawn) {
    this.clear();
    this.#drawn = drawn;
    const { made, label } = this.create(...drawn);
    this.#made = made;
    this.container.firstElementChild.setAttribute("role", "img");
    this.container.firstElementChild.setAttribute("aria-label", label);
  }
}
