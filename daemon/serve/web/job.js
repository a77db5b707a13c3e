// A job of the daemon: its report, kept up to date, and what a person may say of it.
import { Alerts } from "./alerts.js";
import { attemptTotals } from "./attempts.js";
import { ask, items } from "./api.js";
import { ownerOf } from "./cluster.js";
import { bdi, command, h, jobLink, name, quoted, replace, section, stamp } from "./dom.js";
import { evidence } from "./evidence.js";
import { judge } from "./judge.js";
import { linesLink, readCommand, readerOf, showLines } from "./lines.js";
import { JobDecision } from "./recover.js";
import { card, facts, hang, indicating, irregular, numerics, others, past, problems, revisions, suspects } from "./parts.js";
import { Charts } from "./timeline.js";

// What the parts of the report need of this page. `again`: draws the report once more.
function siteOf(job, run, again) {
  const read = (host, e) => command(readCommand(job, host, e.file, e.line));
  return {
    job, run,
    lineHref: (e) => linesLink(job, e),
    around: (to, e) => showLines(to, job, e).then((got) => to.append(read(got?.host ?? e.host ?? "", e))),
    source(e) {
      const out = h("details", {}, h("summary", {}, "Command"));
      out.addEventListener("toggle", async () => {
        if (!out.open || out.childElementCount > 1) return;
        const host = await readerOf(job, e.host || "", e.file).catch(() => e.host || "");
        if (out.childElementCount === 1) out.append(read(host, e));
      });
      return out;
    },
    hostHref: (host) => "#/hosts/" + encodeURIComponent(host || ""),
    ruleHref: (id) => "#/rules/" + encodeURIComponent(id),
    actions(d) {
      const button = (right) => {
        const out = h("button", { type: "button" }, right ? "It was this" : "It was not this");
        out.addEventListener("click", () => judge(job, run, d, right, again));
        return out;
      };
      return h("div", { class: "actions" }, d.state !== "confirmed" && button(true), d.state !== "refuted" && button(false));
    },
  };
}

// Other runs to compare with, read when they are asked for.
function choiceOf(job, run) {
  const out = h("details", {}, h("summary", {}, "Compare with another run")), list = h("div", { role: "status" });
  out.addEventListener("toggle", async () => {
    if (!out.open || list.childElementCount) return;
    const { compareChoice } = await import("./compare.js");
    replace(list, await compareChoice(job, run).catch((error) => h("p", { class: "bad" }, error.message)));
  });
  out.append(list);
  return out;
}

function queryOf(values) {
  const some = Object.entries(values).filter(([, x]) => x !== null && x !== undefined);
  return some.length ? "?" + new URLSearchParams(some) : "";
}

export function jobView(main, at) {
  const job = at.name, asked = at.query.get("run");
  const path = `v1/jobs/${encodeURIComponent(job)}/report?charts=1` + (asked ? "&run=" + asked : "");
  const head = h("p", { class: "up" }, h("a", { href: "#/" }, "← All jobs"), " ", h("b", {}, bdi(job)));
  const body = h("div", {}, h("p", { class: "soft" }, "reading the report"));
  const story = [];
  const alerts = new Alerts(at.query.get("alert")), decision = new JobDecision();
  let last = "", charts = null, rows = [], range = Object.fromEntries(["from", "to", "steps"].map((key) => [key, at.query.get(key)]).filter(([, x]) => x));
  let written = null;
  document.title = name(job) + " – Culprit";
  replace(main, head, body);

  function draw(report) {
    const run = report.job.run ?? 0, site = siteOf(job, run, () => refresh(true));
    const published = report.cluster?.as_of_ns;
    const open = [...body.querySelectorAll("details[open] > summary")].map((x) => x.textContent);
    body.style.minHeight = body.offsetHeight + "px";  // the page does not jump
    charts?.close();
    charts = new Charts(report, story);
    charts.said(rows);
    charts.show(range);
    charts.onRange = (to) => {
      range = to || {};
      clearTimeout(written);
      written = setTimeout(() => window.history.replaceState(null, "", "#/jobs/" + encodeURIComponent(job) + queryOf({ run: asked, ...range })), 200);
    };
    const d = report.verdict;
    document.title = (d ? "● " + name(d.title) + " – " : "") + name(job) + " – Culprit";
    replace(head, h("a", { href: "#/" }, "← All jobs"), " ", h("b", {}, bdi(job)), run ? ` run ${run}` : "",
            ownerOf(report.cluster, jobLink(job)));
    const rest = h("div", {}), gone = h("div", {}), history = h("p", { class: "soft" });
    replace(body, published && h("p", { class: "soft" }, `as of ${stamp(published)}, from ${name(report.cluster.member)}`),
            attemptTotals(report.attempts), card(report, site, history), alerts.element, decision.element, d && section("Evidence", evidence(site, d)), hang(report.hang), charts.element, rest);
    const fold = () => replace(gone, past(report, rows, site));
    // What is below the first screen comes after it.
    requestAnimationFrame(() => setTimeout(() => {
      fold();
      replace(rest, suspects(report.suspects, site), irregular(report.irregularities), numerics(report.numerics),
              others(report, site), gone, indicating(report, site), problems(report), facts(report),
              choiceOf(job, run), h("details", {}, h("summary", {}, "The same on the command line"),
                command(`culprit report ${quoted(job)} --run ${run}`), command(`culprit watch ${quoted(job)}`),
                command(`culprit bundle ${quoted(job)}`)));
      for (const one of body.querySelectorAll("details > summary"))
        if (open.includes(one.textContent)) one.parentElement.open = true;
      body.style.minHeight = "";
    }));
    items("v1/diagnoses?" + new URLSearchParams({ job, run })).then((found) => {
      rows = found;
      charts.said(rows);
      fold();
      if (d) replace(history, revisions(d, rows, story));
    }, () => {});
  }

  async function refresh(force) {
    let text;
    try {
      text = await (await ask(path)).text();
    } catch (error) {
      if (!last) replace(body, h("p", { class: "bad" }, error.message));
      throw error;
    }
    alerts.refresh(job, JSON.parse(text).job.run ?? 0);
    decision.refresh(job);
    if (text === last && force !== true) return;
    const busy = body.contains(document.activeElement) || body.querySelector("[aria-expanded=true]") || charts?.group.zoomed;
    if (last && busy && force !== true) return notice();
    last = text;
    const report = JSON.parse(text);
    draw(report);
  }

  // The reader reads: the page does not change below the eyes.
  function notice() {
    if (body.querySelector(".notice")) return;
    const button = h("button", { type: "button" }, "The report has changed: show it");
    button.addEventListener("click", () => refresh(true));
    body.prepend(h("p", { class: "notice", role: "status" }, button));
  }

  return {
    refresh,
    event: (type, x) => {
      story.push({ type, x });
      if (story.length > 1000) story.shift();
      charts?.happened(type, x);
    },
    close: () => {
      clearTimeout(written);
      charts?.close();
    },
  };
}
