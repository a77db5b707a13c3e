// The jobs, those that need a person first.
import { json } from "./api.js";
import { ownerOf } from "./cluster.js";
import { bdi, counted, h, jobLink, name, number, percent, place, plain, replace, since, stamp } from "./dom.js";

const ROWS = 100;
const EVENTS_SHOWN = 200;
const STATES = { "": "All", verdict: "With a verdict", running: "Running", failed: "Failed", ended: "Ended" };

// What the operator reads first.
function headline(counts, items) {
  const urgent = items.filter((x) => x.urgency <= 1).length;
  const recent = items.filter((x) => x.urgency === 2).length;
  const running = counts.running || 0;
  if (urgent) return [`${counted(urgent, "running job")} ${urgent === 1 ? "needs" : "need"} you`, "alarm"];
  if (recent) return [`${counted(recent, "job")} failed within a day`, "caution"];
  if (running) return [`${running === 1 ? "1 job runs" : number(running) + " jobs run"}, nothing is known to be wrong`, ""];
  return [counts.all ? "No job runs" : "No job yet", ""];
}

function stateOf(job) {
  const words = [job.hangs && job.state === "running" ? "hangs" : job.state === "ended" && job.well ? "ended well" : job.state];
  if (job.attempt !== undefined) words.push(`attempt ${number(job.attempt)} of ${number(job.attempts)}`);
  if (job.successor) words.push(`waits for job ${name(job.successor)}`);
  else if (job.member) words.push(`as job ${name(job.member)}`);
  if (job.cluster?.as_of_ns) words.push(`as of ${stamp(job.cluster.as_of_ns)}, from ${name(job.cluster.member)}`);
  if (job.iteration !== undefined) words.push("iteration " + number(job.iteration));
  if (job.ranks) words.push(counted(job.ranks, "rank"));
  if (job.hosts) words.push(counted(job.hosts, "host"));
  return words.join(" · ");
}

function subject(verdict) {
  if (!verdict.hosts?.length) return "no single host";
  const more = verdict.hosts_all - verdict.hosts.length;
  return verdict.hosts.map(place).join("; ") + (more > 0 ? ` and ${counted(more, "host")} more` : "");
}

const ACTIONS = { isolate: "Isolate", check: "Check", restart: "Restart", rollback: "Roll back", retry: "Retry",
                  mitigate: "Mitigate", fix: "Fix" };

function advice(verdict) {
  const action = ACTIONS[verdict.action];
  if (!action && !verdict.remedy) return null;
  return h("div", { class: "todo" }, action && h("b", {}, action + (verdict.remedy ? ": " : "")), verdict.remedy);
}

// Whether somebody has the job's alert.
function handled(alert) {
  if (!alert) return null;
  return [alert.acknowledged_by && h("span", { class: "pill good", title: "by " + name(alert.acknowledged_by) }, "acknowledged"),
          alert.silent_until_ns && h("span", { class: "pill", title: "until " + stamp(alert.silent_until_ns) }, "silenced")];
}

function row(job) {
  const verdict = job.verdict;
  const kind = job.urgency <= 1 ? "alarm" : job.urgency === 2 ? "caution" : job.urgency === 4 ? "old" : "calm";
  const id = [bdi(job.id), job.run ? ` (run ${job.run})` : ""];
  const when = verdict?.since_ns ?? (job.state === "running" ? job.first_ns : job.ended_ns ?? job.last_ns);
  const out = h("li", { class: "row " + kind, "data-row": "", "data-job": plain(job.id) });
  const owner = ownerOf(job.cluster, jobLink(job.id));
  const head = h("a", { href: jobLink(job.id, job.run), class: "title" },
                 verdict ? bdi(verdict.headline || verdict.title) : id);
  const side = h("div", { class: "when" }, since(when));
  if (verdict) {
    const sure = h("span", { class: "pill", title: "confidence" }, percent(verdict.confidence));
    const marks = [verdict.state === "confirmed" && h("span", { class: "pill good" }, "confirmed"),
                   verdict.settled === false && h("span", { class: "pill" }, "may still change"),
                   verdict.alone && h("span", { class: "pill", title: "Users or other hosts alone support it" }, "unproven"),
                   handled(job.alert)];
    out.append(h("div", { class: "first" }, head, verdict.confidence !== undefined && sure, marks, side));
    if (verdict.hosts) out.append(h("div", { class: "where" }, bdi(subject(verdict))));
    const todo = advice(verdict);
    if (todo) out.append(todo);
    out.append(h("div", { class: "soft" }, id, " · ", stateOf(job), owner));
  } else {
    out.append(h("div", { class: "first" }, head, h("span", { class: "soft" }, stateOf(job), owner), side));
    if (job.headline) out.append(h("div", { class: "soft" }, bdi(job.headline)));
    if (job.note) out.append(h("div", { class: "soft" }, job.note));
  }
  return out;
}

