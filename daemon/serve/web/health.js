// The components of a host by the lines of its plugins: what each raised, what it was cleared of, what happened.
import { ask, items } from "./api.js";
import { bdi, bytes, counted, h, name, plain, replace, section, since, table } from "./dom.js";

const READ_BYTES = 1 << 18;  // of each plugin's lines, the last ones
const FORGOT = "culprit.plugin.forgot";
const RECENT_NS = 86400e9;   // an event is shown for a day
const VALUES = 4;

const keyOf = (f) => JSON.stringify([f.plugin, f.id, f.job, f.peer, f.part, f.rank, f.device]);

// What stands at the end of the lines, oldest first: the last line of each fault and place.
export function standing(lines, now) {
  const last = new Map();
  for (const f of lines) {
    if (f.id === FORGOT) for (const [key, one] of last) if (one.plugin === f.plugin && one.state === "raised") last.delete(key);
    if (f.id === FORGOT || !f.id) continue;
    last.set(keyOf(f), f);
  }
  return [...last.values()].filter((f) => f.state !== "happened" || now - f.time_ns < RECENT_NS);
}

// Of several findings about a component the worst: raised and grave, raised, happened, cleared.
function rank(f) {
  const grave = f.severity === "error" || f.severity === "fatal";
  return f.state === "raised" ? (grave ? 0 : 1) : f.state === "happened" ? (grave ? 2 : 3) : 4;
}
const WORDS = [["faulty", "bad"], ["degraded", "caution"], ["had a fault", "caution"], ["had a fault", ""], ["well again", "good"]];

function placeOf(f) {
  return [f.device !== undefined && f.device !== null && "GPU " + f.device, f.part].filter(Boolean).join(", ");
}

function row(f) {
  const [word, kind] = WORDS[rank(f)];
  const values = Object.entries(f.values || {}).slice(0, VALUES).map(([key, x]) => `${name(key)} ${name(x)}`).join(", ");
  return [h("b", {}, name(f.component || f.id.split(".")[0])), bdi(placeOf(f)), h("span", { class: kind }, word),
          h("div", {}, plain(f.title), f.text && f.text !== f.title ? h("div", { class: "soft" }, f.text) : null, values ? h("div", { class: "soft mono" }, values) : null),
          since(f.time_ns), h("code", {}, name(f.plugin))];
}

async function linesOf(source) {
  const from = Math.max(0, source.bytes - READ_BYTES);
  const query = new URLSearchParams({ job: source.job || "", host: source.host, path: source.path, from_byte: from });
  const text = await (await ask("v1/evidence?" + query)).text(), out = [];
  for (const line of text.split("\n")) {
    try {
      const f = JSON.parse(line);
      if (f.kind === "finding") out.push(f);
    } catch { /* the first one is cut */ }
  }
  return out;
}

// Fills `to` with the components of a host. `own`: the plugins of this daemon's host, or null for another host.
export async function showHealth(to, host, own) {
  const sources = (await items("v1/sources")).filter((x) => x.kind === "plugin" && x.host === host && x.path.startsWith("plugin/"));
  const lines = (await Promise.all(sources.map((x) => linesOf(x).catch(() => [])))).flat().sort((a, b) => (a.time_ns || 0) - (b.time_ns || 0));
  const found = standing(lines, Date.now() * 1e6).sort((a, b) => rank(a) - rank(b) || (b.time_ns || 0) - (a.time_ns || 0));
  const plugins = (own || []).map((x) => h("li", {}, h("code", {}, name(x.name)), " ", h("span", { class: x.state === "running" ? "good" : "bad" }, plain(x.state)),
    x.reason ? `: ${plain(x.reason)}` : "", h("span", { class: "soft" }, ` ${counted(x.findings, "finding")}, ${bytes(x.memory_bytes)}`)));
  replace(to, section(["Components of ", bdi(host)],
    found.length ? table(["Component", "Where", "State", "What", "Since", "Plugin"], found.map(row), "cards")
      : h("p", { class: "soft" }, sources.length || plugins.length ? "Its plugins report no fault." : "No plugin of this host has reported anything here."),
    plugins.length ? h("ul", {}, plugins) : null));
}
