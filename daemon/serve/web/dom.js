// Elements, texts and times. Texts come from logs that strangers wrote: they become text nodes and nothing else.

// Controls, and marks that change the order or the look of what follows, are written out.
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]|\p{Cs}/gu;
const BREAKS = /[\t\n]/g;

function written(mark) {
  return "\\u{" + mark.codePointAt(0).toString(16) + "}";
}

// A text of several lines.
export function plain(text) {
  return text === null || text === undefined ? "" : String(text).replace(HIDDEN, written);
}

// A name: on one line.
export function name(text) {
  return plain(text).replace(BREAKS, written);
}

function put(to, child) {
  if (child === null || child === undefined || child === false) return;
  if (Array.isArray(child)) child.forEach((one) => put(to, one));
  else to.append(child instanceof Node ? child : document.createTextNode(plain(child)));
}

// h("a", { class: "x", href: "#/", onclick: call }, "text", element, [list]).
export function h(tag, attributes, ...children) {
  const out = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") out.addEventListener(key.slice(2), value);
    else out.setAttribute(key, value === true ? "" : String(value));
  }
  put(out, children);
  return out;
}

// A name that is kept apart from the direction of the text around it.
export function bdi(text, className) {
  return h("bdi", { class: className }, name(text));
}

export function replace(to, ...children) {
  to.replaceChildren();
  put(to, children);
  return to;
}

export function section(title, ...children) {
  return h("section", {}, h("h2", {}, title), children);
}

export function table(columns, rows, className) {
  const head = h("tr", {}, columns.map((one) => h("th", { scope: "col" }, one)));
  const body = rows.map((cells) =>
    h("tr", {}, cells.map((cell, i) => h("td", { "data-is": columns[i], class: cell === "" && "none" }, cell === "" ? "–" : cell))));
  return h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": columns.filter(Boolean).join(", ") },
           h("table", { class: className }, h("thead", {}, head), h("tbody", {}, body)));
}

// The first rows, and the others on demand.
export function firstOf(list, most, draw) {
  if (list.length <= most) return draw(list);
  const out = h("div", {}, draw(list.slice(0, most)));
  const more = h("button", { type: "button", class: "quiet" }, `Show ${number(list.length - most)} more`);
  more.addEventListener("click", () => replace(out, draw(list)));
  out.append(more);
  return out;
}

export function number(n) {
  return typeof n === "number" && Number.isFinite(n) ? NUMBER.format(n) : "";
}

export function counted(n, noun) {
  return number(n) + " " + noun + (n === 1 ? "" : "s");
}

export function bytes(n) {
  if (typeof n !== "number") return "";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (n >= 1024 && i < units.length - 1) n /= 1024, ++i;
  return (i && n < 10 ? n.toFixed(1) : Math.round(n)) + " " + units[i];
}

export function percent(share) {
  return typeof share === "number" ? Math.round(100 * share) + " %" : "";
}

const NUMBER = new Intl.NumberFormat("en-US");

// How times are shown: in a zone, and with `fixed` as times only, never as an age.
let zone, fixed = false, formats = null;
export function setClock(options) {
  ({ zone, fixed } = options);
  formats = null;
  try {
    new Intl.DateTimeFormat("en-GB", { timeZone: zone });
  } catch {
    zone = undefined;  // of a name that this browser does not know: its own
  }
}

function inZone(kind, at) {
  formats ??= Object.fromEntries(Object.entries({
    day: { day: "numeric", month: "short" }, date: { day: "numeric", month: "short", year: "numeric" }, time: { timeStyle: "medium" },
    offset: { timeZoneName: "longOffset" },
  }).map(([key, format]) => [key, new Intl.DateTimeFormat("en-GB", { ...format, timeZone: zone })]));
  return kind === "offset" ? formats.offset.formatToParts(at).find((x) => x.type === "timeZoneName").value : formats[kind].format(at);
}
export const dayOf = (ns) => inZone("day", new Date(ns / 1e6));
export const timeOf = (ns) => inZone("time", new Date(ns / 1e6));

// Nanoseconds by which the zone's clock is ahead of UTC.
export function offsetOf(ns) {
  const [, sign, hours, minutes] = /GMT(?:([+-])(\d+):(\d+))?/.exec(inZone("offset", new Date(ns / 1e6))) || [];
  return sign ? (sign === "-" ? -1 : 1) * (Number(hours) * 3600 + Number(minutes) * 60) * 1e9 : 0;
}

export function stamp(ns) {
  if (typeof ns !== "number") return "";
  const at = new Date(ns / 1e6);
  const today = !fixed && inZone("date", at) === inZone("date", new Date());
  return (today ? "" : inZone("date", at) + " ") + timeOf(ns);
}

export function span(seconds) {
  const s = Math.abs(seconds);
  if (s < 90) return Math.round(s) + " s";
  if (s < 5400) return Math.round(s / 60) + " min";
  if (s < 129600) return Math.round(s / 3600) + " h";
  return Math.round(s / 86400) + " days";
}

export function ago(ns) {
  if (typeof ns !== "number") return "";
  const seconds = Date.now() / 1e3 - ns / 1e9;
  return seconds < 1 ? "now" : span(seconds) + " ago";
}

// A time whose age is kept up to date.
export function since(ns) {
  if (typeof ns !== "number") return "";
  const datetime = new Date(ns / 1e6).toISOString();
  return fixed ? h("time", { datetime }, stamp(ns)) : h("time", { datetime, title: stamp(ns), "data-ns": ns }, ago(ns));
}

setInterval(() => {
  for (const one of document.querySelectorAll("time[data-ns]")) one.textContent = ago(Number(one.dataset.ns));
}, 15000);

// "0-18, 20, 22-63", at most so many parts. Ascending numbers.
export function ranges(list, most = 12) {
  const parts = [];
  for (let i = 0; i < list.length;) {
    let end = i;
    while (end + 1 < list.length && list[end + 1] === list[end] + 1) ++end;
    parts.push(end === i ? String(list[i]) : list[i] + (end === i + 1 ? ", " : "-") + list[end]);
    i = end + 1;
  }
  const left = parts.length - most;
  return parts.slice(0, most).join(", ") + (left > 0 ? ` and ${number(left)} more` : "");
}

// "r2n8, rank 19, GPU 3".
export function place(p) {
  const all = p.ranks_all ?? p.ranks?.length ?? 0;
  const out = [p.host || "unknown host"];
  if (all) {
    const more = all - p.ranks.length;
    out.push((all === 1 ? "rank " : "ranks ") + ranges(p.ranks, 4) + (more > 0 ? ` and ${number(more)} more` : ""));
  }
  if (p.devices?.length) out.push((p.devices.length === 1 ? "GPU " : "GPUs ") + ranges(p.devices, 4));
  return name(out.join(", "));
}

// A word for the shell.
export function quoted(text) {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : "'" + plain(text).replaceAll("'", "'\\''") + "'";
}

// A command with a button that copies it.
export function command(text) {
  const button = h("button", { type: "button", class: "quiet", "aria-label": "Copy the command" }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select it";
    }
  });
  return h("div", { class: "command" }, h("code", {}, plain(text)), button);
}

export function jobLink(id, run) {
  return "#/jobs/" + encodeURIComponent(id) + (run ? "?run=" + run : "");
}
