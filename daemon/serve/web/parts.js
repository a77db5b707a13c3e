// The parts of a report: what the page and the report's own file draw of it. `site` says where they stand and what
// can be done there:
//   job, run       whose report it is
//   lineHref(e)    where the line of evidence is shown; null: nowhere
//   around(to, e)  fills `to` with the lines around it and the command that gives them
//   source(e)      an element with the command for evidence that is no text
//   hostHref(host) where a host is shown; null: nowhere
//   ruleHref(id)   where a rule is shown; null: nowhere
//   actions(d)     what a person may say of a diagnosis; null: nothing
import { bdi, bytes, counted, firstOf, h, name, number, percent, place, plain, ranges, section, since, span, stamp,
         table, timeOf } from "./dom.js";
import { evidence } from "./evidence.js";
import { stackPicture } from "./stacks.js";
import { follows } from "./timeline.js";

const FIRST = 8;  // of a list; the others on demand
const ACTIONS = { isolate: "Isolate", check: "Check", restart: "Restart", rollback: "Roll back", retry: "Retry",
                  mitigate: "Mitigate", fix: "Fix" };
export const GONE = ["withdrawn", "refuted"];

function linked(href, text) {
  return href ? h("a", { href }, text) : text;
}

function pills(d) {
  const said = d.confirmed;
  return [h("span", { class: "pill", title: "confidence" }, percent(d.confidence)),
          d.state === "confirmed" && h("span", { class: "pill good" }, "confirmed"),
          GONE.includes(d.state) && h("span", { class: "pill bad" }, d.state),
          said && said.hits > 0 && h("span", { class: "pill", title: "What people said of diagnoses of this kind" },
                                     `right ${number(said.right)} of ${number(said.hits)}`)];
}

function kindOf(site, d) {
  const words = [d.category, d.component, d.symptom, d.stage, !d.rule && d.detector && "detector " + d.detector];
  const text = words.filter((x) => x && x !== "unknown" && x !== "other").join(" · ");
  return d.rule ? [text && text + " · ", "rule ", linked(site.ruleHref(d.rule), bdi(d.rule))] : text;
}

function todo(d) {
  const action = ACTIONS[d.action?.kind], targets = d.action?.targets || [];
  const again = d.restart?.sentence && h("div", { class: "again", title: d.restart.why },
                                         "Run again: ", bdi(d.restart.sentence), ".");
  if (!action && !d.remedy && !again) return null;
  return h("div", { class: "todo" },
           action && h("b", {}, action + (targets.length ? " " + name(targets.slice(0, 6).join(", ")) +
             (targets.length > 6 ? ` and ${targets.length - 6} more` : "") : "") + ". "), d.remedy, again);
}

function where(d) {
  const links = (d.links || []).map((x) => h("li", {}, "link ", bdi(x.a), " – ", bdi(x.b)));
  const hosts = (d.hosts || []).map((p) => h("li", {}, bdi(place(p))));
  if (!hosts.length && !links.length) return null;
  return firstOf([...hosts, ...links], FIRST, (list) => h("ul", { class: "where" }, list));
}

function why(d) {
  return d.why?.length ? firstOf(d.why, FIRST, (list) => h("ul", {}, list.map((one) => h("li", {}, one)))) : null;
}

// ---- the parts

// Since when it is said, and what was said before it. `rows`: of the index; `story`: the job's events.
export function revisions(d, rows, story) {
  const row = rows.find((x) => x.id === d.id);
  const said = story.filter(({ type, x }) => type === "diagnosis" && x.verdict && x.id === d.id);
  const revised = said.filter(({ x }) => x.change === "revised").length;
  const before = said.map(({ x }) => x.replaces?.title).filter(Boolean).at(-1);
  return [row?.first_ns ? ["Said since ", since(row.first_ns), row.last_ns > row.first_ns ? [", last seen ", since(row.last_ns)] : ""] : "",
          revised ? `, revised ${revised === 1 ? "once" : revised + " times"}` : "", before ? [", in place of “", bdi(before), "”"] : ""];
}

