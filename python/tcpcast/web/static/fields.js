// The inputs of a form: choices and text fields; most text fields have a slider.

import { make } from "./elements.js";

function choice(field, changed) {
  const options = Object.keys(field.choices).map((value) => make("option", { value, text: value }));
  const blank = Object.hasOwn(field.choices, field.default) ? [] : [make("option", { value: "", text: "" })];
  const input = make("select", {}, ...blank, ...options);
  input.addEventListener("change", changed);
  return { input, shown: input };
}

function quantity(field, changed) {
  const input = make("input", { type: "text", spellcheck: "false", autocapitalize: "off", maxlength: 200 });
  input.addEventListener("input", changed);
  if (!field.steps.length) return { input, shown: input };
  const slider = make("input", { type: "range", min: 0, max: field.steps.length - 1, step: 1, "aria-label": `${field.label}, slider` });
  slider.addEventListener("input", () => {
    input.value = field.steps[slider.valueAsNumber];
    slider.setAttribute("aria-valuetext", input.value);
    changed();
  });
  return { input, slider, shown: make("div", { class: "quantity" }, input, slider) };
}

// Lays out fields; returns functions that read and write the values that differ from the defaults.
export function layOut(fields, main, more, changed) {
  const made = new Map();
  main.replaceChildren();
  more.replaceChildren();
  for (const field of fields) {
    const parts = Object.keys(field.choices).length ? choice(field, changed) : quantity(field, changed);
    const id = `field-${field.name}`;
    const hint = make("p", { id: `${id}-hint`, class: "hint" });
    const fault = make("p", { id: `${id}-fault`, class: "fault", hidden: "" });
    parts.input.id = id;
    parts.input.setAttribute("aria-describedby", `${hint.id} ${fault.id}`);
    // The hint of a choice explains the chosen value.
    const explain = () => { hint.textContent = field.choices[parts.input.value] || field.hint; };
    parts.input.addEventListener("change", explain);
    (field.more ? more : main).append(make("div", { class: "field" }, make("label", { for: id, text: field.label }), parts.shown, hint, fault));
    made.set(field.name, { ...parts, field, fault, explain });
  }
  return {
    read: () => Object.fromEntries([...made].map(([name, { input }]) => [name, input.value]).filter(([name, text]) => text !== made.get(name).field.default)),
    write: (values) => {
      for (const [name, { input, slider, field, explain }] of made) {
        if (slider) slider.value = 0; // until the server has found the position
        input.value = values[name] ?? field.default;
        if (input.selectedIndex === -1) input.value = field.default;
        explain();
      }
    },
    // Only the server parses units, so it also computes the slider positions.
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
        fault.hidden = own !== name;
        fault.textContent = own === name ? message : "";
        if (own === name) input.setAttribute("aria-invalid", "true");
        else input.removeAttribute("aria-invalid");
      }
    },
  };
}
