// The charts of a job: phases, progress, findings and verdicts, hosts over time, ranks over steps and over the time of
// one step, curves of numbers.
import { Group, Heat, Plot, legend, short } from "./charts.js";
import { bdi, counted, h, name, number, plain, replace, section, stamp } from "./dom.js";
import { Band, phaseLegend, phaseSums } from "./phases.js";
import { Spans, chainList, spanSentence, spanTable } from "./spans.js";

const LEVELS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
const DEPTH = new Float64Array(128);
[...LEVELS].forEach((mark, i) => DEPTH[mark.charCodeAt(0)] = i === 0 ? 0 : 2 ** ((i - 1) / 2));
const STORY_SHOWN = 300;
const GONE = ["withdrawn", "refuted"];

function decoded(text = "") {
  const out = new Float64Array(text.length);
  for (let i = 0; i < text.length; ++i) out[i] = DEPTH[text.charCodeAt(i)] || 0;
  return out;
}

// The median of what a host wrote when it wrote, so that a storm does not become the norm.
function usual(lines) {
  const some = lines.filter((n) => n > 0).sort();
  return some.length ? some[some.length >> 1] : 1;
}

function hotHosts(report) {
  const out = new Map();
  const take = (list) => (list || []).forEach((p) => p.host && !out.has(p.host) && out.set(p.host, p.score));
  take(report.verdict?.hosts);
  take(report.suspects);
  return out;
}


const BEFORE_NS = 60e9;  // clocks of hosts, and a failure that takes its time

// When the verdict's fault began, by the first of its lines where it has no time of its own; null: not known.
function verdictTime(report) {
  const v = report.verdict, times = (v?.evidence || []).map((e) => e.time_ns).filter((t) => typeof t === "number");
  return v?.time_ns ?? (times.length ? Math.min(...times) : null);
}

// Whether a diagnosis is weaker than the verdict and not long before it: what follows from a fault looks like this.
export function follows(report, d) {
  if (!report.verdict || d.id === report.verdict.id || d.state === "confirmed" || d.confidence >= .5) return false;
  const began = verdictTime(report);
  return began !== null && typeof d.time_ns === "number" && d.time_ns > began - BEFORE_NS;
}

// When the failure began: by the verdict, else by the hang, else where progress ended.
function faultBegan(report) {
  const known = [report.verdict?.time_ns, report.hang?.since_ns].filter((t) => typeof t === "number");
  if (known.length) return Math.min(...known);
  const progress = report.charts?.activity?.progress || [];
  return progress.length ? Math.max(...progress.map((p) => p[0])) : -Infinity;
}

// Read when it is drawn: of thousands few are seen. `from`: the first cell in which messages that indicate the failure
// are marked: red for hosts that it is held against.
function hostRow(x, hot, from) {
  let lines, marked, own;
  function read() {
    lines = decoded(x.lines);
    marked = decoded(x.indicating);
    own = usual(lines);
  }
  return {
    name: plain(x.host), raw: x.host, hot,
    lines: () => (lines || read(), lines), marked: () => (lines || read(), marked),
    at: (i) => {
      if (!lines) read();
      const n = lines[i] || 0, m = i >= from ? marked[i] || 0 : 0;
      if (m) return hot ? 7 : 6;
      if (!n) return 0;
      const share = n / own;
      return share < .25 ? 1 : share < .75 ? 2 : share < 1.5 ? 3 : share < 4 ? 4 : 5;
    },
  };
}

// One row for hosts that none is held against: what most of them did.
function summaryRow(rows, noun) {
  const all = new Map();
  const cell = (i) => {
    if (!all.has(i)) {
      const counts = new Array(8).fill(0);
      for (const row of rows) ++counts[row.at(i)];
      let level = 0;
      for (let below = counts[0]; below * 2 <= rows.length; below += counts[++level]);
      all.set(i, level);
    }
    return all.get(i);
  };
  const mean = (of, i) => rows.reduce((sum, row) => sum + (row[of]()[i] || 0), 0) / rows.length;
  const at = (of) => new Proxy([], { get: (_, i) => mean(of, Number(i)) });
  return { name: counted(rows.length, noun), raw: "", hot: false, at: cell, lines: () => at("lines"), marked: () => at("marked") };
}

const byName = new Intl.Collator("en", { numeric: true });
const HOSTS_SHOWN = 16;

function figure(title, chart, ...more) {
  return h("figure", {}, h("figcaption", {}, title, more), chart);
}

function logSwitch(plot) {
  const box = h("input", { type: "checkbox" });
  box.checked = plot.log;
  box.addEventListener("change", () => plot.setLog(box.checked));
  return h("label", { class: "switch" }, box, " log");
}

