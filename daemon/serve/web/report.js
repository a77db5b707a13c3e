// The report's own file: draws what the file carries. No request is made, and nothing is kept.
import { attemptTotals, attempts } from "./attempts.js";
import { bdi, command, h, name, number, plain, quoted, replace, section, setClock } from "./dom.js";
import { evidence, numbered } from "./evidence.js";
import { card, facts, hang, indicating, irregular, numerics, others, problems, suspects } from "./parts.js";
import { Charts } from "./timeline.js";

const AROUND = 5;
const UNPACKED = { gz: "gzip -dc", zst: "zstd -dc", xz: "xz -dc" };

// The command that gives the lines of a source. `from`: where the report was made: of files, or by a server.
function readCommand(from, e, first, last) {
  const unpack = UNPACKED[/\.(gz|zst|xz)$/.exec(e.file)?.[1]];
  const read = from.job ? `culprit evidence cat --job ${quoted(from.job)} --host ${quoted(e.host || "")} --path ${quoted(e.file)}`
    : unpack ? `${unpack} -- ${quoted(e.file)}` : "";
  if (!e.line) return read || `less -- ${quoted(e.file)}`;
  const part = `sed -n '${first},${last}p'`;
  return read ? `${read} | ${part}` : `${part} -- ${quoted(e.file)}`;
}

// Windows of lines of sources, in the order of their files: { file, host, first, lines, cut, here }.
class Windows {
  constructor(list, from) {
    this.list = list;
    this.from = from;
  }

  of(e) {
    return this.list.findIndex((w) => w.file === e.file && (w.host ?? null) === (e.host ?? null) && e.line >= w.first &&
                                      e.line < w.first + w.lines.length);
  }

  command(e) {
    const read = { ...e, host: this.list[this.of(e)]?.reader ?? e.host };
    return command(readCommand(this.from, read, Math.max(1, e.line - AROUND), e.line + AROUND));
  }

  // The lines around `e` alone, of a window that may be longer.
  around(to, e) {
    const w = this.list[this.of(e)], from = Math.max(0, e.line - AROUND - w.first), end = e.line + AROUND + 1 - w.first;
    replace(to, numbered({ first: w.first + from, line: e.line, lines: w.lines.slice(from, end), cut: w.cut.slice(from, end) }),
            this.command(e));
  }

  draw() {
    if (!this.list.length) return null;
    return section("Lines of the evidence", this.list.map((w, i) => {
      const last = w.first + w.lines.length - 1;
      return h("div", {}, h("h3", { class: "path" }, bdi(w.file), `:${w.first}-${last}`),
               w.host ? h("p", { class: "soft" }, "host ", bdi(w.host)) : null,
               numbered(w, w.here, (n) => `L${i}-${n}`),
               command(readCommand(this.from, { ...w, host: w.reader ?? w.host, line: w.first }, w.first, last)));
    }));
  }
}

function siteOf(windows) {
  return {
    lineHref(e) {
      const i = windows.of(e);
      return i < 0 ? null : `#L${i}-${e.line}`;
    },
    around: (to, e) => windows.around(to, e),
    source: (e) => h("details", {}, h("summary", {}, "Command"), windows.command(e)),
    hostHref: () => null,
    ruleHref: () => null,
    actions: () => null,
  };
}

function commands(from, report) {
  if (!from.job) return null;
  const run = from.run ?? report.job.run ?? 0;
  return h("details", {}, h("summary", {}, "The same on the command line"), command(`culprit report ${quoted(from.job)} --run ${run}`),
           command(`culprit bundle ${quoted(from.job)}`));
}

function draw({ report, lines, zone, from, notes, version, attempts: tried }) {
  const windows = new Windows(lines, from), site = siteOf(windows), d = report.verdict, charts = new Charts(report, []);
  return [attemptTotals(tried), notes.map((one) => h("p", { class: "note", role: "note" }, one)),
          card(report, site, null), attempts(tried), d && section("Evidence", evidence(site, d)), hang(report.hang), charts.element,
          suspects(report.suspects, site), irregular(report.irregularities), numerics(report.numerics), others(report, site),
          indicating(report, site), problems(report), windows.draw(), facts(report),
          h("p", { class: "soft" }, `Times are of ${zone === "local" ? "this browser's zone" : name(zone)}. Culprit ${plain(version)}.`),
          commands(from, report)];
}

const main = document.getElementById("main");
try {
  const data = JSON.parse(document.getElementById("data").textContent);
  setClock({ zone: data.zone === "local" ? undefined : data.zone, fixed: true });
  replace(main, draw(data));
  document.getElementById("name").textContent = name(data.report.job.id || number(data.report.job.lines) + " lines");
} catch (error) {
  console.error(error);
  main.prepend(h("p", { class: "bad" }, "The report could not be drawn; this is its text."));
}
