// Sends requests to the server and converts reports to DOM elements.

import { make } from "./elements.js";

// The server escapes all texts of a report, and the policy of the page forbids scripts in it.
const policy = globalThis.trustedTypes?.createPolicy("report", { createHTML: (text) => text }) ?? { createHTML: (text) => text };
const CLOSED = new Set(["All values", "More warnings", "The scenario", "Provenance", "Reproduce this report", "Varied keys"]);

export class AnswerError extends Error {
  constructor({ message, field = "" }) {
    super(message);
    this.field = field;
  }
}

export async function send(path, options = {}) {
  const response = await fetch(path, options).catch((error) => {
    if (error.name === "AbortError") throw error;
    throw new AnswerError({ message: "The server does not respond; check that tcpcast serve is running." });
  });
  if (response.ok) return response;
  const { error } = await response.json().catch(() => ({}));
  throw new AnswerError(error ?? { message: `error ${response.status}` });
}

// Returns the answer to a form; calls onProgress with the finished share. Aborting ends the work.
export async function ask(form, values, { file, signal, onProgress = () => {} } = {}) {
  const query = new URLSearchParams({ ...values, ...(file ? { upload: file.name } : {}) });
  const response = await send(`/api/answer/${form}?${query}`, { method: "POST", body: file, signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    text += value ?? "";
    const lines = text.split("\n");
    text = lines.pop();
    for (const message of lines.map((line) => JSON.parse(line))) {
      if (message.error) throw new AnswerError(message.error);
      if (message.progress === undefined) return message;
      onProgress(message.progress);
    }
    if (done) throw new AnswerError({ message: "The server closed the connection before the answer was complete." });
  }
}

// Returns a report as sections without its title and verdict; secondary sections are closed.
export function sections({ page, verdict }, isClosed = (title) => CLOSED.has(title)) {
  if (!page) return [];
  const main = new DOMParser().parseFromString(policy.createHTML(page), "text/html").querySelector("main");
  for (const style of main.querySelectorAll("style")) style.remove(); // page.css has the rules of figures
  const found = [make("div")];
  for (const element of [...main.children]) {
    if (element.localName === "h1" || (found.length === 1 && element.textContent === verdict)) continue;
    if (element.localName !== "h2") { found.at(-1).append(element); continue; }
    const title = element.textContent;
    found.push(isClosed(title) ? make("details", {}, make("summary", { text: title })) : make("div", {}, make("h2", { text: title })));
  }
  return found.filter((section) => section.childElementCount);
}
