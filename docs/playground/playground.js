// The playground: sliders select a configuration, the WebAssembly module simulates it.

import { amount } from "./drawing.js";
import { make } from "./elements.js";
import { Plot } from "./plot.js";

const NS = 1e-9;
const MOST_SLOTS = 300;
const SHOWN_ROUNDS = 360; // of the saw-tooth, whose rate needs a far longer run
const share = (part) => `${(100 * part).toFixed(part > 0.1 ? 0 : 1)} %`;

// Runs a request, {config, until_ns}, and returns the answer of crates/wasm.
export function simulate(wasm, request) {
  const bytes = new TextEncoder().encode(JSON.stringify(request));
  const address = wasm.input(bytes.length);
  new Uint8Array(wasm.memory.buffer, address, bytes.length).set(bytes);
  const length = wasm.run();
  const answer = JSON.parse(new TextDecoder().decode(new Uint8Array(wasm.memory.buffer, wasm.output(), length)));
  if (answer.error) throw new Error(answer.error);
  return answer;
}

export function requestAt(experiment, index) {
  const request = structuredClone(experiment.request);
  for (const [path, value] of experiment.differences[index]) {
    const last = path.at(-1);
    path.slice(0, -1).reduce((part, key) => part[key], request)[last] = value;
  }
  return request;
}

// Sums of an answer since the warm-up, by name: over the link, and per class.
export function sums(answer, classes) {
  const { link_cells: link, class_cells: cells, counters } = answer;
  const named = (names, first) => Object.fromEntries(names.map((name, at) => [name, counters[first + at]]));
  return {
    link: named(link, 0),
    classes: classes.map((_, at) => named(cells, link.length + at * cells.length)),
  };
}

// Rows of the time series as steps between slots of at least a minimum length.
function steps(answer, fromNs) {
  const rows = answer.course.filter((row) => row[0] >= fromNs);
  const every = Math.ceil(rows.length / MOST_SLOTS);
  const kept = rows.filter((_, at) => at % every === 0);
  return kept.slice(1).map((row, at) => ({ end: row[0], seconds: (row[0] - kept[at][0]) * NS, change: row.map((value, column) => value - kept[at][column]) }));
}

// The window of a flow at given times: the last recorded value.
function windowAt(windows, flow, times) {
  const values = [];
  let [next, value] = [0, 0];
  for (const time of times) {
    for (; next < windows.time_ns.length && windows.time_ns[next] <= time; next += 1) {
      if (windows.flow[next] === flow) value = windows.cwnd[next];
    }
    values.push(value);
  }
  return values;
}

function overTime(times, series, label, references = {}) {
  const x = times.map((time) => time * NS);
  return { linear: true, x, texts: x.map((value) => `${value.toPrecision(4)} s`), series, references, metric: { label, unit: "" }, across: { label: "Time (s)" } };
}

const meanQueue = (slot) => slot.change[1] / (slot.seconds / NS);

function lastWindows({ facts, answer }) {
  const end = answer.course.at(-1)[0];
  const step = SHOWN_ROUNDS * facts.rtt_s / NS / MOST_SLOTS;
  const times = Array.from({ length: MOST_SLOTS }, (_, at) => end - (MOST_SLOTS - 1 - at) * step);
  return overTime(times, [{ name: "window", values: windowAt(answer.windows, 0, times) }], "Packets");
}

function windowsAndQueue({ config, facts, answer }) {
  const slots = steps(answer, config.warmup_ns);
  const times = slots.map((slot) => slot.end);
  const flows = config.probes.traced;
  const windows = flows.map((flow) => ({ name: flows.length > 1 ? `window of flow ${flow + 1}` : "window", values: windowAt(answer.windows, flow, times) }));
  const queue = { name: "queue", values: slots.map(meanQueue) };
  return overTime(times, [...windows, queue], "Packets", { "bandwidth-delay product": bdp(config, facts), buffer: headline(config).limit_pkts });
}

function goodputs({ config, facts, answer }) {
  const slots = steps(answer, 0);
  const cells = answer.course_cells;
  const series = facts.classes.map((name, at) => {
    const column = (cell) => 2 + at * cells.length + cells.indexOf(cell);
    const bits = (slot) => 8 * (facts.payload_bytes * slot.change[column("delivered")] - slot.change[column("lacking_bytes")]);
    return { name, values: slots.map((slot) => bits(slot) / slot.seconds / 1e6) };
  });
  return overTime(slots.map((slot) => slot.end), series, "Goodput (Mbit/s)", { link: headline(config).rate.constant / 1e6 });
}

