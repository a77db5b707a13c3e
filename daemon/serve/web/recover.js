// The controller: its open questions first, then what it does, did and would have done, and what that was worth.
// Nothing changes before a button is pressed: a link only shows a question.
import { json, items, post } from "./api.js";
import { bdi, counted, firstOf, h, jobLink, name, number, percent, plain, replace, section, since, span, stamp, table } from "./dom.js";
import { linesLink } from "./lines.js";
import { scoreBar } from "./parts.js";

const BY = "culprit-by";
const FIRST = 12;  // rows of a table; the others on demand
const CALM = ["run", "done"];
const STATES = { run: "runs", suspect: "suspects", stop: "ends its processes", check: "checks its hosts", isolate: "isolates", place: "waits to start again",
                 restart: "starts again", verify: "runs again, no progress yet", held: "held for a person", done: "ended" };
const KINDS = { isolate: "isolate", return: "return", "end-tasks": "end job", "run-again": "run again", verify: "look at" };
const ENDS = { approved: "was approved", declined: "was declined, so nothing is done", unanswered: "had no answer in time, so nothing is done",
               moot: "is no longer asked: the job or its host has changed" };
const BAD = ["failed", "ambiguous", "abandoned"];

export function leftOf(until_ns) {
  const seconds = until_ns / 1e9 - Date.now() / 1e3;
  if (seconds <= 0) return "its time is over";
  const minutes = Math.floor(seconds / 60), rest = Math.floor(seconds % 60);
  return (minutes ? `${minutes} min ` : "") + `${rest} s left`;
}

function deed(order) {
  const without = order.excluded?.length && order.kind === "run-again" ? [" without ", names(order.excluded)] : "";
  return h("li", {}, h("b", {}, KINDS[order.kind] || plain(order.kind)), " ", bdi(order.target), without,
           order.code ? h("span", { class: "pill" }, name(order.code)) : "");
}

function names(list, most = 8) {
  const more = list.length - most;
  return [list.slice(0, most).map((one, i) => [i ? ", " : "", bdi(one)]), more > 0 ? ` and ${number(more)} more` : ""];
}

// A button that asks once more before it does its deed.
function twice(label, sure, call) {
  const box = h("span", { class: "twice" });
  const ask = h("button", { type: "button" }, label);
  const yes = h("button", { type: "button", class: "main" }, sure), no = h("button", { type: "button" }, "Cancel");
  ask.addEventListener("click", () => {
    replace(box, yes, " ", no);
    yes.focus();
  });
  no.addEventListener("click", () => {
    replace(box, ask);
    ask.focus();
  });
  yes.addEventListener("click", () => {
    yes.disabled = no.disabled = true;
    call().finally(() => replace(box, ask));
  });
  return replace(box, ask);
}

// ---- what stands on top

function stagesOf(stages) {
  const on = (one) => ["isolate", "restart", "check", "return"].filter((stage) => one[stage]);
  const some = stages.map((one) => [one.partition, on(one)]).filter(([, list]) => list.length);
  if (!some.length) return "";
  return some.map(([partition, list]) => list.join(", ") + (partition ? ` in partition ${name(partition)}` : "")).join("; ");
}

// One sentence on what the controller may do now.
export function modeSentence(x) {
  const stages = stagesOf(x.stages);
  if (x.mode === "observe") return "The controller observes: it decides, writes down what it would do, and does nothing.";
  const act = x.mode === "ask" ? "The controller asks a person before it does anything" : "The controller acts by itself";
  return stages ? `${act}. Switched on: ${stages}.` : `${act}, but none of its stages is switched on: nothing is done.`;
}

function headline(x) {
  const n = x.questions.length;
  if (n) return [`${counted(n, "question")} ${n === 1 ? "waits" : "wait"} for you`, "alarm"];
  if (x.trouble) return ["The controller can do nothing now", "caution"];
  const busy = x.items.filter((one) => !CALM.includes(one.state)).length;
  return [busy ? `The controller works on ${counted(busy, "job")}` : "No job needs the controller", ""];
}

