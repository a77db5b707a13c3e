// The attempts of a job that runs again: totals, a timeline, a row for each. `x`: the report's member "attempts", as
// in formats.md; absent: one attempt. A daemon's report has no list.
import { legend } from "./charts.js";
import { bdi, counted, firstOf, h, name, number, percent, section, span, stamp, table, timeOf } from "./dom.js";

const FIRST = 20;  // rows; the others on demand
const LABEL_SHARE = .04;  // of the timeline, that a bar needs for its number

const isGood = (a) => a.status === 0;
const lasted = (a) => (a.end_ns - a.begin_ns) / 1e9;
const leftOut = (names) => names.length ? names.map((one, i) => [i ? ", " : "", bdi(one)]) : "";

// One sentence for the top of the page.
export function attemptTotals(x) {
  if (x?.state) return liveAttempt(x);
  const last = x?.list?.at(-1);
  if (!last) return null;
  const end = isGood(last) ? `Attempt ${number(last.attempt)} ended well.` : last.again ? "It runs again." : "It does not run again.";
  return h("p", { class: "note", role: "note" }, h("b", {}, `${counted(x.count, "attempt")}, ${span(x.lost_ns / 1e9)} lost. `), end,
           x.excluded.length ? [" Left out: ", leftOut(x.excluded), "."] : "");
}

function liveAttempt(x) {
  const states = { begin: " runs.", again: [" failed; the job runs again", x.why ? [" ", bdi(x.why)] : "", "."], well: " ended well.",
                   stop: [" failed and was the last one", x.why ? [": ", bdi(x.why)] : "", "."] };
  return h("p", { class: "note", role: "note" }, h("b", {}, `Attempt ${number(x.count)} of ${number(x.of)}`), states[x.state] || "",
           x.excluded.length ? [" Left out: ", leftOut(x.excluded), "."] : "");
}

function bar(from, long, key, className, text) {
  const out = h("i", { class: className }, text);
  for (const [property, value] of [["--from", 100 * from + "%"], ["--long", 100 * long + "%"], ["--key", `var(--${key})`]])
    out.style.setProperty(property, value);
  return out;
}

// Attempts in the upper row, lost time in the lower one: it ends where the next attempt begins.
function timeline(list) {
  const begin = list[0].begin_ns, end = Math.max(...list.map((a) => a.end_ns)), all = Math.max(1, end - begin);
  const share = (ns) => (ns - begin) / all;
  const bars = list.flatMap((a, i) => {
    const until = list[i + 1]?.begin_ns ?? a.end_ns, long = (a.end_ns - a.begin_ns) / all;
    return [bar(share(a.begin_ns), long, isGood(a) ? "phase-evaluation" : "phase-training", "", long > LABEL_SHARE ? number(a.attempt) : ""),
            a.lost_ns ? bar(share(until - a.lost_ns), a.lost_ns / all, "phase-stall", "lost") : null];
  });
  const keys = [["phase-training", "failed"], ["phase-evaluation", "ended well"], ["phase-stall", "time lost"]];
  const drawn = [list.some((a) => !isGood(a)), list.some(isGood), list.some((a) => a.lost_ns)];
  return h("figure", {}, h("figcaption", {}, "Attempts over time"),
    h("div", { class: "tries", role: "img", "aria-label": "Attempts over time: the table below has their times" }, bars),
    h("div", { class: "tries-ends" }, h("span", {}, stamp(begin)), h("span", {}, stamp(end))),
    legend(keys.filter((_, i) => drawn[i])));
}

function cause(a) {
  if (isGood(a)) return h("span", { class: "good" }, "ended well");
  return h("div", {}, a.headline ? bdi(a.headline) : "nothing in its output says why",
           typeof a.confidence === "number" ? h("span", { class: "soft" }, ", " + percent(a.confidence)) : "",
           h("div", { class: "soft" }, `exit status ${number(a.status)}`));
}

function decision(a) {
  if (isGood(a)) return "";
  return a.again ? h("div", {}, h("b", {}, "Run again"), a.why ? [": ", bdi(a.why)] : "") : a.why ? bdi(a.why) : "not started again";
}

// From which step to which, and from which checkpoint.
function progress(a) {
  const steps = typeof a.to === "number" ? `${typeof a.from === "number" ? number(a.from) : "begin"} to ${number(a.to)}` : "";
  return steps || a.resume ? h("div", {}, steps, a.resume ? h("div", { class: "soft" }, "from ", h("code", {}, name(a.resume))) : "") : "";
}

export function attempts(x) {
  if (!x?.list?.length) return null;
  const row = (a) => [
    a.page ? h("a", { href: a.page }, `${number(a.attempt)}: report`) : number(a.attempt),
    h("div", {}, `${timeOf(a.begin_ns)} to ${timeOf(a.end_ns)}`, h("div", { class: "soft" }, span(lasted(a)))),
    cause(a), decision(a), leftOut(a.excluded), progress(a), a.lost_ns ? span(a.lost_ns / 1e9) : ""];
  const older = x.count - x.list.length;
  return section("Attempts", timeline(x.list),
    firstOf(x.list, FIRST, (list) => table(["Attempt", "Time", "Cause", "Then", "Ran without", "Steps", "Lost"], list.map(row), "cards")),
    h("p", { class: "soft" }, older > 0 ? `${counted(older, "older attempt")} left out here. ` : "", "All are in ", h("code", {}, name(x.ledger)), "."));
}