const headline = (config) => config.links[config.headline];
const bdp = (config, facts) => (headline(config).rate.constant * facts.rtt_s) / (8 * config.classes[0].packet_bytes);
const total = (classes, cell) => classes.reduce((sum, each) => sum + each[cell], 0);
const delay = (classes) => total(classes, "waited_ns") / Math.max(1, total(classes, "passed")) * NS;

// Plot over time, and sentence of the result, per experiment.
const CURVES = { "slow-start": windowsAndQueue, "saw-tooth": lastWindows, "buffer-sizing": windowsAndQueue, "cubic-and-bbr": goodputs };
const SENTENCES = {
  "slow-start": ({ config, facts, answer, link, classes }) => {
    const target = bdp(config, facts);
    const at = answer.windows.cwnd.findIndex((window) => window >= target);
    const reached = at < 0 ? "does not reach" : "reaches";
    const when = at < 0 ? "" : ` after ${amount(answer.windows.time_ns[at] * NS, "s")}, ${brief(answer.windows.time_ns[at] * NS / facts.rtt_s)} RTT`;
    const lost = total(classes, "queue_drops");
    return `The window ${reached} the bandwidth-delay product of ${brief(target)} packets${when}; the link is busy for ${share(link.busy_ns / link.time_ns)} of the first ${amount(link.time_ns * NS, "s")}, and ${lost || "no"} packets are lost.`;
  },
  "saw-tooth": ({ facts, link, classes }) => {
    const rate = total(classes, "sent") / (link.time_ns * NS);
    const named = Object.entries(facts.formulas).map(([name, { rate_pps: value, trusted }]) => `${name} ${brief(value)}${trusted ? "" : " †"} (${signed(value / rate - 1)})`);
    const dagger = Object.values(facts.formulas).some(({ trusted }) => !trusted) ? " † outside the domain of the formula." : "";
    return `The flow sends ${brief(rate)} packets/s in this run; by formula: ${named.join(", ")}.${dagger}`;
  },
  "buffer-sizing": ({ config, link, classes }) =>
    `With a buffer of ${headline(config).limit_pkts} packets, the link is busy for ${(100 * link.busy_ns / link.time_ns).toFixed(1)} % of the time; the queue delays a packet by ${amount(delay(classes), "s")} on average, and ${amount(total(classes, "queue_drops") / total(classes, "arrived"), "%")} of the packets are lost.`,
  "cubic-and-bbr": ({ facts, link, classes }) => {
    const rates = classes.map((each) => 8 * (facts.payload_bytes * each.delivered - each.lacking_bytes) / (link.time_ns * NS));
    const named = facts.classes.map((name, at) => `${name} gets ${amount(rates[at], "bit/s")}`);
    return `After the first 10 s, ${named.join(" and ")}; the queue delays a packet by ${amount(delay(classes), "s")} on average.`;
  },
};