// Values over three decades are read on a logarithmic scale.
function spansDecades(list) {
  const some = list.flat().filter((y) => typeof y === "number" && Number.isFinite(y));
  return some.length > 0 && Math.min(...some) > 0 && Math.max(...some) / Math.min(...some) > 1000;
}

function rankName(row) {
  return "rank " + row.rank + (row.host ? " " + row.host : "");
}

export class Charts {
  constructor(report, story) {
    this.report = report;
    this.story = story;
    this.group = new Group();
    this.rows = [];
    const parts = [this.overTime(), this.overSteps()].filter(Boolean);
    this.seen = h("p", { class: "tools", role: "status", hidden: true });
    this.group.onRange = (kind, range) => this.ranged(kind, range);
    this.onRange = null;  // called with { from, to } or { steps }, or null: all
    this.log = h("ol", { class: "log" });
    this.logBox = h("details", { class: "history" }, h("summary", {}, "What was found and said"), this.log);
    this.element = h("div", { class: "charts" }, this.seen, parts, this.logBox);
    this.logBox.addEventListener("toggle", () => this.fill());
    this.count();
  }

  close() {
    this.group.close();
    this.one?.close();
  }

  // ---- the part that is seen: by time where the job has times, else by steps

  ranged(kind, range) {
    const time = this.group.seen.time, steps = this.group.seen.step;
    const by = !range ? null : time && (kind === "time" || this.group.link.length > 1) ? "time" : kind;
    this.seen.hidden = by !== "time" && by !== "step";
    if (this.seen.hidden) return this.onRange?.(null);
    const all = h("button", { type: "button", class: "quiet", onclick: () => this.group.all() }, "Show all");
    replace(this.seen, by === "time" ? `Shown: ${stamp(time[0])} to ${stamp(time[1])}` : `Shown: steps ${number(Math.round(steps[0]))} to ${number(Math.round(steps[1]))}`, all);
    const iso = (ns) => new Date(ns / 1e6).toISOString();
    this.onRange?.(by === "time" ? { from: iso(time[0]), to: iso(time[1]) } : { steps: steps.map((x) => Math.round(x)).join("-") });
  }

  // The same as `onRange` is called with, of an address that somebody passed on.
  show({ from, to, steps }) {
    const [a, b] = [Date.parse(from) * 1e6, Date.parse(to) * 1e6], [c, d] = (steps || "").split("-").map(Number);
    if (this.group.seen.time && b > a) this.group.zoom("time", a, b);
    else if (this.group.seen.step && d > c) this.group.zoom("step", c, d);
  }

  // ---- over time

  overTime() {
    const a = this.report.charts?.activity, job = this.report.job;
    if (!a) return null;
    const progress = [...a.progress].sort((x, y) => x[0] - y[0]);
    const bins = Math.max(0, ...a.hosts.map((x) => x.lines.length));
    const from = a.first_ns ?? progress[0]?.[0] ?? job.first_ns;
    const to = a.first_ns !== null && bins ? a.first_ns + bins * a.bin_ns : progress.at(-1)?.[0] ?? job.last_ns;
    if (typeof from !== "number" || typeof to !== "number" || to <= from) return null;
    this.range = [from, to];
    this.group.link = progress.filter((p, i) => i === 0 || p[1] > progress[i - 1][1]);
    this.rug = (a.indicating_ns || []).filter((t) => t !== null);
    const xs = progress.length ? progress.map((p) => p[0]) : [from, to];
    this.progress = new Plot(this.group, "time", {
      label: "Progress over time, with the times of the diagnoses", xs, whole: true, rug: this.rug,
      series: progress.length ? [{ name: "iteration", ys: progress.map((p) => p[1]), colour: "series1" }] : [],
      marks: this.marks(), height: progress.length ? 170 : 90 });
    this.group.full.time = [Math.min(from, xs[0]), Math.max(to, xs.at(-1))];
    this.group.seen.time = [...this.group.full.time];
    const out = section("Over time", figure(progress.length ? "Progress" : "Diagnoses", this.progress.box),
      legend([["series1", "iteration", "stroke"], ["alarm", "the verdict's fault", "bar"], ["soft", "other diagnoses", "dash"],
              ["soft", "messages that indicate it begin", "rug"]]));
    const phases = (a.phases || []).filter((p) => p.last_ns > p.first_ns);
    if (phases.length) out.append(this.phases(phases));
    if (a.hosts.length && bins) out.append(this.hosts(a, bins));
    return out;
  }

