// What the page asks the server. A refusal is thrown as a Fault with the server's own words.

export class Fault extends Error {
  constructor(message, field = "") {
    super(message);
    this.field = field;
  }
}

async function ask(path, options = {}) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Fault("The server does not answer: is tcpcast serve still running?");
  }
  const told = await response.json().catch(() => ({}));
  if (!response.ok) {
    const { message = `error ${response.status}`, field = "" } = told.error ?? {};
    throw new Fault(message, field);
  }
  return told;
}

export const get = (path) => ask(path);

export const post = (path, body) =>
  ask(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });

export const upload = (file) =>
  ask(`/api/captures?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });

// Also while the page is being closed.
export const cancel = (id) => ask(`/api/jobs/${id}`, { method: "DELETE", keepalive: true });

const PAUSE_MS = 200;

// Follows a job until it is over; hear is called with each of its states.
export async function follow(job, hear) {
  let now = job;
  hear(now);
  while (now.state === "running") {
    await new Promise((resume) => setTimeout(resume, PAUSE_MS));
    now = await get(`/api/jobs/${job.id}`);
    hear(now);
  }
  return now;
}
