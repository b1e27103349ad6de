// Elements made without markup: names from captures and files are text, never HTML.

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
    make("tr", {}, ...row.map((cell, at) =>
      at === 0 ? make("th", { scope: "row", text: cell }) : make("td", { text: cell }))));
  const made = make("table", {}, make("thead", {}, head), make("tbody", {}, ...body));
  if (caption) made.prepend(make("caption", { text: caption }));
  return made;
}

// A text that is there or not, so that nothing empty is announced.
export function say(element, text) {
  element.hidden = !text;
  if (element.textContent !== text) element.textContent = text;
}
