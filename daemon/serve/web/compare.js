// Two runs side by side: what is said of each, how far and how fast each came, and what only one of them has.
import { items, json } from "./api.js";
import { Group, Plot, legend } from "./charts.js";
import { bdi, command, counted, firstOf, h, jobLink, name, number, percent, place, quoted, replace, section, span, stamp, table } from "./dom.js";
import { phaseSums } from "./phases.js";

const GONE = ["withdrawn", "refuted"];
const SHOWN = 8;

// "JOB@RUN"; a job's name may have an @ too.
export function runName(job, run) {
  return `${job}@${run || 0}`;
}
function runOf(text) {
  const [, job, run] = /^(.*?)(?:@(\d+))?$/s.exec(text || "");
  return { job, run: Number(run || 0) };
}

export function compareLink(a, b) {
  return "#/compare?" + new URLSearchParams({ a: runName(a.job, a.run), b: runName(b.job, b.run) });
}

// The runs that this one can be compared with: other runs of the job first, then the latest of others.
export async function compareChoice(job, run) {
  const all = (await items("v1/jobs")).filter((x) => x.id !== job || (x.run || 0) !== run);
  const own = all.filter((x) => x.id === job), others = all.filter((x) => x.id !== job).slice(0, 50);
  if (!all.length) return h("p", { class: "soft" }, "There is no other run.");
  const line = (x) => h("li", {}, h("a", { href: compareLink({ job, run }, { job: x.id, run: x.run }) }, bdi(x.id), x.run ? ` run ${x.run}` : ""),
                        h("span", { class: "soft" }, ` ${x.state}, ${stamp(x.first_ns)}`));
  return h("ul", {}, [...own, ...others].map(line));
}

function progressOf(report) {
  const list = report.charts?.activity?.progress || [];
  return [...list].sort((x, y) => x[0] - y[0]).filter((p, i, all) => i === 0 || p[0] > all[i - 1][0]);
}

// The median of the seconds that an iteration took; null: too little progress.
function pace(progress) {
  const steps = [];
  for (let i = 1; i < progress.length; ++i) {
    const made = progress[i][1] - progress[i - 1][1];
    if (made > 0) steps.push((progress[i][0] - progress[i - 1][0]) / 1e9 / made);
  }
  steps.sort((a, b) => a - b);
  return steps.length > 2 ? steps[steps.length >> 1] : null;
}

function said(report) {
  const d = report.verdict;
  if (d) return h("div", {}, h("b", {}, bdi(d.title)), " ", percent(d.confidence), d.hosts.slice(0, 3).map((p) => h("div", { class: "mono" }, bdi(place(p)))));
  return report.diagnoses.some((x) => !GONE.includes(x.state)) ? "no verdict: several causes are possible" : "nothing";
}

function rowsOf(runs) {
  const job = (call) => runs.map(({ report }) => call(report.job, report));
  const took = (j) => (typeof j.first_ns === "number" && typeof j.last_ns === "number" ? (j.last_ns - j.first_ns) / 1e9 : null);
  const paces = runs.map(({ report }) => pace(progressOf(report)));
  const long = (x) => (x === null ? "" : x < .1 ? (1000 * x).toFixed(1) + " ms" : x < 90 ? x.toFixed(2) + " s" : span(x));
  const times = paces.map((x, i) => i === 1 && x && paces[0] ? `${long(x)} (${(x / paces[0]).toFixed(2)} × the first)` : long(x));
  return [["Found", ...job((_, report) => said(report))], ["Began", ...job((j) => stamp(j.first_ns))],
          ["Took", ...job((j) => (took(j) === null ? "" : span(took(j))))], ["Hosts", ...job((j) => number(j.hosts))], ["Ranks", ...job((j) => (j.ranks ? number(j.ranks) : ""))],
          ["Lines", ...job((j) => number(j.lines))], ["Last iteration", ...runs.map(({ report }) => number(progressOf(report).at(-1)?.[1]))],
          ["An iteration", ...times], ["Phases", ...runs.map(({ report }) => {
            const phases = (report.charts?.activity?.phases || []).filter((p) => p.last_ns > p.first_ns);
            return phases.length ? phaseSums(phases) : "";
          })]];
}