// ---- what happened

function eventName(type, x) {
  if (type === "diagnosis_gone" || x.change === "withdrawn") return "withdrawn";
  if (type === "diagnosis" && x.verdict) return x.change === "revised" ? "verdict revised" : "verdict";
  return { finding: "finding", diagnosis: "diagnosis", job_started: "began", job_ended: "ended" }[type] || type;
}

function eventLine(type, x) {
  if (type === "dropped") return h("li", { class: "bad" }, counted(x.events, "event") + " left out");
  const gone = eventName(type, x) === "withdrawn";
  const job = x.job || x.id;
  const host = x.host || (x.hosts || []).map?.((p) => p.host).filter(Boolean).slice(0, 3).join(", ");
  const text = [x.title || x.verdict || x.id, host].filter(Boolean).join(" · ");
  return h("li", { class: gone ? "gone" : "" },
           h("span", { class: "soft" }, stamp(x.time_ns || x.last_ns) + " "),
           h("span", { class: "kind" }, eventName(type, x)), " ",
           typeof job === "string" && h("a", { href: jobLink(job, x.run) }, bdi(job)), " ", bdi(text));
}

export function nowView(main, at) {
  let from = 0, state = at.query.get("state") || "", words = at.query.get("q") || "", asked = 0, last = "";
  const title = h("h1", {}, "Now"), late = h("p", { class: "soft", role: "status" });
  const search = h("input", { type: "search", placeholder: "Search jobs, verdicts, hosts, messages", "aria-label": "Search",
                              value: words });
  const chips = h("div", { class: "chips", role: "group", "aria-label": "State" });
  const list = h("ol", { class: "rows" });
  const more = h("button", { type: "button", hidden: true }, "Show more");
  const log = h("ol", { class: "log" });
  const history = h("details", { class: "history" }, h("summary", {}, "What happened"), log);
  let whole = false;
  history.addEventListener("toggle", () => {
    if (whole || !history.open) return;
    whole = true;
    replace(log);
    at.backlog();
  });
  replace(main, title, late, h("div", { class: "tools" }, search, chips), list, more, history);

  function drawChips(counts) {
    replace(chips, Object.entries(STATES).map(([key, label]) => {
      const chip = h("button", { type: "button", "aria-pressed": String(key === state) },
                     label + " ", h("span", {}, number(counts[key || "all"] || 0)));
      chip.addEventListener("click", () => {
        state = key;
        refresh();
      });
      return chip;
    }));
  }

  // Keeps the focus on its row.
  function drawRows(items) {
    const focused = document.activeElement?.closest?.("[data-job]")?.dataset.job;
    replace(list, items.map(row));
    if (focused === undefined) return;
    for (const one of list.children)
      if (one.dataset.job === focused) return one.querySelector("a").focus({ preventScroll: true });
  }

  async function page(start, limit) {
    return json("v1/now?" + new URLSearchParams({ from: start, limit, q: words, state }));
  }

  async function refresh() {
    const turn = ++asked;
    const got = await page(0, Math.min(500, Math.max(ROWS, from)));
    if (turn !== asked) return;
    const text = JSON.stringify([state, words, got]);
    if (text === last) return;
    last = text;
    from = got.items.length;
    const [sentence, kind] = headline(got.counts, got.items);
    title.textContent = words || state ? `${counted(got.total, "job")} of this kind` : sentence;
    title.className = words || state ? "" : kind;
    document.title = (kind === "alarm" ? "● " : "") + name(sentence) + " – Culprit";
    late.textContent = got.late ? "The engine reads a large batch: running jobs are as it reported them last." : "";
    drawChips(got.counts);
    drawRows(got.items);
    if (!got.items.length)
      list.append(h("li", { class: "empty" }, words || state ? "No job is like this." :
        "Jobs appear here when the daemon reads the first line of one: a log of its configuration, a trace, an agent."));
    more.hidden = from >= got.total;
  }

  more.addEventListener("click", async () => {
    const got = await page(from, ROWS);
    list.append(...got.items.map(row));
    from += got.items.length;
    more.hidden = from >= got.total || !got.items.length;
  });
  let typing = null;
  search.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => {
      words = search.value.trim();
      from = 0;
      refresh();
    }, 150);
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") list.querySelector("a")?.focus();
  });

  return {
    refresh,
    event: (type, x) => {
      log.prepend(eventLine(type, x));
      while (log.childElementCount > EVENTS_SHOWN) log.lastElementChild.remove();
      history.firstChild.textContent = `What happened (${number(log.childElementCount)})`;
    },
  };
}
