// Requests to the daemon, and its events.
const TOKEN = "culprit-token";
const RETRY_MS = 2000;

// The token comes from the form or from #token=, which browsers never send, and is kept until the tab is closed.
export const token = {
  get: () => sessionStorage.getItem(TOKEN),
  set: (text) => sessionStorage.setItem(TOKEN, text),
};

let onDenied = () => {};
export function whenDenied(call) {
  onDenied = call;
}

class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

export async function ask(path, options = {}) {
  const own = token.get();
  const headers = own ? { ...options.headers, Authorization: "Bearer " + own } : options.headers;
  const answer = await fetch(path, { ...options, headers, cache: "no-store" });
  if (answer.ok) return answer;
  let text = "the daemon answered " + answer.status;
  try {
    text = (await answer.json()).error;
  } catch { /* a proxy's own page */ }
  if (answer.status === 401 || (answer.status === 403 && !own)) onDenied(text);
  throw new Refused(answer.status, text);
}

export async function json(path, options) {
  return (await ask(path, options)).json();
}

// The session of a link that is used once.
export async function logIn(code) {
  const answer = await fetch("v1/page/login", { method: "POST", body: JSON.stringify({ code }), cache: "no-store" });
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(answer.status, body.error || "the daemon answered " + answer.status);
  token.set(body.token);
}

export async function items(path) {
  return (await json(path)).items;
}

export function post(path, by) {
  return json(path, { method: "POST", body: by ? JSON.stringify({ by }) : "" });
}

// The events of the daemon, or of a job; a link that breaks is made again and gets what it missed. EventSource
// sends no Authorization header, so the stream is read here. `backlog`: begin with the events that are kept.
// `pauses`: not while the tab is hidden, for a browser has six connections to a host over all tabs.
export class Events {
  constructor({ job, backlog, pauses, onEvent, onState }) {
    this.path = "v1/events" + (job ? "?job=" + encodeURIComponent(job) : "");
    this.last = backlog ? "0" : "";
    this.onEvent = onEvent;
    this.onState = onState;
    this.pauses = pauses;
    this.stopper = new AbortController();
    this.onHidden = () => document.hidden && pauses && this.link?.abort();
    document.addEventListener("visibilitychange", this.onHidden);
    this.run();
  }

  stop() {
    this.stopper.abort();
    this.link?.abort();
    document.removeEventListener("visibilitychange", this.onHidden);
  }

  async seen() {
    while (this.pauses && document.hidden && !this.stopper.signal.aborted)
      await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
  }

  async run() {
    while (!this.stopper.signal.aborted) {
      let why = "not connected, trying again";
      await this.seen();
      if (this.stopper.signal.aborted) return;
      this.link = new AbortController();
      try {
        await this.follow();
      } catch (error) {
        if (error.name !== "AbortError" && !(error instanceof TypeError)) why = error.message;
      }
      if (this.stopper.signal.aborted) return;
      if (this.link.signal.aborted) continue;
      this.onState(false, why);
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }

  async follow() {
    const answer = await ask(this.path, {
      headers: this.last ? { "Last-Event-ID": this.last } : {}, signal: this.link.signal });
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    this.onState(true, "live");
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      for (const part of parts) this.receive(part);
    }
  }

  // One event: lines of "field: value".
  receive(text) {
    let type = "message", data = "";
    for (const line of text.split("\n")) {
      const [, field, value] = /^([^:]*):? ?(.*)$/.exec(line);
      if (field === "event") type = value;
      if (field === "id") this.last = value;
      if (field === "data") data += value;
    }
    if (!data) return;
    try {
      this.onEvent(type, JSON.parse(data));
    } catch (error) {
      console.error(error);
    }
  }
}
