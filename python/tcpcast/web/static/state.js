// The state of the page lives in the fragment: the same address shows the same.

export function readState() {
  const given = new URLSearchParams(location.hash.slice(1));
  const { question = "", across = "", ...values } = Object.fromEntries(given);
  return { question, across, values };
}

export function writeState({ question, across, values }) {
  const state = new URLSearchParams({ question, ...(across ? { across } : {}), ...values });
  // Also takes the token of the start URL out of the address.
  history.replaceState(null, "", `/#${state}`);
}