  phases(phases) {
    const full = this.group.full.time, band = new Band(this.group, phases);
    this.group.full.time = full;  // the range of the job, whatever the phases say
    this.group.seen.time = [...full];
    return h("div", {}, figure("Phases", band.box), legend(phaseLegend(phases)), phaseSums(phases));
  }

  hosts(a, bins) {
    const hot = hotHosts(this.report), failed = Boolean(this.report.verdict || this.report.diagnoses.some((d) => !GONE.includes(d.state)));
    const from = failed ? Math.floor((faultBegan(this.report) - a.first_ns) / a.bin_ns) - 1 : Infinity;
    const rows = a.hosts.map((x) => hostRow(x, hot.has(x.host), from)).sort((x, y) => byName.compare(x.name, y.name));
    const blamed = rows.filter((x) => x.hot).sort((x, y) => hot.get(y.raw) - hot.get(x.raw)), rest = rows.filter((x) => !x.hot);
    const edges = Array.from({ length: bins + 1 }, (_, i) => a.first_ns + i * a.bin_ns);
    const left = a.hosts_all - a.hosts.length, out = h("div", {});
    let shown = null;
    // Many hosts against which nothing is held are one row, until each is asked for.
    const draw = (each) => {
      const sorted = each ? [...blamed, ...rest] : [...blamed, summaryRow(rest, blamed.length ? "other host" : "host")];
      const heat = new Heat(this.group, "time", {
        label: `Lines of ${counted(rows.length, "host")} over time, suspects first`, rows: sorted, edges,
        tell: (r, i) => {
          const n = sorted[r].lines()[i] || 0, m = sorted[r].marked()[i] || 0;
          return (n ? "about " + counted(Math.round(n), "line") : "silent") + (m ? `, about ${Math.round(m)} indicate the failure` : "");
        } });
      const more = each ? null : h("button", { type: "button", class: "quiet", onclick: () => draw(true) }, `Each of the ${number(rest.length)} hosts`);
      if (shown) shown.close(), this.group.charts.delete(shown);
      shown = heat;
      replace(out, figure("What each host wrote", heat.element, left > 0 ? h("span", { class: "soft" }, ` ${number(left)} more hosts are left out`) : ""),
        more, legend([["heat0", "silent"], ["heat1", "far below its usual"], ["heat3", "its usual"], ["heat5", "far above"],
          ...(failed ? [["heat6", "messages of the failure"], ...(blamed.length ? [["heat7", "on a suspect"]] : [])] : [])]));
    };
    draw(rows.length <= HOSTS_SHOWN || rest.length < 2);
    return out;
  }

  // Faults by the clock of the logs. Withdrawn and refuted ones are not drawn.
  marks() {
    const [from, to] = this.range, verdict = this.report.verdict?.id;
    const state = new Map(this.rows.map((d) => [d.id, d.state]));
    const stands = (d) => !GONE.includes(state.get(d.id) ?? d.state) && !follows(this.report, d);
    const all = this.report.diagnoses.filter(stands).map((d) => ({ d, x: d.id === verdict ? verdictTime(this.report) : d.time_ns }));
    return all.filter(({ x }) => typeof x === "number" && x >= from && x <= to).slice(0, 12).map(({ d, x }) => ({
      x, kind: d.id === verdict ? "alarm" : "plain", text: d.id === verdict ? "verdict" : name(d.title).slice(0, 24) }));
  }

  // Diagnoses of the index.
  said(rows) {
    this.rows = rows;
    if (!this.progress) return;
    this.progress.marks = this.marks();
    this.group.draw(true);
  }

  // The lines of the log are made when it is opened.
  fill() {
    if (!this.logBox.open || this.log.childElementCount) return;
    this.story.slice(-STORY_SHOWN).forEach(({ type, x }) => this.addLine(type, x));
  }

  happened(type, x) {
    if (this.logBox.open) this.addLine(type, x);
    this.count();
    if (type !== "finding" || !this.progress || typeof x.time_ns !== "number") return;
    this.progress.rug.push(x.time_ns);
    this.group.draw(true);
  }