const brief = (value) => Number(value.toPrecision(3)).toLocaleString("en");
const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(100 * value).toFixed(0)} %`;

// Predicted rate against loss, with the simulated rate at each loss ratio that was visited.
function rateCurve(experiment, positions, visited) {
  const losses = experiment.sliders.at(-1).positions;
  const x = losses.map((text) => Number(text.replace("%", "")) / 100);
  const first = place(experiment, [...positions.slice(0, -1), 0]);
  const facts = experiment.facts.slice(first, first + losses.length);
  const names = [...new Set(facts.flatMap((each) => Object.keys(each.formulas)))];
  const series = names.map((name) => ({ name, values: facts.map((each) => each.formulas[name]?.rate_pps ?? null), trusted: facts.map((each) => each.formulas[name]?.trusted) }));
  const points = losses.flatMap((text, at) => {
    const rate = visited.get(first + at);
    return rate ? [{ x: x[at], text, values: [{ name: "packet", value: rate, low: null, high: null, text: brief(rate) }] }] : [];
  });
  const curve = { x, texts: losses, series, references: {}, metric: { label: "Send rate (packets/s)", unit: "" }, across: { label: "Loss" }, here: x[positions.at(-1)] };
  return [curve, points];
}

// Index of a combination; the position of the last slider varies fastest.
export function place(experiment, positions) {
  return positions.reduce((sum, position, at) => sum * experiment.sliders[at].positions.length + position, 0);
}

function plotOn(parent, title) {
  const [area, key, values] = [make("div"), make("ul", { class: "legend" }), make("div", { class: "table-wrapper numbers" })];
  const shown = make("details", {}, make("summary", { text: "Values" }), values);
  const box = make("section", {}, make("h3", { text: title }), area, key, shown);
  parent.append(box);
  return { box, plot: new Plot(area, { legend: key, numbers: values }) };
}

function control(slider, changed) {
  const id = `slider-${slider.label.replace(/\W+/g, "-")}`;
  const label = make("label", { for: id, text: slider.label });
  if (slider.choice) {
    const select = make("select", { id }, ...slider.positions.map((text, at) => make("option", { value: at, text, selected: at === slider.start })));
    select.addEventListener("change", changed);
    return { row: make("div", { class: "control" }, label, select), read: () => Number(select.value) };
  }
  const input = make("input", { id, type: "range", min: 0, max: slider.positions.length - 1, step: 1, value: slider.start });
  const output = make("output", { for: id });
  const show = () => {
    output.textContent = slider.positions[input.valueAsNumber];
    input.setAttribute("aria-valuetext", output.textContent);
  };
  show();
  input.addEventListener("input", () => { show(); changed(); });
  return { row: make("div", { class: "control" }, label, input, output), read: () => input.valueAsNumber };
}

class Playground {
  #waiting = false;

  constructor(root, wasm, experiments) {
    this.wasm = wasm;
    this.visited = new Map();
    const tabs = make("div", { class: "tabs", role: "group", "aria-label": "Experiment" });
    this.buttons = experiments.map((experiment) => {
      const button = make("button", { type: "button", text: experiment.title });
      button.addEventListener("click", () => this.open(experiment));
      tabs.append(button);
      return { button, experiment };
    });
    this.question = make("p");
    this.controls = make("div", { class: "controls" });
    this.result = make("p", { class: "result", role: "status" });
    root.replaceChildren(tabs, this.question, this.controls, this.result);
    this.time = plotOn(root, "Over time");
    this.rate = plotOn(root, "Formulas and simulation");
    new MutationObserver(() => [this.time, this.rate].forEach(({ plot }) => plot.redraw()))
      .observe(document.body, { attributes: true, attributeFilter: ["data-theme"] });
    this.open(experiments[0]);
  }

  open(experiment) {
    this.experiment = experiment;
    this.visited.clear();
    for (const { button, experiment: own } of this.buttons) button.setAttribute("aria-pressed", String(own === experiment));
    this.question.textContent = experiment.question;
    this.result.textContent = "";
    this.sliders = experiment.sliders.map((slider) => control(slider, () => this.update()));
    this.controls.replaceChildren(...this.sliders.map(({ row }) => row));
    this.update();
  }

  // A slider reports many positions while it is moved; each frame simulates only the last one.
  update() {
    if (this.#waiting) return;
    this.#waiting = true;
    requestAnimationFrame(() => { this.#waiting = false; this.#run(); });
  }

  #run() {
    const { experiment } = this;
    const positions = this.sliders.map(({ read }) => read());
    const index = place(experiment, positions);
    const [request, facts] = [requestAt(experiment, index), experiment.facts[index]];
    const answer = simulate(this.wasm, request);
    const run = { config: request.config, facts, answer, ...sums(answer, facts.classes) };
    this.result.textContent = SENTENCES[experiment.name](run);
    this.time.plot.draw(CURVES[experiment.name](run), []);
    const hasFormulas = Object.keys(facts.formulas).length > 0;
    this.rate.box.hidden = !hasFormulas;
    if (hasFormulas) {
      this.visited.set(index, total(run.classes, "sent") / (run.link.time_ns * NS));
      this.rate.plot.draw(...rateCurve(experiment, positions, this.visited));
    }
  }
}

export const loadModule = async () => {
  const packed = Uint8Array.from(atob(modules.wasm), (letter) => letter.charCodeAt(0));
  const bytes = new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip")));
  const { instance } = await WebAssembly.instantiate(await bytes.arrayBuffer());
  return instance.exports;
};

export function startPlayground(wasm, experiments) {
  const root = document.getElementById("experiments");
  return root && new Playground(root, wasm, experiments);
}