// What is said of the job: one sentence, in the report's words.
export function card(report, site, history) {
  const d = report.verdict;
  if (d)
    return h("section", { class: "card alarm", "aria-label": "Verdict" },
      h("h1", {}, bdi(report.headline || d.title)),
      h("div", { class: "pills" }, pills(d), report.settled === false && h("span", { class: "pill" }, "may still change"),
        d.said_by && h("span", { class: "pill" }, "unproven: said by " + name([...(d.said_by.uids || []).map((u) => "uid " + u),
          ...(d.said_by.pods || []).map((p) => "pod:" + p), ...(d.said_by.hosts || [])].slice(0, 4).join(", ")) + " alone")),
      where(d), todo(d), h("p", { class: "soft" }, kindOf(site, d)), why(d), history, site.actions(d));
  const kind = { fault: "alarm", no_fault: "calm" }[report.state] ?? "caution";
  if (kind !== "calm")
    return h("section", { class: "card " + kind, "aria-label": "Verdict" },
      h("h1", {}, bdi(report.headline)),
      report.missing.length ? [h("p", {}, "What would tell more:"),
        h("ul", {}, report.missing.map((one) => h("li", {}, one)))] : null);
  return h("section", { class: "card calm", "aria-label": "Verdict" },
    h("h1", {}, bdi(report.headline)));
}

function other(site, d) {
  const gone = GONE.includes(d.state);
  const out = h("details", { class: gone ? "gone" : "" },
    h("summary", {}, h("span", {}, bdi(d.title)), " ", pills(d)));
  out.addEventListener("toggle", () => {
    if (out.open && out.childElementCount === 1)
      out.append(h("div", { class: "inner" }, h("p", { class: "soft" }, kindOf(site, d)), where(d), todo(d), why(d), evidence(site, d),
                   site.actions(d)));
  });
  return out;
}

export function others(report, site) {
  const open = report.diagnoses.filter((d) => d.id !== report.verdict?.id && !GONE.includes(d.state));
  const after = open.filter((d) => follows(report, d)), rest = open.filter((d) => !follows(report, d));
  const lines = (list) => list.map((d) => other(site, d));
  return [rest.length ? section("Other diagnoses", firstOf(rest, FIRST, lines)) : null,
          after.length ? h("details", { class: "past" }, h("summary", {}, counted(after.length, "consequence") + ": weaker than the verdict, and not long before it"),
            lines(after)) : null];
}

// Folded away: they are no equals of those that stand. `rows`: of the index, which has some that the report has not.
export function past(report, rows, site) {
  const ids = new Set(report.diagnoses.map((d) => d.id));
  const gone = [...report.diagnoses, ...rows.filter((d) => !ids.has(d.id) && d.settled !== false)]
    .filter((d) => GONE.includes(d.state));
  if (!gone.length) return null;
  return h("details", { class: "past" }, h("summary", {}, `${gone.length} withdrawn or refuted`),
           gone.map((d) => other(site, d)));
}

const PLACES = { waits: "waits", finished: "finished it", elsewhere: "is elsewhere", left: "left", unknown: "unknown" };

