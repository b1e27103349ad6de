// The answer: sentences, a row a model, what does not apply and why.

import { $, make, say, table } from "./elements.js";

function row(answer) {
  const cell = make("td", { class: "value", text: answer.text + (answer.trusted ? "" : " †") });
  const about = [answer.what, ...answer.warnings].join("; ");
  const name = make("th", { scope: "row" }, make("span", { text: answer.name }), make("small", { text: about }));
  return make("tr", { class: answer.trusted ? "" : "untrusted" }, name, cell, make("td", { text: answer.regime || "–" }));
}

// What was simulated for the values as asked stands among the models.
export function showSimulated(point) {
  const body = $("models").tBodies[0];
  for (const old of body.querySelectorAll(".simulated")) old.remove();
  if (!point) return;
  const rows = point.values.map((value) => {
    const what = ["exact packet-level simulation", ...(value.interval ? [`95 % interval ${value.interval}`] : []), ...point.warnings];
    const made = row({ ...value, what: what.join("; "), warnings: [], regime: point.regime });
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

export function showAnswer(told) {
  const given = told.answers.filter((answer) => answer.value !== null);
  const sentences = told.sentences.map((text) => make("p", { text }));
  const before = $("sentences").textContent;
  if (before !== told.sentences.join("")) $("sentences").replaceChildren(...sentences);
  $("summary").textContent = told.summary;
  $("warnings").replaceChildren(...told.warnings.map((text) => make("li", { text })));
  $("metric-label").textContent = told.metric.label;
  $("models").hidden = !given.length;
  $("models").tBodies[0].replaceChildren(...given.map(row));
  $("dagger").hidden = given.every((answer) => answer.trusted);
  $("pending").hidden = !told.left_out.length;
  $("pending").textContent = `${told.left_out.join(", ")}: being calculated …`;
  refused(told.answers.filter((answer) => answer.value === null));
  const own = told.table;
  $("own-table").replaceChildren(...(own ? [table(own.caption, own.columns, own.rows)] : []));
  $("command").textContent = told.copy.command;
  say($("fault"), "");
  $("answer").classList.remove("stale");
}
