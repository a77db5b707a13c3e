"use strict";
// Texts come from logs that strangers wrote: they become text nodes and nothing else.
const EVENTS_SHOWN = 200;
const REFRESH_MS = 10000;
const RETRY_MS = 2000;
const TOKEN = "culprit-token";
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

// The token comes from the form or from #token=, which browsers never send, and is removed from the address.
function readTokenOfAddress() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!given) return;
  sessionStorage.setItem(TOKEN, given);
  history.replaceState(null, "", location.pathname + location.search);
}

async function ask(path, headers) {
  const token = sessionStorage.getItem(TOKEN);
  const sent = token ? { ...headers, Authorization: "Bearer " + token } : headers;
  const answer = await fetch(path, { headers: sent, cache: "no-store" });
  if (answer.status === 401) byId("login").hidden = false;
  if (!answer.ok) throw new Error((await answer.json()).error);
  byId("login").hidden = true;
  return answer;
}

async function items(path) {
  return (await (await ask(path)).json()).items;
}

// A link sends no token.
async function openReport(event) {
  event.preventDefault();
  const path = event.currentTarget.getAttribute("href");
  try {
    location.href = URL.createObjectURL(await (await ask(path)).blob());
  } catch (error) {
    say(error.message, true);
  }
}

function jobRow(job) {
  const row = document.createElement("tr");
  const name = document.createElement("td");
  const link = element("a", job.run ? job.id + " (run " + job.run + ")" : job.id);
  link.href = "v1/jobs/" + encodeURIComponent(job.id) + "/report?run=" + encodeURIComponent(job.run);
  name.append(link);
  link.addEventListener("click", openReport);
  row.append(name, element("td", job.state, job.state === "failed" ? "bad" : ""), element("td", job.hosts),
             element("td", clock(job.last_ns)),
             element("td", job.verdict || job.note, job.verdict ? "bad" : ""));
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
  return line(x.time_ns, summaryOf(x) + (x.state === "confirmed" ? " · confirmed" : ""));
}

// Unsettled diagnoses are not shown yet, refuted ones no more; a confirmed one comes first.
function diagnosisRows(list) {
  const place = { confirmed: 0, open: 1 };
  const shown = list.filter((x) => x.settled !== false && x.state in place);
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

function show(event) {
  const x = JSON.parse(event.data);
  byId("events").prepend(line(x.time_ns || x.last_ns, nameOf(event.type, x) + ": " + summaryOf(x)));
  while (byId("events").childElementCount > EVENTS_SHOWN) byId("events").lastElementChild.remove();
  if (event.type !== "finding") refresh();
}
function showDropped(event) {
  byId("events").prepend(element("li", JSON.parse(event.data).events + " events were left out", "bad"));
}

const SHOWN = { finding: show, diagnosis: show, diagnosis_gone: show, job_started: show, job_ended: show,
                dropped: showDropped };
let lastId = "";

// One server-sent event: lines of "field: value".
function receive(text) {
  const event = { type: "message", data: "" };
  for (const part of text.split("\n")) {
    const [, field, value] = /^([^:]*):? ?(.*)$/.exec(part);
    if (field === "event") event.type = value;
    if (field === "id") lastId = value;
    if (field === "data") event.data += value;
  }
  if (event.data && SHOWN[event.type]) SHOWN[event.type](event);
}

// EventSource sends no Authorization header, so the stream is read here.
async function follow() {
  const answer = await ask("v1/events", lastId ? { "Last-Event-ID": lastId } : {});
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  say("live", false);
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    parts.forEach(receive);
  }
}

async function watch() {
  for (;;) {
    let why = "not connected; trying again";
    try {
      await follow();
    } catch (error) {
      if (!(error instanceof TypeError)) why = error.message;
    }
    say(why, true);
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

byId("login").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(TOKEN, byId("token").value.trim());
  byId("token").value = "";
  refresh();
});
window.addEventListener("hashchange", readTokenOfAddress);
readTokenOfAddress();
watch();
refresh();
setInterval(refresh, REFRESH_MS);
