// The URL fragment holds the state of the page, so that an address reproduces it.

export function readState() {
  const given = new URLSearchParams(location.hash.slice(1));
  const { question = "", across = "", ...values } = Object.fromEntries(given);
  return { question, across, values };
}

export function writeState({ question, across, values }) {
  const state = new URLSearchParams({ question, ...(across ? { across } : {}), ...values });
  // This also removes the token of the start URL from the address.
  history.replaceState(null, "", `/#${state}`);
}
