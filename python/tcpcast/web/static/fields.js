// The inputs of a question: text inputs, most of them with a slider.

import { make } from "./elements.js";

const isChoice = (field) => Object.keys(field.choices).length > 0;

function choice(field, changed) {
  const select = make("select", { id: `field-${field.name}`, "aria-describedby": `hint-${field.name}` },
    ...Object.keys(field.choices).map((text) => make("option", { value: text, text })));
  select.addEventListener("change", changed);
  return { rows: [select], input: select };
}

function quantity(field, changed) {
  const input = make("input", {
    id: `field-${field.name}`, type: "text", spellcheck: "false", autocapitalize: "off",
    maxlength: 100, "aria-describedby": `hint-${field.name} fault-${field.name}`,
  });
  input.addEventListener("input", changed);
  if (!field.steps.length) return { rows: [input], input };
  const slider = make("input", {
    type: "range", min: 0, max: field.steps.length - 1, step: 1,
    "aria-label": `${field.label}, slider`,
  });
  slider.addEventListener("input", () => {
    input.value = field.steps[slider.valueAsNumber];
    slider.setAttribute("aria-valuetext", input.value);
    changed();
  });
  return { rows: [make("div", { class: "quantity" }, input, slider)], input, slider };
}

// Creates the fields of a question and returns functions that read and write their values.
export function layOut(question, containers, changed) {
  const made = new Map();
  containers.main.replaceChildren();
  containers.more.replaceChildren();
  for (const field of question.fields) {
    const parts = isChoice(field) ? choice(field, changed) : quantity(field, changed);
    const fault = make("p", { id: `fault-${field.name}`, class: "fault", hidden: true });
    const label = make("label", { for: `field-${field.name}`, text: field.label });
    const hint = make("p", { id: `hint-${field.name}`, class: "hint" });
    // A choice is explained by the line of the chosen value.
    const explain = () => { hint.textContent = field.choices[parts.input.value] || field.hint; };
    parts.input.addEventListener("change", explain);
    explain();
    const row = make("div", { class: "field" }, label, ...parts.rows, hint, fault);
    (field.more ? containers.more : containers.main).append(row);
    made.set(field.name, { ...parts, field, fault, explain });
  }
  return {
    read: () => Object.fromEntries([...made].map(([name, { input }]) => [name, input.value])),
    write: (values) => {
      for (const [name, { input, field, explain }] of made) {
        const text = values[name] ?? field.default;
        if (!isChoice(field) || Object.hasOwn(field.choices, text)) input.value = text;
        else input.value = field.default;
        explain();
      }
    },
    // The server computes the slider positions, because it parses units.
    setSliders: (positions) => {
      for (const [name, { slider, input }] of made) {
        const position = positions[name];
        if (!slider || position === null || position === undefined || slider === document.activeElement) continue;
        slider.value = position;
        slider.setAttribute("aria-valuetext", input.value);
      }
    },
    showError: (name, message) => {
      for (const [own, { input, fault }] of made) {
        const text = own === name ? message : "";
        fault.hidden = !text;
        fault.textContent = text;
        if (text) input.setAttribute("aria-invalid", "true");
        else input.removeAttribute("aria-invalid");
      }
      return made.has(name);
    },
  };
}
