// The page: the URL fragment holds a form with its values; the server returns reports.

import { ask, sections, send } from "./answer.js";
import { $, make, setText } from "./elements.js";
import { layOut } from "./fields.js";

const PAUSE_MS = 120;
const PREFERRED_AXES = ["loss", "traffic.sources", "traffic.flows"];

const CURVE_SECTIONS = new Set(["Figures", "Answers", "Check before use", "Reproduce this report"]);

let forms = [];
let maxBytes = 0;
let form = null;
let fields = null;
let answer = null; // the answer that is shown
let file = null;
let pause = 0;
let running = null; // stops the simulation, or the analysis of a capture

const values = () => fields.read();
const fieldsOf = (chosen, scenario) => [...chosen.fields, ...(chosen.scenarios[scenario] ?? [])];
const scenarioField = (chosen) => chosen.fields.find(({ name }) => name === "file");
// A disabled button would lose the focus of the keyboard.
const setBusy = (busy) => $("run").setAttribute("aria-disabled", String(busy));

function choose(name, given) {
  form = forms.find((each) => each.name === name) ?? forms[0];
  $("form").value = document.body.dataset.form = form.name;
  $("form-hint").textContent = form.hint;
  $("run").textContent = form.file ? "Analyse" : "Simulate";
  $("file-field").hidden = !form.file;
  const scenario = given.file in form.scenarios ? given.file : scenarioField(form)?.default;
  const offered = fieldsOf(form, scenario);
  fields = layOut(offered, $("fields"), $("more-fields"), changed);
  fields.write({ ...given, ...(scenario ? { file: scenario } : {}) });
  $("field-file")?.addEventListener("change", () => { choose(form.name, { file: $("field-file").value }); changed(); });
  $("more").hidden = offered.every(({ more }) => !more);
  const axes = form.curve ? offered.filter(({ steps }) => steps.length) : [];
  $("across").replaceChildren(...axes.map(({ name: value, label }) => make("option", { value, text: label })));
  $("across").value = [given.across, ...PREFERRED_AXES, axes[0]?.name].find((each) => axes.some((axis) => axis.name === each)) ?? "";
  $("curve-section").hidden = !axes.length;
  clear();
}

function clear() {
  answer = null;
  for (const id of ["report", "curve", "figures"]) $(id).replaceChildren();
  $("verdict").textContent = $("command").textContent = "";
  for (const id of ["fault", "messages", "curve-fault"]) setText($(id), "");
}

function writeState() {
  // This also removes the token of the start URL from the address.
  const across = $("across").value;
  history.replaceState(null, "", `/#${new URLSearchParams({ form: form.name, ...(across ? { across } : {}), ...values() })}`);
}

function changed() {
  stop();
  writeState();
  setText($("state"), "");
  $("state").hidden = false;
  $("copied").textContent = "";
  $("answer").classList.add("stale");
  setBusy(false);
  clearTimeout(pause);
  if (form.file) showUnanswered();
  else pause = setTimeout(askFormulas, PAUSE_MS);
}

function showUnanswered() {
  clear();
  $("verdict").textContent = file ? "" : "Choose a pcap or pcapng file, or drop it here. The file stays on this machine.";
  $("answer").classList.remove("stale");
}

function show(given) {
  answer = given;
  fields.showError("", "");
  fields.setSliders(given.positions);
  setText($("fault"), "");
  setText($("messages"), given.messages);
  $("verdict").textContent = given.verdict;
  $("command").textContent = given.command;
  // Figures follow the curve, so that the curve stays visible.
  const found = sections(given);
  const isFigure = (section) => section.firstChild.textContent.startsWith("Figure");
  $("report").replaceChildren(...found.filter((section) => !isFigure(section)));
  $("figures").replaceChildren(...found.filter(isFigure));
  $("answer").classList.remove("stale");
}

function refuse(error) {
  if (error.name === "AbortError") return;
  fields.showError(error.field ?? "", error.message);
  setText($("fault"), error.message);
}

// Calls a function for the newest values. At most one call is pending, because stopping a process
// takes longer than waiting for its answer.
function latest(act) {
  let busy = false;
  let again = false;
  return async () => {
    again = busy;
    if (busy) return;
    busy = true;
    do {
      again = false;
      await act();
    } while (again);
    busy = false;
  };
}

const key = () => JSON.stringify([form.name, $("across").value, values()]);

const askFormulas = latest(async () => {
  const asked = key();
  try {
    const given = await ask(form.name, values());
    if (asked !== key() || running) return;
    show(given);
    if (given.page) askCurve();
  } catch (error) {
    if (asked === key() && !running) refuse(error);
  }
});

