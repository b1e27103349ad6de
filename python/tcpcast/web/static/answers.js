// The answer: verdict, warnings, one row per model, and inapplicable models with reasons.

import { $, make, setText, table } from "./elements.js";

const MOST_WARNINGS = 3;

function row(answer) {
  const cell = make("td", { class: "value", text: answer.text + (answer.trusted ? "" : " †") });
  const name = make("th", { scope: "row" }, make("span", { text: answer.name }), make("small", { text: answer.what }));
  return make("tr", { class: answer.trusted ? "" : "untrusted" }, name, cell, make("td", { text: answer.regime || "–" }));
}

// Shows the simulated result for the current values in the table of models.
export function showSimulated(point) {
  const body = $("models").tBodies[0];
  for (const old of body.querySelectorAll(".simulated")) old.remove();
  if (!point) return;
  const rows = point.values.map((value) => {
    const interval = value.low === null ? `no 95 % interval: ${value.interval}` : `95 % interval ${value.interval}`;
    const what = ["exact packet-level simulation", ...(value.interval ? [interval] : [])];
    const made = row({ ...value, what: what.join("; "), regime: point.regime });
    made.classList.add("simulated");
    return made;
  });
  body.prepend(...rows);
  $("models").hidden = !body.rows.length;
}

function refused(answers) {
  const reasons = new Map();
  for (const answer of answers) {
    reasons.set(answer.not_applicable, [...(reasons.get(answer.not_applicable) ?? []), answer.name]);
  }
  $("refused").hidden = !answers.length;
  $("refused").firstElementChild.textContent = `${answers.length} ${answers.length === 1 ? "model does" : "models do"} not apply`;
  $("refused").lastElementChild.replaceChildren(
    ...[...reasons].map(([why, names]) => make("li", { text: `${names.join(", ")}: ${why}` })));
}

// Shows the verdict, which screen readers announce only if it differs, and the worst warnings.
export function showHeading({ verdict, sentences, warnings }) {
  setText($("verdict"), verdict);
  $("sentences").replaceChildren(...sentences.map((text) => make("p", { text })));
  const items = warnings.map((text) => make("li", { text }));
  $("warnings").replaceChildren(...items.slice(0, MOST_WARNINGS));
  $("warnings").hidden = !items.length;
  $("more-warnings").hidden = items.length <= MOST_WARNINGS;
  $("more-warnings").firstElementChild.textContent = `Show all ${items.length} warnings`;
  $("more-warnings").lastElementChild.replaceChildren(...items.slice(MOST_WARNINGS));
  $("answer").classList.remove("stale");
}

export function showAnswer(result) {
  const given = result.answers.filter((answer) => answer.value !== null);
  $("summary").textContent = result.summary;
  $("metric-label").textContent = result.metric.label;
  $("models").hidden = !given.length;
  $("models").tBodies[0].replaceChildren(...given.map(row));
  $("dagger").hidden = given.every((answer) => answer.trusted);
  $("pending").hidden = !result.left_out.length;
  $("pending").textContent = `${result.left_out.join(", ")}: calculating …`;
  refused(result.answers.filter((answer) => answer.value === null));
  const own = result.table;
  $("own-table").replaceChildren(...(own ? [table(own.caption, own.columns, own.rows)] : []));
  $("command").textContent = result.copy.command;
  setText($("fault"), "");
}
