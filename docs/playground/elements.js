// Elements are created without markup, so that names from captures and files are never HTML.

export const $ = (id) => document.getElementById(id);

export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "text") element.textContent = value;
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

export function table(caption, columns, rows) {
  const head = make("tr", {}, ...columns.map((text) => make("th", { scope: "col", text })));
  const body = rows.map((row) =>
    make("tr", {}, ...row.map((cell, index) =>
      index === 0 ? make("th", { scope: "row", text: cell }) : make("td", { text: cell }))));
  const made = make("table", {}, make("thead", {}, head), make("tbody", {}, ...body));
  if (caption) made.prepend(make("caption", { text: caption }));
  return made;
}

// Hides an element without text, so that screen readers do not announce it.
export function setText(element, text) {
  element.hidden = !text;
  if (element.textContent !== text) element.textContent = text;
}