// ---- questions

function evidenceOf(verdict) {
  if (!verdict) return h("p", { class: "soft" }, "No verdict stands behind it.");
  const lines = verdict.evidence.map((e) => h("li", {},
    h("div", { class: "at" }, e.file && e.line ? h("a", { href: linesLink(verdict.job, e) }, name([e.host, `${e.file}:${e.line}`].filter(Boolean).join(" "))) :
      name([e.host, e.file].filter(Boolean).join(" ")), e.time_ns ? [" ", since(e.time_ns)] : ""),
    e.text ? h("pre", {}, plain(e.text)) : ""));
  return [h("p", {}, "Verdict: ", h("a", { href: jobLink(verdict.job, verdict.run) }, bdi(verdict.headline || verdict.title)), " ",
            h("span", { class: "pill", title: "confidence" }, percent(verdict.confidence))),
          lines.length ? h("details", { open: true }, h("summary", {}, "Evidence"), h("ul", { class: "evidence" }, lines)) : ""];
}

function question(q, linked, done) {
  const id = "by-" + q.decision, trouble = h("p", { class: "bad", role: "alert" });
  const by = h("input", { id, value: sessionStorage.getItem(BY) || "", autocomplete: "name", maxlength: 200 });
  const left = h("span", { "data-until": q.expires_ns }, leftOf(q.expires_ns));
  const button = (word, label, className) => {
    const out = h("button", { type: "button", class: className, "data-word": word }, label);
    out.addEventListener("click", async () => {
      sessionStorage.setItem(BY, by.value.trim());
      buttons.forEach((one) => { one.disabled = true; });
      try {
        await post(`v1/recovery/${encodeURIComponent(q.decision)}/${word}`, by.value.trim());
        done();
      } catch (error) {
        trouble.textContent = plain(error.message);
        buttons.forEach((one) => { one.disabled = false; });
      }
    });
    return out;
  };
  const buttons = [button("approve", "Approve", "main"), button("decline", "Decline", "")];
  return h("section", { class: "card alarm" + (linked ? " linked" : ""), "data-decision": q.decision, tabindex: linked ? "-1" : null,
                        "aria-label": "Question " + plain(q.decision) },
    h("h2", {}, bdi(q.decision), q.job ? [" on job ", bdi(q.job)] : "", ": ", bdi(q.does)),
    h("ul", { class: "deeds" }, q.orders.map(deed)),
    h("p", {}, h("b", {}, "Why: "), bdi(q.text)), evidenceOf(q.verdict),
    h("p", { class: "soft" }, "Asked ", since(q.asked_ns), "; ", left, ". Without an answer nothing is done."),
    h("div", { class: "actions" }, buttons, h("label", { for: id }, "as "), by), trouble);
}

// What became of the question that a link named.
function linkedEnd(x, wanted) {
  if (!wanted || x.questions.some((q) => q.decision === wanted)) return null;
  const end = x.answered.find((one) => one.decision === wanted);
  return h("p", { class: "note", role: "status" }, end
    ? [bdi(wanted), " (", bdi(end.does), ") ", ENDS[end.end] || plain(end.end), end.by ? [" by ", bdi(end.by)] : "", ", ", since(end.time_ns), "."]
    : [bdi(wanted), " waits for no answer: it was answered, its time is over, or the collector has restarted since."]);
}

// ---- what it does, did, and would have done

