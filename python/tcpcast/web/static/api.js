// Requests to the server. A rejected request throws a RequestError with the server's message.

export class RequestError extends Error {
  constructor(message, field = "") {
    super(message);
    this.field = field;
  }
}

async function send(path, options = {}) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new RequestError("The server does not respond; check that tcpcast serve is running.");
  }
  const content = await response.json().catch(() => ({}));
  if (!response.ok) {
    const { message = `error ${response.status}`, field = "" } = content.error ?? {};
    throw new RequestError(message, field);
  }
  return content;
}

export const get = (path) => send(path);

export const post = (path, body) =>
  send(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });

export const upload = (file) =>
  send(`/api/captures?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });

// keepalive, because it is also called while the page is being closed.
export const cancel = (id) => send(`/api/jobs/${id}`, { method: "DELETE", keepalive: true });

const PAUSE_MS = 200;

// Polls a job until it has ended; calls onState with each state.
export async function follow(job, onState) {
  let now = job;
  onState(now);
  while (now.state === "running") {
    await new Promise((resume) => setTimeout(resume, PAUSE_MS));
    now = await get(`/api/jobs/${job.id}`);
    onState(now);
  }
  return now;
}