  addLine(type, x) {
    if (type === "dropped") return this.log.append(h("li", { class: "bad" }, counted(x.events, "event") + " left out"));
    const gone = type === "diagnosis_gone" || x.change === "withdrawn";
    const word = gone ? "withdrawn" : type === "diagnosis" ? (x.verdict ? "verdict" : "diagnosis") + (x.change === "revised" ? " revised" : "")
      : { finding: "finding", job_started: "began", job_ended: "ended" }[type] || type;
    const line = h("li", { class: gone ? "gone" : "" }, h("span", { class: "soft" }, stamp(x.time_ns || x.last_ns) + " "),
      h("span", { class: "kind" }, word), " ", bdi(x.title || x.verdict || x.id || ""), x.host ? [" on ", bdi(x.host)] : "",
      x.repeated ? ` (${number(x.repeated)} more)` : "", x.replaces ? [", in place of ", bdi(x.replaces.title)] : "");
    if (typeof x.time_ns === "number" && this.range && x.time_ns >= this.range[0] && x.time_ns <= this.range[1]) {
      line.addEventListener("pointerenter", () => this.group.point("time", x.time_ns));
      line.addEventListener("pointerleave", () => this.group.point("time", null));
    }
    this.log.append(line);
    while (this.log.childElementCount > STORY_SHOWN) this.log.firstElementChild.remove();
  }

  count() {
    this.logBox.hidden = !this.story.length;
    this.logBox.firstChild.textContent = `What was found and said (${number(this.story.length)})`;
  }

  // ---- over steps

  overSteps() {
    const { numerics, comm } = this.report.charts || {};
    const parts = [...(numerics ? this.curves(numerics) : []), ...(comm ? this.steps(comm) : [])];
    return parts.length ? section("Over steps", parts) : null;
  }

  faults(metric) {
    return this.report.numerics.filter((x) => x.metrics.includes(metric));
  }

  // Whose number it is that deviates: of a fault that was found in this metric. Without one it is another rank's at
  // each step, and no rank is named.
  deviating(numerics, metric) {
    const ranks = this.faults(metric).flatMap((x) => x.ranks);
    if (!ranks.length) return "farthest from it, of any rank";
    const row = numerics.rows.find((r) => r.rank === ranks[0]);
    const more = new Set(ranks).size - 1;
    return "deviates: " + (row ? rankName(row) : "rank " + ranks[0]) + (more ? ` and ${counted(more, "other rank")}` : "");
  }

  curves(numerics) {
    const steps = numerics.steps, marks = this.report.numerics.map((x) => ({ x: x.step, kind: "alarm", text: x.class }));
    const out = numerics.curves.map((curve) => {
      const worst = this.deviating(numerics, curve.metric);
      const ink = this.faults(curve.metric).length ? "series2" : "soft";  // what nothing was found in is drawn calmly
      const plot = new Plot(this.group, "step", {
        label: `${curve.metric} over steps`, xs: steps, marks, log: spansDecades([curve.median, curve.worst]), series: [
          { name: worst, ys: curve.worst, colour: ink, notFinite: curve.not_finite },
          { name: "median", ys: curve.median, colour: "series1" }] });
      const broken = curve.not_finite.length;
      return h("div", {}, figure(curve.metric, plot.box, logSwitch(plot)),
        legend([["series1", `median of ${counted(numerics.ranks, "rank")}`, "stroke"], [ink, name(worst), "stroke"],
                ...(broken ? [["alarm", `not finite (${counted(broken, "step")})`, "triangle"]] : [])]));
    });
    if (numerics.rows.length) out.push(this.odd(numerics));
    return out;
  }

  odd(numerics) {
    const faults = this.report.numerics.length > 0, most = faults ? 7 : 5, colours = faults ? "slow" : "heat";
    const rows = numerics.rows.map((r) => ({
      name: rankName(r), values: r.odd,
      at: (i) => typeof r.odd[i] === "number" ? Math.min(most, Math.floor(r.odd[i] * 7.99)) : r.odd[i] === null ? null : most,
      hot: faults && r.odd.some((x) => x > .9) }));
    hotFirst(rows);
    const heat = new Heat(this.group, "step", {
      label: "Distance of ranks from their peers over steps", rows, edges: edgesOf(numerics.steps), colours,
      tell: (r, i) => typeof rows[r].values[i] === "number" ? "distance from its peers " + short(rows[r].values[i]) : "not seen" });
    return h("div", {}, figure("Ranks that differ from their peers", heat.element, leftOut(numerics.ranks - rows.length)),
             legend([[colours + 0, "as its peers"], [colours + 4, "differs"], [colours + most, faults ? "surely differs" : "differs most; no fault is found"]]));
  }

  isSlow() {
    return this.report.irregularities.length > 0 || this.report.verdict?.symptom === "slowdown";
  }

