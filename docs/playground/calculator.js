// The calculator: free fields describe one path, the WebAssembly module simulates it.

import { amount } from "./drawing.js";
import { make } from "./elements.js";
import { simulate, sums } from "./playground.js";

const NS = 1e9;
const MOST_PACKETS = 1_500_000; // about a second
const MOST_SECONDS = 120;
const ACK_BYTES = 40; // the RTT includes the transmission time of such an acknowledgement

// Fields: name, label, unit, start value, least and largest value; an empty field means no limit.
export const FIELDS = [
  ["rtt", "RTT", "ms", "50", 0.1, 2000],
  ["rate", "Link rate", "Mbit/s", "100", 0.05, 10_000],
  ["loss", "Random loss", "%", "0", 0, 50],
  ["buffer", "Buffer", "BDP", "1", 0, 100],
  ["flows", "Flows", "", "1", 1, 100],
  ["window", "Receiver window", "KiB", "", 2, 1_000_000],
  ["size", "Size of a transfer", "MB", "10", 0.001, 1_000_000],
];

// Request of the module for values by field; null for an empty field. Like Python's conversion.
export function requestFor(template, values) {
  const request = structuredClone(template);
  const { config } = request;
  const [rttNs, bps] = [values.rtt * 1e6, Math.round(values.rate * 1e6)];
  const flows = config.classes[0];
  const link = config.links[config.headline];
  const [packetNs, ackNs] = [flows.packet_bytes, ACK_BYTES].map((bytes) => 8 * bytes / bps * NS);
  const seconds = runSeconds(values, flows.packet_bytes);
  link.rate.constant = bps;
  link.limit_pkts = Math.max(1, Math.ceil(values.buffer * rttNs / NS * bps / 8 / flows.packet_bytes - 1e-9));
  link.loss = values.loss > 0 ? { model: { bernoulli: values.loss / 100 }, at: "before" } : null;
  config.warmup_ns = Math.round(seconds / 4 * NS);
  request.until_ns = Math.round(seconds * NS);
  flows.flows = values.flows;
  flows.traffic.files.bulk.start.times = Array(values.flows).fill(0);
  const oneWayNs = Math.max(0, (rttNs - packetNs - ackNs) / 2);
  flows.delay_ns = Math.round(oneWayNs);
  flows.back_delay_ns = Math.round(oneWayNs + ackNs);
  const { modern } = flows.tcp;
  modern.receiver_window = values.window && Math.max(1, Math.floor(values.window * 1024 / modern.mss));
  return request;
}

function runSeconds({ rtt, rate }, packetBytes) {
  const wanted = Math.max(20, 400 * rtt / 1000);
  return Math.min(wanted, MOST_SECONDS, MOST_PACKETS * 8 * packetBytes / (rate * 1e6));
}

// Time in seconds until the flows have delivered a number of bytes, or null if the run is too short.
export function timeOf(answer, bytes, payloadBytes) {
  const column = (cell) => 2 + answer.course_cells.indexOf(cell);
  const delivered = (row) => payloadBytes * row[column("delivered")] - row[column("lacking_bytes")];
  const after = answer.course.findIndex((row) => delivered(row) >= bytes);
  if (after < 0) return null;
  const [one, two] = [answer.course[Math.max(0, after - 1)], answer.course[after]];
  const part = delivered(two) > delivered(one) ? (bytes - delivered(one)) / (delivered(two) - delivered(one)) : 1;
  return (one[0] + Math.max(0, part) * (two[0] - one[0])) / NS;
}

// Rows of the result: name, value.
export function results(template, values, answer) {
  const { mss } = template.config.classes[0].tcp.modern;
  const { link, classes: [flows] } = sums(answer, ["flows"]);
  const seconds = link.time_ns / NS;
  const goodput = 8 * (mss * flows.delivered - flows.lacking_bytes) / seconds;
  const bdp = values.rate * 1e6 * values.rtt / 8000;
  const rows = [
    ["Goodput", amount(goodput, "bit/s")],
    ["Goodput of a flow", amount(goodput / values.flows, "bit/s")],
    ["Link busy", amount(link.busy_ns / link.time_ns, "%")],
    ["Mean queueing delay", amount(flows.waited_ns / Math.max(1, flows.passed) / NS, "s")],
    ["Packets lost in the queue", amount(flows.queue_drops / Math.max(1, flows.arrived), "%")],
    ["Bandwidth-delay product", `${Number((bdp / 1000).toPrecision(3))} kB, ${Math.round(bdp / template.config.classes[0].packet_bytes)} packets`],
  ];
  if (values.size) {
    const time = timeOf(answer, values.size * 1e6, mss);
    const rest = values.size * 8e6 / goodput;
    const text = time === null ? `about ${amount(rest, "s")}, at this goodput` : amount(time, "s");
    rows.unshift([`Time of ${values.size} MB from the first packet`, text]);
  }
  return rows;
}

// Values of the fields by name, and the first error as text.
export function readFields(texts) {
  const values = {};
  for (const [name, label, unit, , least, most] of FIELDS) {
    const text = (texts[name] ?? "").trim();
    if (!text && (name === "window" || name === "size")) { values[name] = null; continue; }
    const value = Number(text.replace(",", "."));
    if (!text || !(value >= least && value <= most)) return { error: `${label}: must be between ${least} and ${most} ${unit}`.trim() };
    values[name] = name === "flows" ? Math.round(value) : value;
  }
  return { values };
}

class Calculator {
  constructor(root, wasm, templates) {
    [this.wasm, this.templates] = [wasm, templates];
    const given = new URLSearchParams(location.hash.slice(1));
    this.inputs = Object.fromEntries(FIELDS.map(([name, label, unit, start]) => {
      const value = given.get(name) ?? (given.size ? "" : start);
      return [name, make("input", { id: `field-${name}`, inputmode: "decimal", autocomplete: "off", value, placeholder: name === "window" ? "no limit" : "" })];
    }));
    this.stack = make("select", { id: "field-stack" }, ...Object.keys(templates).map((name) => make("option", { value: name, text: name, selected: name === given.get("stack") })));
    const row = (id, text, input) => make("div", { class: "field" }, make("label", { for: id, text }), input);
    const form = make("form", {}, ...FIELDS.map(([name, label, unit]) => row(`field-${name}`, unit ? `${label}, ${unit}` : label, this.inputs[name])), row("field-stack", "TCP", this.stack));
    this.message = make("p", { role: "status" });
    this.table = make("div", { class: "table-wrapper" });
    root.replaceChildren(form, this.message, this.table);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("change", () => this.show());
    this.show();
  }

  show() {
    const texts = Object.fromEntries(Object.entries(this.inputs).map(([name, input]) => [name, input.value]));
    const { values, error } = readFields(texts);
    this.message.textContent = error ?? "";
    this.table.hidden = Boolean(error);
    if (error) return;
    const stack = this.stack.value;
    history.replaceState(null, "", `#${new URLSearchParams({ ...texts, stack })}`);
    const template = this.templates[stack];
    const request = requestFor(template, values);
    const rows = results(template, values, simulate(this.wasm, request));
    const body = rows.map(([name, value]) => make("tr", {}, make("th", { scope: "row", text: name }), make("td", { text: value })));
    this.table.replaceChildren(make("table", {}, make("tbody", {}, ...body)));
    this.message.textContent = `One simulated run of ${amount(request.until_ns / NS, "s")}; rates and delays are means after its first quarter.`;
  }
}

export function startCalculator(wasm, templates) {
  const root = document.getElementById("path-calculator");
  return root && new Calculator(root, wasm, templates);
}
