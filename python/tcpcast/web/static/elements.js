// Elements are created without markup, so that no text of a form becomes HTML.

export const $ = (id) => document.getElementById(id);

export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "text") element.textContent = value;
    else if (value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

// Hides an element without text, so that screen readers do not announce it.
export function setText(element, text) {
  element.hidden = !text;
  if (element.textContent !== text) element.textContent = text;
}
