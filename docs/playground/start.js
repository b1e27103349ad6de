// Starts what the page has: the playground, the calculator, or both.

import { startCalculator } from "./calculator.js";
import { loadModule, startPlayground } from "./playground.js";

if (globalThis.document) {
  const parts = ["experiments", "path-calculator"].map((id) => document.getElementById(id)).filter(Boolean);
  loadModule()
    .then((wasm) => { startPlayground(wasm, modules.experiments); startCalculator(wasm, modules.templates); })
    .catch((error) => parts.forEach((part) => { part.textContent = `The simulator cannot start: ${error.message}`; }));
}