function jobs(list) {
  const busy = list.filter((x) => !CALM.includes(x.state)), calm = list.length - busy.length;
  const rows = busy.map((x) => [h("a", { href: jobLink(x.job) }, bdi(x.job)), h("span", { class: x.state === "held" ? "bad" : "" }, STATES[x.state] || plain(x.state)),
    since(x.since_ns), x.limit_ns ? h("span", { "data-until": x.limit_ns }, leftOf(x.limit_ns)) : "", x.decision ? bdi(x.decision) : "",
    x.root ? bdi(x.root) : "", x.excluded.length ? h("div", {}, names(x.excluded)) : "", x.why ? bdi(x.why) : ""]);
  return section("Jobs", h("p", { class: "soft" }, busy.length ? `${counted(calm, "other job")} ${calm === 1 ? "needs" : "need"} nothing.`
      : list.length ? `${counted(calm, "job")}, and none needs anything.` : "The scheduler shows no job."),
    rows.length ? firstOf(rows, FIRST, (some) => table(["Job", "State", "Since", "Limit", "Decision", "Cause", "Without", "Why"], some, "cards")) : null);
}

function hostsOut(x, undo) {
  if (!x.out.length) return section("Hosts that it took out", h("p", { class: "soft" }, "None."));
  return section("Hosts that it took out", firstOf(x.out, FIRST, (some) => table(["Host", "Since", "Cause", "History", "Decision", "Return"], some.map((one) => [
    h("a", { href: "#/hosts/" + encodeURIComponent(one.host) }, bdi(one.host)), since(one.since_ns), one.root ? bdi(one.root) : "",
    one.again ? h("span", { class: "bad" }, bdi(one.again.replace(one.host + ": ", ""))) : one.isolated > 1 ? counted(one.isolated, "time") : "first time",
    one.decision ? bdi(one.decision) : "", one.op ? undo(one) : "being taken out"]), "cards")));
}

function deeds(list, x, undo) {
  if (!list.length) return section("What it did", h("p", { class: "soft" }, "Nothing yet."));
  const out = new Map(x.out.map((one) => [one.op, one]));
  return section("What it did", firstOf(list, FIRST, (some) => table(["When", "Decision", "Action", "Result", "By", "Undo"], some.map((a) => [
    since(a.reserved_ns), bdi(a.decision), h("div", {}, KINDS[a.kind] || plain(a.kind), " ", bdi(a.target), a.excluded.length ? [" without ", names(a.excluded)] : "",
      h("div", { class: "soft" }, bdi(a.reason))),
    h("div", {}, h("span", { class: BAD.includes(a.state) ? "bad" : "" }, plain(a.state)), a.detail ? h("div", { class: "soft" }, bdi(a.detail)) : ""),
    h("span", {}, name(a.undone_by || a.by)), out.has(a.op) && a.kind === "isolate" ? undo(out.get(a.op)) : ""]), "cards")));
}

function wouldDo(list, mode) {
  if (!list.length) return mode === "observe" ? section("What it would have done", h("p", { class: "soft" }, "Nothing yet.")) : null;
  const draw = () => firstOf(list, FIRST, (some) => table(["When", "Decision", "Job", "Would"], some.map((x) => [
    since(x.time_ns), x.decision ? bdi(x.decision) : "", x.order?.job?.id ? bdi(x.order.job.id) : "",
    h("div", {}, x.order ? [KINDS[x.order.kind] || plain(x.order.kind), " ", bdi(x.order.target), x.order.excluded.length ? [" without ", names(x.order.excluded)] : "",
      h("div", { class: "soft" }, bdi(x.order.reason))] : bdi(x.text))]), "cards"));
  return mode === "observe" ? section("What it would have done", draw())
                            : h("details", { class: "past" }, h("summary", {}, "What it would have done while it observed"), draw());
}

// ---- what it was worth

const CAUSES = { none: "no verdict" };