// Two curves over the time since each run's first progress.
function overlay(group, runs) {
  const curves = runs.map(({ report }) => progressOf(report).map((p, _, all) => [(p[0] - all[0][0]) / 1e9, p[1]]));
  if (curves.some((x) => x.length < 2)) return null;
  const xs = [...new Set(curves.flat().map((p) => p[0]))].sort((a, b) => a - b);
  const along = (curve) => {
    let i = 0;
    return xs.map((x) => {
      if (x > curve.at(-1)[0]) return null;
      while (curve[i + 1]?.[0] <= x) ++i;
      const [p, q] = [curve[i], curve[i + 1] || curve[i]];
      return q[0] === p[0] ? p[1] : p[1] + (x - p[0]) / (q[0] - p[0]) * (q[1] - p[1]);
    });
  };
  const inks = ["series1", "caution"], label = "Progress of both over the time since the first iteration";
  const plot = new Plot(group, "s", { label, xs, whole: true, series: curves.map((x, i) => ({ name: runs[i].title, ys: along(x), colour: inks[i] })) });
  return section("Progress since the first iteration", plot.box, legend(runs.map((x, i) => [inks[i], name(x.title), "stroke"])));
}

// What only one of two lists has, and what both have.
function onlyIn(title, runs, of) {
  const lists = runs.map(({ report }) => [...new Set(of(report))]);
  const only = lists.map((list, i) => list.filter((x) => !lists[1 - i].includes(x)));
  if (!lists.flat().length) return null;
  const both = lists[0].length - only[0].length;
  const cell = (list) => (list.length ? firstOf(list, SHOWN, (some) => h("ul", {}, some.map((x) => h("li", {}, bdi(x))))) : "");
  if (!only.flat().length) return section(title, h("p", { class: "soft" }, `Both have the same ${number(both)}.`));
  const halves = table(runs.map((x) => "Only " + name(x.title)), [only.map(cell)], "halves");
  halves.setAttribute("aria-label", title);
  return section(title, halves, both ? h("p", { class: "soft" }, `Both have ${number(both)} more.`) : null);
}

export function compareView(main, at) {
  const asked = ["a", "b"].map((key) => runOf(at.query.get(key)));
  const group = new Group(), body = h("div", {}, h("p", { class: "soft" }, "reading the reports"));
  let done = false;
  document.title = "Two runs – Culprit";
  replace(main, h("p", { class: "up" }, h("a", { href: "#/" }, "← All jobs")), h("h1", {}, "Two runs side by side"), body);

  async function refresh() {
    if (done) return;
    const reports = await Promise.all(asked.map(({ job, run }) => json(`v1/jobs/${encodeURIComponent(job)}/report?charts=1&run=${run}`)))
      .catch((error) => (replace(body, h("p", { class: "bad" }, error.message)), null));
    if (!reports || done) return;
    done = true;  // runs that are compared stand still
    const runs = reports.map((report, i) => ({ ...asked[i], report, title: asked[i].job + (asked[i].run || asked[0].job === asked[1].job ? ` run ${asked[i].run}` : "") }));
    const heads = runs.map((x) => h("a", { href: jobLink(x.job, x.run) }, bdi(x.title)));
    const swap = h("a", { href: compareLink(runs[1], runs[0]) }, "The other way round");
    const own = table(["Run", ...runs.map((x) => name(x.title))], rowsOf(runs));
    own.querySelectorAll("th").forEach((th, i) => i && replace(th, heads[i - 1]));
    replace(body, own, overlay(group, runs), onlyIn("Hosts", runs, (r) => (r.charts?.activity?.hosts || []).map((x) => x.host)),
      onlyIn("Diagnoses", runs, (r) => r.diagnoses.filter((d) => !GONE.includes(d.state)).map((d) => d.title)),
      onlyIn("Messages that indicate a failure", runs, (r) => r.indicating.map((x) => x.template)),
      h("p", {}, swap, h("span", { class: "soft" }, ` · ${counted(reports[0].job.lines + reports[1].job.lines, "line")} were read`)),
      command(`culprit diff ${runs.map((x) => quoted(runName(x.job, x.run))).join(" ")}`));
  }
  return { refresh, close: () => group.close() };
}