const askCurve = latest(async () => {
  const asked = key();
  if (!$("across").value) return;
  try {
    const given = await ask(form.name, { ...values(), across: $("across").value });
    if (asked === key() && !running) showCurve(given);
  } catch (error) {
    if (asked === key()) setText($("curve-fault"), error.message);
  }
});

// Shows the figure of the first metric; the other figures and the values can be opened.
function showCurve(given) {
  setText($("curve-fault"), "");
  const found = sections(given, () => true).filter((section) => CURVE_SECTIONS.has(section.firstChild.textContent));
  const [first, ...others] = found.flatMap((section) => [...section.querySelectorAll("figure")]);
  const more = make("details", {}, make("summary", { text: "More curves" }), ...others);
  const rest = found.filter((section) => !section.textContent.startsWith("Figures") && section.childElementCount > 1);
  $("curve").replaceChildren(...(first ? [first] : []), ...(others.length ? [more] : []), ...rest);
}

function stop() {
  running?.abort();
  running = null;
  if (document.activeElement === $("cancel")) $("run").focus();
  $("progress").hidden = $("cancel").hidden = true;
}

async function run() {
  if ($("run").ariaDisabled === "true" || (form.file && !file)) return;
  if (file?.size > maxBytes) {
    refuse(new Error(`This file is larger than ${Math.round(maxBytes / 2 ** 20)} MiB; use the command tcpcast trace FILE.`));
    return;
  }
  clearTimeout(pause);
  const mine = new AbortController();
  running = mine;
  const steps = form.file || !$("across").value ? [{}] : [{}, { across: $("across").value }];
  setBusy(true);
  $("cancel").hidden = $("progress").hidden = false;
  $("progress").value = 0;
  $("state").textContent = form.file ? "reading …" : "simulating …";
  try {
    for (const [at, more] of steps.entries()) {
      const onProgress = (share) => { $("progress").value = (at + share) / steps.length; };
      const given = await ask(form.name, { ...values(), ...more, ...(form.file ? {} : { simulate: "1" }) }, { file: form.file ? file : undefined, signal: mine.signal, onProgress });
      if (at) showCurve(given);
      else show(given);
    }
    $("state").textContent = form.file ? "done" : "simulated";
  } catch (error) {
    if (running !== mine) return;
    $("state").textContent = error.name === "AbortError" ? "cancelled" : "";
    refuse(error);
  }
  if (running === mine) { running = null; stop(); setBusy(false); }
}

async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    $("copied").textContent = `Copied the ${what}.`;
  } catch {
    $("copied").textContent = "The browser does not allow copying; select the text instead.";
  }
}

function download() {
  if (!answer) return;
  const address = URL.createObjectURL(new Blob([answer.page], { type: "text/html" }));
  make("a", { href: address, download: `tcpcast-${form.name}.html` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
  $("copied").textContent = `Downloaded tcpcast-${form.name}.html.`;
}

function takeFile(given) {
  if (!given) return;
  file = given;
  if (!form.file) { choose(forms.find((each) => each.file).name, {}); }
  changed();
  run();
}

function restore() {
  const { form: name, ...given } = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  choose(name, given);
  changed();
}

function listen() {
  $("form").addEventListener("change", () => {
    const { rtt } = values();
    choose($("form").value, rtt ? { rtt } : {});
    changed();
  });
  $("across").addEventListener("change", () => { $("curve").replaceChildren(); changed(); });
  $("reset").addEventListener("click", () => { choose(form.name, scenarioField(form) ? { file: $("field-file").value } : {}); changed(); });
  $("run").addEventListener("click", run);
  $("cancel").addEventListener("click", () => running?.abort());
  $("copy").addEventListener("click", () => copy($("command").textContent, "command"));
  $("download").addEventListener("click", download);
  $("file").addEventListener("change", () => takeFile($("file").files[0]));
  // A file that is dropped elsewhere must not replace the page.
  for (const kind of ["dragover", "drop"]) addEventListener(kind, (event) => event.preventDefault());
  addEventListener("drop", (event) => takeFile(event.dataTransfer?.files[0]));
  // The fragment holds the state of the page, so it cannot be a link target.
  document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); $("answer").focus(); });
  $("ask").addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", restore);
}

async function start() {
  history.replaceState(null, "", `/${location.hash}`);
  try {
    ({ forms, upload_bytes: maxBytes } = await (await send("/api/forms")).json());
    $("form").replaceChildren(...forms.map(({ name, title }) => make("option", { value: name, text: title })));
    listen();
    restore();
  } catch (error) {
    setText($("fault"), error.message);
  }
}

start();
