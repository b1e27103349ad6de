// A capture that is dropped or chosen, analysed on this machine, and shown with its limits.

import { cancel, follow, RequestError, upload } from "./api.js";
import { $, make, setText, table } from "./elements.js";

let running = null;

function direction(row) {
  const heading = make("h3", {}, `${row.src} → ${row.dst}`);
  const facts = table("", ["Limited by", "Throughput", "Mean RTT", "Retransmissions"], [[row.limited_by || "–", row.throughput, row.rtt, String(row.retransmissions)]]);
  const shares = row.shares.map((share) =>
    make("li", {}, make("meter", { min: 0, max: 1, value: share.share, "aria-label": share.name }), ` ${share.name} ${share.text}`));
  return make("article", {}, heading, make("p", { text: row.advice }), make("div", { class: "scroll" }, facts), make("ul", { class: "shares" }, ...shares));
}

function show(read) {
  const few = read.rows.length < read.directions ? ` (showing the ${read.rows.length} with the most bytes)` : "";
  const title = `${read.file}: ${read.directions} direction${read.directions === 1 ? "" : "s"} with data${few}`;
  $("capture-answer").replaceChildren(
    ...(read.verdict ? [make("p", { class: "verdict", text: read.verdict })] : []),
    make("p", { text: title }),
    ...read.warnings.map((text) => make("p", { class: "warning", text })),
    ...read.rows.map(direction));
}

async function analyse(file, maxBytes) {
  setText($("capture-fault"), "");
  $("capture-answer").replaceChildren();
  if (file.size > maxBytes) {
    throw new RequestError(`This file has more than ${Math.round(maxBytes / 2 ** 20)} MiB; read it with: tcpcast trace FILE`);
  }
  $("capture-state").textContent = "reading …";
  running = await upload(file);
  $("capture-cancel").hidden = false;
  const ended = await follow(running, () => {});
  if (ended.state === "failed") throw new RequestError(ended.error.message);
  if (ended.state === "done") show(ended.result);
  $("capture-state").textContent = ended.state === "cancelled" ? "cancelled" : "done";
}

async function begin(file, maxBytes) {
  if (!file) return;
  if (running) await cancel(running.id).catch(() => {});
  try {
    await analyse(file, maxBytes);
  } catch (error) {
    $("capture-state").textContent = "";
    setText($("capture-fault"), error.message);
  } finally {
    running = null;
    $("capture-cancel").hidden = true;
  }
}

export function listenForCaptures(maxBytes) {
  $("file").addEventListener("change", () => begin($("file").files[0], maxBytes));
  $("capture-cancel").addEventListener("click", () => running && cancel(running.id).catch(() => {}));
  // A file that is dropped elsewhere must not replace the page.
  for (const kind of ["dragover", "drop"]) addEventListener(kind, (event) => event.preventDefault());
  addEventListener("drop", (event) => begin(event.dataTransfer?.files[0], maxBytes));
  addEventListener("pagehide", () => running && cancel(running.id).catch(() => {}));
}