export function hang(x) {
  if (!x) return null;
  // Those that the others wait for first.
  const late = new Set(x.waited_for || []), names = (row) => row.ranks.some((rank) => late.has(rank));
  const few = (row) => names(row) && row.ranks.length <= late.size;
  const rows = [...(x.scene || []).filter(few), ...(x.scene || []).filter((row) => !few(row))];
  const scene = rows.length ? firstOf(rows, Math.max(6, rows.filter(few).length + 3), (list) => table(["Ranks", "Group", "Last operation", "State"], list.map((row) => [
    h("span", { class: few(row) ? "late" : "" }, h("b", {}, number(row.ranks.length) + ": "), ranges(row.ranks, 8)), bdi(row.group),
    h("code", {}, name([row.op, row.seq !== null && row.seq !== undefined ? "#" + row.seq : ""].filter(Boolean).join(" "))),
    h("span", { class: "scene " + row.place }, PLACES[row.place] || plain(row.place), row.doing ? ": " + plain(row.doing) : "")]))) : null;
  const stacks = (x.clusters || []).map((c) => h("details", { class: c.healthy ? "" : "differs" },
    h("summary", {}, `${counted(c.ranks.length, "rank")} (${ranges(c.ranks, 6)}): `, h("code", {}, name(c.frames[0] || "no frame")),
      c.healthy ? "" : h("span", { class: "pill bad" }, "differs")), h("pre", {}, c.frames.join("\n"))));
  const waiters = x.waiting?.length && x.waited_for?.length
    ? h("p", {}, `${counted(x.waiting.length, "rank")} wait for `, h("b", {}, (x.waited_for.length === 1 ? "rank " : "ranks ") + ranges(x.waited_for)),
        x.op ? [" in ", h("code", {}, name(x.op + (x.seq !== null && x.seq !== undefined ? " #" + x.seq : "")))] : "",
        x.group ? [" of ", bdi(x.group)] : "") : null;
  return section("Hang", x.sentence && h("p", {}, x.sentence), waiters,
                 x.since_ns ? h("p", { class: "soft" }, "The job stopped ", since(x.since_ns), ".") : null, scene,
                 stacks.length ? [h("h3", {}, "Stacks"), stackPicture(x.clusters), firstOf(stacks, 12, (list) => list)] : null);
}

export function scoreBar(score) {
  const bar = h("span", { class: "score" }, (score ?? 0).toFixed(2));
  bar.style.setProperty("--score", Math.round(100 * (score ?? 0)) + "%");
  return bar;
}

export function suspects(list, site) {
  if (!list.length) return null;
  return section("Suspects", firstOf(list, 12, (some) => table(["Score", "Where", "Why"], some.map((p) => [
    scoreBar(p.score), linked(site.hostHref(p.host), bdi(place(p))),
    h("div", {}, (p.why || []).slice(0, 4).map((one) => h("div", {}, one)))]), "cards")));
}

const hostsOf = (x) => new Set(x.where.map((p) => p.host).filter(Boolean));

// Of the verdict's rules, or of its hosts alone; the others wrote what follows from it.
function isOfFault(v, x) {
  const rules = [v.rule, ...(v.found_by || []).filter((one) => one.startsWith("rule:")).map((one) => one.slice(5))].filter(Boolean);
  if (x.why.some((one) => rules.includes(one.slice(5)) && one.startsWith("rule:"))) return true;
  const accused = new Set(v.hosts.map((p) => p.host)), hosts = hostsOf(x);
  return hosts.size > 0 && accused.size > 0 && [...hosts].every((host) => accused.has(host));
}

function messages(list, site) {
  const timed = list.some((x) => x.at !== null);
  return table(["Score", ...(timed ? ["First"] : []), "Message", "Lines", "Hosts"], list.map(({ x, at }) => {
    const hosts = hostsOf(x);
    const rules = x.why.filter((one) => one.startsWith("rule:")).map((one) => one.slice(5));
    return [scoreBar(x.score), ...(timed ? [at === null ? "" : timeOf(at)] : []), h("div", {}, h("code", {}, x.template), " ",
      rules.map((id) => h("span", { class: "pill" }, linked(site.ruleHref(id), name(id)))),
      x.why.filter((one) => !one.startsWith("rule:")).map((one) => h("span", { class: "pill" }, one)),
      x.where.length ? h("details", {}, h("summary", {}, "places"), h("ul", { class: "mono" }, x.where.slice(0, 20).map((p) =>
        h("li", {}, linked(site.lineHref(p), bdi(p.file + ":" + p.line)), " ", bdi(p.host || ""))))) : null),
      number(x.count), hosts.size ? number(hosts.size) : ""];
  }), "cards");
}