function worth(x) {
  if (!x.attempts) return section("What it was worth", h("p", { class: "soft" }, "No attempt of a job is known yet."));
  const lost = [...x.lost].sort((a, b) => b.seconds - a.seconds), most = Math.max(1, ...lost.map((one) => one.seconds));
  const times = [["to detect", x.detect], ["to decide", x.decide], ["to run again", x.again]].filter(([, q]) => q.count);
  const share = (one) => {
    const bar = scoreBar(0);
    bar.textContent = span(one.seconds);
    bar.style.setProperty("--score", Math.round(100 * one.seconds / most) + "%");
    return bar;
  };
  return section("What it was worth",
    h("p", {}, x.wall_s ? [h("b", {}, percent(x.ettr)), ` effective training time: ${span(x.productive_s)} of ${span(x.wall_s)}`] : "No effective training time is measured yet", `, over ${counted(x.jobs, "job")}, ${counted(x.attempts, "attempt")}, ${counted(x.failures, "failure")}.`),
    lost.length ? table(["Lost by", "Time"], lost.map((one) => [name(one.cause ?? CAUSES.none), share(one)])) : null,
    times.length ? table(["Time", "Middle", "9 of 10 within", "Longest", "Failures"], times.map(([what, q]) =>
      [what, span(q.median_s), span(q.p90_s), span(q.most_s), number(q.count)])) : null);
}

function remembered(list) {
  return firstOf(list, FIRST, (some) => table(["Host", "Suspected", "Taken out", "Returned", "Last", "Cause"], some.map((x) => [
    h("div", {}, bdi(x.host), x.device ? [" ", h("code", {}, name(x.device))] : ""), number(x.suspected), number(x.isolated), number(x.returned),
    since(x.last_ns), x.last_root ? bdi(x.last_root) : ""]), "cards"));
}

export function recoverView(main, at) {
  const title = h("h1", {}, "Recovery"), mode = h("p", { role: "status" }), trouble = h("p", { class: "bad", role: "alert" });
  const asked = h("div", {}), rest = h("div", {}), memory = h("details", { class: "history" }, h("summary", {}, "All hosts that were suspected or taken out")), memoryList = h("div", {});
  memory.append(memoryList);
  memory.addEventListener("toggle", async () => {
    if (!memory.open || memoryList.childElementCount) return;
    const found = await items("v1/recovery/machines").catch((error) => error);
    replace(memoryList, found instanceof Error ? h("p", { class: "bad" }, plain(found.message)) : found.length ? remembered(found) : h("p", { class: "soft" }, "None."));
  });
  replace(main, title, mode, trouble, asked, rest);
  document.title = "Recovery – Culprit";
  let last = "", focused = false;

  async function tell(path) {
    try {
      await post(path, sessionStorage.getItem(BY) || "");
      trouble.textContent = "";
    } catch (error) {
      trouble.textContent = plain(error.message);
    }
    await refresh(true).catch((error) => { trouble.textContent = plain(error.message); });
  }

  const undo = (one) => twice("Return it", `Return ${name(one.host)}: this cause takes it out no more for a day`, () => tell(`v1/recovery/${encodeURIComponent(one.op)}/undo`));

  function drawQuestions(x) {
    const id = document.activeElement?.id, typed = id && asked.contains(document.activeElement) ? document.activeElement.value : null;
    replace(asked, linkedEnd(x, at.name), x.questions.map((q) => question(q, q.decision === at.name, () => refresh(true))));
    if (typed !== null) {
      const field = document.getElementById(id);
      if (field) field.value = typed, field.focus();
    }
    const linked = focused ? null : asked.querySelector(".linked");
    if (!linked) return;
    focused = true;
    linked.scrollIntoView({ block: "nearest" });
    linked.focus({ preventScroll: true });
  }

  function breaker(x) {
    if (!x.breaker) return null;
    return h("section", { class: "card caution", "aria-label": "Breaker" }, h("p", {}, h("b", {}, "The breaker is open: "), bdi(x.breaker), "."),
      h("p", {}, "Hosts are left out for single jobs, and none is taken out. Returns go on."),
      h("div", { class: "actions" }, twice("Reset the breaker", "Reset it: what was decided before is dropped", () => tell("v1/recovery/reset"))));
  }

  function off(error) {
    title.textContent = "Recovery";
    title.className = "";
    mode.className = error.status === 404 ? "soft" : "bad";
    mode.textContent = error.status === 404 ? "No controller runs here, so nothing is isolated or run again. It begins to observe with act.scheduler in the collector's culpritd.toml."
                                            : plain(error.message);
    replace(asked);
    replace(rest);
    last = "";
  }

  async function refresh(force) {
    let x, done, would, cost;
    try {
      x = await json("v1/recovery");
      [done, would, cost] = await Promise.all([items("v1/recovery/actions"), items("v1/recovery/notes?kind=would-do"), json("v1/recovery/cost")]);
    } catch (error) {
      if (x?.trouble) return off(new Error(x.trouble));  // a controller that did not start has no lists
      if (error.status !== 404 && error.status !== 403) throw error;
      return off(error);
    }
    const text = JSON.stringify([x, done, would, cost]);
    if (text === last && force !== true) return;
    last = text;
    const [sentence, kind] = headline(x);
    title.textContent = sentence;
    title.className = kind;
    document.title = (kind === "alarm" ? "● " : "") + name(sentence) + " – Culprit";
    mode.className = x.mode === "observe" ? "note" : "soft";
    replace(mode, modeSentence(x), x.trouble ? h("span", { class: "bad" }, " Nothing is done: ", bdi(x.trouble), ".") : "");
    drawQuestions(x);
    if (rest.querySelector(".twice .main") && force !== true) return;  // a person decides: the page stays below the eyes
    replace(rest, breaker(x), x.mode === "observe" ? wouldDo(would, x.mode) : null, jobs(x.items), hostsOut(x, undo), deeds(done, x, undo),
            x.mode === "observe" ? null : wouldDo(would, x.mode), worth(cost), memory);
  }

  const clock = setInterval(() => {
    for (const one of main.querySelectorAll("[data-until]")) one.textContent = leftOf(Number(one.dataset.until));
  }, 1000);
  return { refresh, close: () => clearInterval(clock) };
}