  steps(comm) {
    const pictures = comm.pictures || [], one = pictures.length ? this.oneStep(comm, pictures) : null;
    const [ink, other] = this.isSlow() ? ["series2", "series1"] : ["series1", "soft"];
    const plot = new Plot(this.group, "step", {
      label: "Duration of steps", xs: comm.steps, log: spansDecades([comm.step_ms]), rug: pictures.map((x) => x.step), series: [
        { name: "step (ms)", ys: comm.step_ms, colour: ink },
        { name: "without the delays (ms)", ys: comm.without_ms, colour: other }] });
    const out = [h("div", {}, figure("Duration of steps, ms", plot.box, logSwitch(plot)),
      legend([[ink, "step", "stroke"], [other, "without the delays", "stroke"],
              ...(one ? [["soft", "steps that are kept rank by rank: click", "rug"]] : [])]))];
    if (one) plot.onPick = one.pick;
    if (comm.rows.length) out.push(this.late(comm, one));
    if (one) out.push(one.element);
    return out;
  }

  // Ranks over the time of one step. `pick(step)` shows the nearest one that is kept.
  oneStep(comm, pictures) {
    const body = h("div", {}), note = h("span", { class: "soft", role: "status" });
    const slowest = [...pictures].sort((a, b) => b.step_ms - a.step_ms)[0];
    const choice = h("select", {}, pictures.map((x) =>
      h("option", { value: x.step, selected: x === slowest }, `step ${number(x.step)}, ${short(x.step_ms)} ms` + (x === slowest ? " (the slowest)" : ""))));
    const draw = (picture) => {
      this.one?.close();
      this.one = new Group();
      choice.value = String(picture.step);
      const calm = !this.isSlow(), chart = new Spans(this.one, picture, calm), rows = picture.rows.reduce((sum, row) => sum + (row.of ?? 1), 0);
      replace(body, h("p", {}, spanSentence(picture)), chart.element, chart.said,
        legend([["span-own", "own work"], [calm ? "span-late" : "alarm", "own work of who came last"], ["span-wait", "waits for others"], ["span-move", "moves data"]]),
        picture.rows.some((row) => row.of > 1) ? h("p", { class: "soft" },
          `A row that stands for several ranks of a host shows the one that was waited for most.${rows < picture.ranks ? ` ${number(picture.ranks - rows)} ranks that were waited for less are left out.` : ""}`) : null,
        chainList(picture), h("details", {}, h("summary", {}, "The same as a table"), spanTable(picture)));
    };
    const pick = (step) => {
      const near = pictures.reduce((a, b) => Math.abs(b.step - step) < Math.abs(a.step - step) ? b : a), asked = Math.round(step);
      note.textContent = near.step === asked ? "" : ` Step ${number(asked)} is not kept rank by rank; this is the nearest one that is.`;
      draw(near);
    };
    choice.addEventListener("change", () => pick(Number(choice.value)));
    draw(slowest);
    return { pick, element: h("div", { class: "one-step" }, h("figure", {}, h("figcaption", {}, h("label", {}, "Ranks over the time of one step ", choice), note), body)) };
  }

  late(comm, one) {
    const SHARES = [.01, .02, .05, .1, .2, .4, .8], slow = this.isSlow(), most = slow ? 7 : 5, colours = slow ? "slow" : "heat";
    const rows = comm.rows.map((r) => ({
      name: rankName(r) + (r.device !== null ? " GPU " + r.device : ""), values: r.excess_ms,
      at: (i) => {
        const own = r.excess_ms[i], whole = comm.without_ms[i] || comm.step_ms[i];
        return typeof own !== "number" ? null : Math.min(most, SHARES.filter((share) => own > share * whole).length);
      } }));
    // Hot: late in every tenth step and more.
    for (const row of rows) row.hot = slow && row.values.filter((_, i) => row.at(i) >= 4).length > row.values.length / 10;
    hotFirst(rows);
    const heat = new Heat(this.group, "step", {
      label: "Delay of ranks over steps", rows, edges: edgesOf(comm.steps), colours,
      tell: (r, i) => typeof rows[r].values[i] === "number" ? short(rows[r].values[i]) + " ms more than its peers" : "not seen" });
    if (one) heat.onPick = one.pick;
    return h("div", {}, figure("Ranks that are late", heat.element, leftOut(comm.ranks - rows.length)),
             legend([[colours + 0, "as its peers"], [colours + 4, "a tenth of the step more"], [colours + most, slow ? "nearly the whole step" : "a fifth and more"]]));
  }
}

// The sort is stable.
function hotFirst(rows) {
  rows.sort((a, b) => Number(b.hot) - Number(a.hot));
}

function leftOut(n) {
  return n > 0 ? h("span", { class: "soft" }, ` the ${number(n)} others are left out`) : "";
}

// Each step's cell begins at it; the last one is as wide as the one before.
function edgesOf(steps) {
  const last = steps.at(-1);
  return [...steps, last + (steps.length > 1 ? last - steps.at(-2) : 1)];
}