export function indicating(report, site) {
  const times = report.charts?.activity?.indicating_ns || [], v = report.verdict;
  const list = report.indicating.map((x, i) => ({ x, at: times[i] ?? null }));
  if (!list.length) return null;
  const root = ({ x }) => x.why.some((one) => one.startsWith("rule:"));
  const sorted = [...list.filter(root), ...list.filter((one) => !root(one))];
  const of = v ? sorted.filter(({ x }) => isOfFault(v, x)) : sorted, after = sorted.filter((one) => !of.includes(one));
  const hosts = new Set(after.flatMap(({ x }) => [...hostsOf(x)]));
  return section("Messages that indicate the failure", of.length ? firstOf(of, FIRST, (some) => messages(some, site)) : null,
    after.length ? h("details", { class: "past" }, h("summary", {}, counted(after.length, of.length ? "consequence" : "message") +
      (hosts.size ? ` on ${counted(hosts.size, "host")}` : "")), messages(after, site)) : null);
}

export function irregular(list) {
  if (!list.length) return null;
  const worst = [...list].sort((a, b) => b.cost_ms - a.cost_ms);
  return section("Slow steps", firstOf(worst, FIRST, (some) =>
    table(["Steps", "Slower", "Cost per step", "Part", "Who", "Who waited for whom"], some.map((x) => [
      x.steps[0] === x.steps[1] ? number(x.steps[0]) : `${number(x.steps[0])} to ${number(x.steps[1])}`,
      x.slowdown.toFixed(2) + " ×", x.cost_ms.toFixed(0) + " ms", x.kind,
      h("div", {}, x.suspects.slice(0, 3).map((p) => h("div", {}, bdi(place(p)))), x.links.slice(0, 2).map((l) => h("div", {}, bdi(l.a), " – ", bdi(l.b))),
        x.sentence ? h("div", { class: "soft" }, bdi(x.sentence)) : ""),
      x.chain.length ? h("ol", { class: "chain" }, x.chain.slice(0, 8).map((c) =>
        h("li", {}, `rank ${c.rank} `, h("code", {}, name(c.op + " #" + c.seq)), ` ${c.wait_ms.toFixed(1)} ms`))) : ""]), "cards")));
}

export function numerics(list) {
  if (!list.length) return null;
  return section("Wrong numbers", h("ul", {}, list.slice(0, 20).map((x) => h("li", {}, h("b", {}, `step ${number(x.step)}: ${x.class}`),
    x.ranks.length ? ` by ${x.ranks.length === 1 ? "rank" : "ranks"} ${ranges(x.ranks, 6)}` : "", x.metrics.length ? ` in ${x.metrics.join(", ")}` : "",
    ` (${percent(x.confidence)}), seen at step ${number(x.detected_at)}. `, x.mitigation))));
}

export function facts(report) {
  const j = report.job, took = j.first_ns && j.last_ns ? (j.last_ns - j.first_ns) / 1e9 : 0;
  const some = (n, noun) => n ? counted(n, noun) : "";
  return h("p", { class: "soft" }, [some(j.hosts, "host"), some(j.ranks, "rank"), counted(j.lines, "line"), bytes(j.bytes),
    took ? `${stamp(j.first_ns)} to ${stamp(j.last_ns)} (${span(took)})` : ""].filter(Boolean).join(" · "));
}

export function problems(report) {
  const list = report.problems.filter((p) => p.about !== "culprit");
  const cut = Object.entries(report.cut).map(([what, n]) => `${number(n)} of ${what} left out`);
  return [list.length ? section("Not read in full", firstOf(list, FIRST, (some) =>
            table(["File", "What"], some.map((p) => [h("code", {}, p.file), p.what])))) : null,
          report.verdict && report.missing.length ? section("What is missing", h("ul", {}, report.missing.map((one) => h("li", {}, one)))) : null,
          report.notes?.length ? section("Notes", h("ul", {}, report.notes.map((one) => h("li", {}, one)))) : null,
          cut.length ? h("p", { class: "soft" }, cut.join(", ")) : null];
}