// ---- on a job's page

export class JobDecision {
  constructor() {
    this.element = h("div", {});
    this.last = "";
  }

  async refresh(job) {
    let x;
    try {
      x = await json(`v1/jobs/${encodeURIComponent(job)}/decision`);
    } catch {
      return replace(this.element);  // no controller, a job it does not know, or a reader who may not see it
    }
    const text = JSON.stringify(x);
    if (text === this.last) return;
    this.last = text;
    replace(this.element, this.draw(x));
  }

  draw(x) {
    const asks = x.asks ? h("p", {}, h("b", {}, "It asks: "), h("a", { href: "#/recover/" + encodeURIComponent(x.decision) }, "answer ", bdi(x.decision))) : null;
    const would = x.notes.filter((one) => one.kind === "would-do" && one.decision === x.decision);
    const held = x.notes.find((one) => ["held", "refused"].includes(one.kind) && one.decision === x.decision);
    const calm = CALM.includes(x.state) && !x.decision;
    const body = [asks,
      h("p", {}, `Attempt ${number(x.attempt)} ${STATES[x.state] || plain(x.state)} `, since(x.since_ns), x.decision ? [", decision ", bdi(x.decision)] : "",
        x.excluded.length ? [", without ", names(x.excluded)] : "", "."),
      held ? h("p", { class: "bad" }, bdi(held.text)) : null,
      x.actions.length ? h("ul", {}, x.actions.slice(-FIRST).map((a) => h("li", {}, since(a.reserved_ns), " ", bdi(a.decision), ": ", KINDS[a.kind] || plain(a.kind), " ", bdi(a.target),
        ": ", h("span", { class: BAD.includes(a.state) ? "bad" : "" }, plain(a.state)), a.detail ? [", ", bdi(a.detail)] : ""))) : null,
      would.length ? [h("p", {}, "It only observes, and would have done:"), h("ul", {}, would.map((one) => h("li", {}, bdi(one.text))))] : null,
      x.explanation.length ? h("details", {}, h("summary", {}, "Why"), h("ol", {}, x.explanation.map((one) => h("li", {}, bdi(one))))) : null];
    return calm ? h("details", { class: "past" }, h("summary", {}, "The controller watches this job"), body) : section("Controller", body);
  }
}
