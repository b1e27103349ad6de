// A capture: dropped or chosen, read on this machine, shown with what limited it.

import { cancel, Fault, follow, upload } from "./api.js";
import { $, make, say, table } from "./elements.js";

let running = null;

function direction(row) {
  const heading = make("h3", {}, `${row.src} → ${row.dst}`);
  const facts = table("", ["Throughput", "Mean RTT", "Retransmissions", "Limited by"], [[row.throughput, row.rtt, String(row.retransmissions), row.limited_by || "–"]]);
  const shares = row.shares.map((share) =>
    make("li", {}, make("meter", { min: 0, max: 1, value: share.share, "aria-label": share.name }), ` ${share.name} ${share.text}`));
  return make("article", {}, heading, make("p", { text: row.advice }), make("div", { class: "scroll" }, facts), make("ul", { class: "shares" }, ...shares));
}

function show(read) {
  const few = read.rows.length < read.directions ? `, the ${read.rows.length} with most bytes shown` : "";
  const title = `${read.file}: ${read.directions} direction${read.directions === 1 ? "" : "s"} with data${few}`;
  $("capture-answer").replaceChildren(
    make("p", { text: title }),
    ...read.warnings.map((text) => make("p", { class: "warning", text })),
    ...read.rows.map(direction));
}

async function take(file, most) {
  say($("capture-fault"), "");
  $("capture-answer").replaceChildren();
  if (file.size > most) {
    throw new Fault(`This file has more than ${Math.round(most / 2 ** 20)} MiB; read it by: tcpcast trace FILE`);
  }
  $("capture-state").textContent = "reading …";
  running = await upload(file);
  $("capture-cancel").hidden = false;
  const over = await follow(running, () => {});
  if (over.state === "failed") throw new Fault(over.error.message);
  if (over.state === "done") show(over.result);
  $("capture-state").textContent = over.state === "cancelled" ? "cancelled" : "read";
}

async function begin(file, most) {
  if (!file) return;
  if (running) await cancel(running.id).catch(() => {});
  try {
    await take(file, most);
  } catch (fault) {
    $("capture-state").textContent = "";
    say($("capture-fault"), fault.message);
  } finally {
    running = null;
    $("capture-cancel").hidden = true;
  }
}

export function takeCaptures(most) {
  $("file").addEventListener("change", () => begin($("file").files[0], most));
  $("capture-cancel").addEventListener("click", () => running && cancel(running.id).catch(() => {}));
  // A file that misses the place must not replace the page.
  for (const kind of ["dragover", "drop"]) addEventListener(kind, (event) => event.preventDefault());
  addEventListener("drop", (event) => begin(event.dataTransfer?.files[0], most));
  addEventListener("pagehide", () => running && cancel(running.id).catch(() => {}));
}
