// The page: the URL fragment holds the inputs; the server returns the answers.

import { showAnswer, showHeading, showSimulated } from "./answers.js";
import { cancel, follow, get, post } from "./api.js";
import { listenForCaptures } from "./capture.js";
import { showCourse } from "./course.js";
import { $, make, setText } from "./elements.js";
import { layOut } from "./fields.js";
import { Plot } from "./plot.js";
import { readState, writeState } from "./state.js";

const CURVE_PAUSE_MS = 150;

let questions = [];
let question = null;
let fields = null;
let result = null; // the answer that is shown
let curve = null;
let job = null; // the simulation whose points are shown, with its inputs
let asking = null; // the pending request; only the newest inputs are sent after it
let waiting = false;
let curveTimer = 0;
let drawing = false; // a request for a curve is pending; the newest inputs are sent after it
let drawAgain = false;
let plot = null;

const across = () => $("across").value;
const asked = () => ({ question: question.name, values: fields.read(), across: across() });
// A disabled button would lose the focus of the keyboard.
const setBusy = (busy) => $("simulate").setAttribute("aria-disabled", String(Boolean(busy)));
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

function choose(name) {
  question = questions.find((each) => each.name === name) ?? questions[0];
  $("question").value = question.name;
  $("question-hint").textContent = question.hint;
  fields = layOut(question, { main: $("fields"), more: $("more-fields") }, changed);
  $("more").hidden = question.fields.every((field) => !field.more);
  $("across").replaceChildren(...question.across.map(({ name: value, label }) => make("option", { value, text: label })));
}

function drop() {
  curve = null;
  plot.clear();
  $("legend").replaceChildren();
  $("numbers-table").replaceChildren();
  forget();
}

// Removes the simulated points, which are valid only for the inputs of their job.
function forget() {
  if (job?.state === "running") cancel(job.id).catch(() => {});
  job = null;
  $("simulation").textContent = "";
  showCourse();
  if (document.activeElement === $("cancel")) $("simulate").focus();
  $("progress").hidden = $("cancel").hidden = true;
  setBusy(false);
}

function changed() {
  writeState(asked());
  $("copied").textContent = "";
  $("answer").classList.add("stale");
  if (job && !same(job.asked, asked())) forget();
  if (asking) waiting = true;
  else answer();
}

async function answer() {
  do {
    waiting = false;
    const request = { ...asked(), simulated: job !== null, quick: true };
    asking = post("/api/evaluate", request);
    try {
      result = await asking;
      if (result.question !== question.name) continue;
      fields.showError("", "");
      fields.setSliders(result.positions);
      show();
      setBusy(job?.state === "running");
      clearTimeout(curveTimer);
      curveTimer = setTimeout(draw, CURVE_PAUSE_MS);
    } catch (error) {
      refuse(error);
    } finally {
      asking = null;
    }
  } while (waiting);
}

function show() {
  const point = job?.points[0];
  showAnswer(result);
  showSimulated(point);
  // Without a value, a verdict follows from the slow formulas.
  const isPartial = result.left_out.length && result.answers.every(({ value }) => value === null);
  if (point) showHeading(point.heading);
  else if (!isPartial) showHeading(result);
}

function refuse(error) {
  result = null;
  clearTimeout(curveTimer);
  fields.showError(error.field ?? "", error.message);
  setText($("fault"), error.message);
  $("answer").classList.add("stale");
  setBusy(true);
}

async function draw() {
  drawAgain = drawing;
  if (drawing) return;
  drawing = true;
  const request = asked();
  const current = () => same(request, asked());
  try {
    if (question.slow) {
      const whole = await post("/api/evaluate", { ...request, simulated: job !== null });
      if (current()) { result = whole; show(); }
    }
    const newCurve = await post("/api/curve", request);
    if (current()) {
      curve = newCurve;
      plot.draw(curve, job?.points ?? []);
    }
  } catch (error) {
    if (current()) refuse(error);
  } finally {
    drawing = false;
    if (drawAgain) draw();
  }
}

