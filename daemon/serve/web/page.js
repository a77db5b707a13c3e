"use strict";
// Texts come from logs that strangers wrote: they become text nodes and nothing else.
const EVENTS_SHOWN = 200;
const REFRESH_MS = 10000;
const byId = (id) => document.getElementById(id);

function element(tag, text, className) {
  const out = document.createElement(tag);
  out.textContent = text === null || text === undefined ? "" : String(text);
  if (className) out.className = className;
  return out;
}

function clock(ns) {
  return typeof ns === "number" ? new Date(ns / 1e6).toLocaleString() : "";
}

function say(sentence, bad) {
  byId("state").textContent = sentence;
  byId("state").className = bad ? "bad" : "";
}

async function items(path) {
  const answer = await fetch(path);
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error);
  return body.items;
}

function jobRow(job) {
  const row = document.createElement("tr");
  const name = document.createElement("td");
  const link = element("a", job.run ? job.id + " (run " + job.run + ")" : job.id);
  link.href = "v1/jobs/" + encodeURIComponent(job.id) + "/report?run=" + encodeURIComponent(job.run);
  name.append(link);
  row.append(name, element("td", job.state, job.state === "failed" ? "bad" : ""), element("td", job.hosts),
             element("td", clock(job.last_ns)), element("td", job.verdict, job.verdict ? "bad" : ""));
  return row;
}

function line(time, text) {
  const out = document.createElement("li");
  out.append(element("span", clock(time), "time"), document.createTextNode(" " + text));
  return out;
}

function summaryOf(x) {
  const hosts = (x.hosts || []).map((place) => place.host).filter(Boolean).join(", ");
  return [x.job || x.id, x.title || x.verdict, hosts].filter(Boolean).join(" · ");
}

// The name of an event: verdicts, revisions and withdrawals have names of their own.
function nameOf(type, x) {
  if (type === "diagnosis_gone" || x.change === "withdrawn") return "withdrawn";
  if (type === "diagnosis" && x.verdict) return x.change === "revised" ? "revised" : "verdict";
  return type.replace("_", " ");
}

function diagnosisRow(x) {
  const refuted = x.state === "refuted";
  const said = x.state === "confirmed" || refuted ? " · " + x.state : "";
  const out = line(x.time_ns, summaryOf(x) + said);
  if (refuted) out.className = "empty";
  return out;
}

// Unsettled diagnoses are not shown yet; a confirmed one comes first, a refuted one last.
function diagnosisRows(list) {
  const place = { confirmed: 0, open: 1, withdrawn: 2, refuted: 2 };
  const shown = list.filter((x) => x.settled !== false && x.state !== "withdrawn");
  return shown.sort((a, b) => place[a.state] - place[b.state]).map(diagnosisRow);
}

function fill(id, rows) {
  byId(id).replaceChildren(...(rows.length ? rows : [element("li", "none", "empty")]));
}

let refreshing = false;
async function refresh() {
  if (refreshing) return;
  refreshing = true;
  try {
    byId("jobs").replaceChildren(...(await items("v1/jobs")).map(jobRow));
    fill("diagnoses", diagnosisRows(await items("v1/diagnoses")));
    fill("suspects", (await items("v1/suspects")).map((x) => line(x.last_ns, [x.host, x.reason, x.job].join(" · "))));
  } catch (error) {
    say(error.message, true);
  } finally {
    refreshing = false;
  }
}

const stream = new EventSource("v1/events");
stream.onopen = () => say("live", false);
stream.onerror = () => say("not connected; trying again", true);
function show(event) {
  const x = JSON.parse(event.data);
  byId("events").prepend(line(x.time_ns || x.last_ns, nameOf(event.type, x) + ": " + summaryOf(x)));
  while (byId("events").childElementCount > EVENTS_SHOWN) byId("events").lastElementChild.remove();
  if (event.type !== "finding") refresh();
}
for (const kind of ["finding", "diagnosis", "diagnosis_gone", "job_started", "job_ended"]) stream.addEventListener(kind, show);
stream.addEventListener("dropped", (event) => {
  byId("events").prepend(element("li", JSON.parse(event.data).events + " events were left out", "bad"));
});
refresh();
setInterval(refresh, REFRESH_MS);
