// Lines of a source around one: within a job's evidence, and as a view of its own whose address can be passed on.
import { ask, items, json } from "./api.js";
import { bdi, bytes, command, h, jobLink, name, number, quoted, replace } from "./dom.js";
import { numbered } from "./evidence.js";

const AROUND = 5;

export function linesLink(job, e) {
  return "#/lines?" + new URLSearchParams({ job, host: e.host || "", path: e.file, line: e.line });
}

export function readCommand(job, host, path, line, around = AROUND) {
  const read = `culprit evidence cat --job ${quoted(job)} --host ${quoted(host)} --path ${quoted(path)}`;
  return line ? `${read} | sed -n '${Math.max(1, line - around)},${line + around}p'` : read;
}

// The host whose daemon read the source; evidence may name the host that it is about. Of several other hosts that
// have the path none is guessed.
export async function readerOf(job, host, path) {
  const found = (await items("v1/sources?" + new URLSearchParams({ job }))).filter((x) => x.path === path);
  const readers = new Set(found.map((x) => x.host));
  return readers.size === 1 ? found[0].host : host;
}

async function fetchLines(job, host, path, line, around) {
  const query = (of) => "v1/evidence/lines?" + new URLSearchParams({ job, host: of, path, line, around });
  try {
    return { host, ...(await json(query(host))) };
  } catch (error) {
    if (error.status !== 404) throw error;
    const reader = await readerOf(job, host, path);
    if (reader === host) throw error;
    return { host: reader, ...(await json(query(reader))) };
  }
}

// Asks the API with the token, which a link would not send.
function download(job, host, path) {
  const button = h("button", { type: "button", class: "quiet" }, "Download the source");
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      const answer = await ask("v1/evidence?" + new URLSearchParams({ job, host, path }));
      const link = h("a", { href: URL.createObjectURL(await answer.blob()), download: name(path).split("/").pop() });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    } catch (error) {
      button.textContent = error.message;
    }
    button.disabled = false;
  });
  return button;
}

// Fills `to` with the lines around.
export async function showLines(to, job, { host, file, line }, around = AROUND) {
  replace(to, h("p", { class: "soft" }, "reading"));
  try {
    const got = await fetchLines(job, host || "", file, line, around);
    replace(to, numbered(got),
            got.sure ? null : h("p", { class: "bad" }, "Bytes were lost before these lines: their numbers may be wrong."));
    return got;
  } catch (error) {
    replace(to, h("p", { class: "bad" }, error.message));
    return null;
  }
}

export function linesView(main, at) {
  const of = { host: at.query.get("host"), file: at.query.get("path") || "", line: Number(at.query.get("line")) || 1 };
  const job = at.query.get("job") || "";
  let around = 30;
  const lines = h("div", {});
  const wider = h("button", { type: "button" }, "More lines");
  const foot = h("div", { class: "actions" });
  wider.addEventListener("click", () => {
    around = Math.min(200, around * 3);
    wider.hidden = around === 200;
    draw();
  });
  async function draw() {
    const got = await showLines(lines, job, of, around);
    const host = got?.host ?? of.host ?? "";
    if (got) replace(size, `bytes ${number(got.from_byte)} to ${number(got.to_byte)} (${bytes(got.to_byte - got.from_byte)})`);
    replace(foot, wider, download(job, host, of.file), command(readCommand(job, host, of.file, of.line, around)));
  }
  const size = h("p", { class: "soft" });
  document.title = name(of.file) + ":" + of.line + " – Culprit";
  replace(main, h("p", { class: "up" }, h("a", { href: jobLink(job) }, "← ", bdi(job))),
          h("h1", { class: "path" }, bdi(of.file), ":" + of.line), h("p", { class: "soft" }, "host ", bdi(of.host)),
          lines, size, foot);
  draw();
  return {};
}