async function simulate() {
  if ($("simulate").ariaDisabled === "true") return;
  const request = asked();
  setBusy(true);
  $("simulation").textContent = "starting …";
  try {
    const mine = { ...(await post("/api/jobs", request)), asked: request };
    if (!same(request, asked())) { cancel(mine.id).catch(() => {}); return; }
    job = mine;
    answer(); // the texts to copy now include the simulation
    await follow(mine, (now) => { if (job?.id === mine.id) progress(Object.assign(job, now)); });
  } catch (error) {
    if (!job || same(request, asked())) { forget(); $("simulation").textContent = error.message; }
  }
}

function progress(now) {
  const running = now.state === "running";
  if (!running && document.activeElement === $("cancel")) $("simulate").focus();
  $("progress").hidden = $("cancel").hidden = !running;
  $("progress").value = now.progress;
  setBusy(running);
  const points = `${now.points.length} point${now.points.length === 1 ? "" : "s"}`;
  const texts = { running: `simulating: ${points}`, done: `simulated: ${points}`, cancelled: `cancelled after ${points}`, failed: now.error?.message };
  if ($("simulation").textContent !== texts[now.state]) $("simulation").textContent = texts[now.state];
  if (now.points.length !== (now.shown ?? 0) && curve) {
    if (!now.shown) {
      showHeading(now.points[0].heading);
      showSimulated(now.points[0]);
      showCourse(now.points[0].over_time);
    }
    now.shown = now.points.length;
    plot.draw(curve, now.points);
  }
}

async function copy(what, button) {
  if (!result) { $("copied").textContent = "There is no answer to copy."; return; }
  try {
    await navigator.clipboard.writeText(result.copy[what]);
    $("copied").textContent = `Copied as ${button.textContent.replace("Copy as ", "")}.`;
  } catch {
    $("copied").textContent = "The browser does not allow copying; see the command below.";
  }
}

async function report() {
  try {
    const made = await post("/api/report", { ...asked(), job: job?.id });
    const address = URL.createObjectURL(new Blob([made.html], { type: "text/html" }));
    make("a", { href: address, download: made.file }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
    $("copied").textContent = `Downloaded ${made.file}.`;
  } catch (error) {
    $("copied").textContent = error.message;
  }
}

function restore() {
  const state = readState();
  if (question && same({ ...state }, { question: question.name, across: across(), values: fields.read() })) return;
  drop();
  choose(state.question);
  fields.write(state.values);
  if (question.across.some(({ name }) => name === state.across)) $("across").value = state.across;
  changed();
}

function listen() {
  $("question").addEventListener("change", () => {
    const kept = fields.read();
    drop();
    choose($("question").value);
    const shared = question.fields.filter((field) => field.name === "rtt");
    fields.write(Object.fromEntries(shared.filter(({ name }) => name in kept).map(({ name }) => [name, kept[name]])));
    changed();
  });
  $("across").addEventListener("change", changed);
  $("reset").addEventListener("click", () => { fields.write({}); changed(); });
  $("simulate").addEventListener("click", simulate);
  $("cancel").addEventListener("click", () => job && cancel(job.id).catch(() => {}));
  $("report").addEventListener("click", report);
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", () => copy(button.dataset.copy, button));
  }
  // The fragment holds the state of the page, so it cannot be a link target.
  document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); $("answer").focus(); });
  $("ask").addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", restore);
  addEventListener("pagehide", () => { if (job?.state === "running") cancel(job.id).catch(() => {}); });
}

async function start() {
  history.replaceState(null, "", `/${location.hash}`);
  plot = new Plot($("plot"));
  try {
    const offered = await get("/api/questions");
    questions = offered.questions;
    $("question").replaceChildren(...questions.map(({ name, title }) => make("option", { value: name, text: title })));
    listen();
    listenForCaptures(offered.upload_bytes);
    restore();
  } catch (error) {
    setText($("fault"), error.message);
  }
}

start();
