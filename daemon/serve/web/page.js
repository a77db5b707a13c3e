// Which view is shown, the connection, the keys. A view is a function (main, place) => { refresh, event, search,
// rows, close }, each of these optional.
import { Events, logIn, token, whenDenied } from "./api.js";
import { showMembers } from "./cluster.js";
import { h, plain, replace } from "./dom.js";
import { nowView } from "./now.js";

const byId = (id) => document.getElementById(id);
const main = byId("main");
const REFRESH_MS = 15000;
const MEMBERS_MS = 14000;
const BURST_MS = 300;  // events that come together cause one refresh
const LATER = {
  jobs: async () => (await import("./job.js")).jobView,
  lines: async () => (await import("./lines.js")).linesView,
  hosts: async () => (await import("./hosts.js")).hostsView,
  compare: async () => (await import("./compare.js")).compareView,
  rules: async () => (await import("./rules.js")).rulesView,
  recover: async () => (await import("./recover.js")).recoverView,
};

let view = {}, events = null, followed = null, due = null, key = "", shown = 0;

function say(sentence, bad) {
  byId("state").textContent = plain(sentence);
  byId("state").className = bad ? "bad" : "good";
}

// "#/jobs/ID?run=2" is { view: "jobs", name: "ID", query }.
function readPlace() {
  const given = new URLSearchParams(location.hash.slice(1));
  if (given.get("token")) {
    token.set(given.get("token"));
    history.replaceState(null, "", location.pathname + location.search);
  }
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const parts = path.split("/");
  let name = "";
  try {
    name = decodeURIComponent(parts.slice(1).join("/"));
  } catch { /* no name */ }
  return { view: parts[0] in LATER ? parts[0] : "now", name, query: new URLSearchParams(query || "") };
}

// On a job's view the events of the job, with those that the daemon keeps; else those of all jobs from now on, until
// a view asks for those before.
function follow(job, backlog = Boolean(job)) {
  if (events && followed === job && !(backlog && !job)) return;
  events?.stop();
  followed = job;
  let linked = true;
  events = new Events({
    job, backlog, pauses: Boolean(job),
    onState: (live, why) => {
      say(why, !live);
      if (live && !linked) refreshSoon();  // it may have missed more than the daemon keeps
      linked = live;
    },
    onEvent: (type, x) => {
      view.event?.(type, x);
      if (type !== "finding") refreshSoon();
    },
  });
}

function refreshSoon() {
  due ??= setTimeout(refresh, BURST_MS);
}

// One at a time for a view: what comes meanwhile causes one more.
async function refresh() {
  clearTimeout(due);
  due = null;
  if (document.hidden && followed) return;  // but Now says in its tab's title what it finds
  const asking = view;
  if (asking.asked) return asking.again = true;
  asking.asked = true;
  try {
    if (asking.refresh) refreshMembers();
    await asking.refresh?.();
    if (asking.refresh) byId("login").hidden = true;
  } catch (error) {
    say(error.message, true);
  }
  asking.asked = false;
  if (asking.again) refreshSoon();
  asking.again = false;
}

// "#once=CODE" of `culprit page` becomes a session; "&at=" says what to show then. The code leaves the address before
// it is used.
async function useLink() {
  const given = new URLSearchParams(location.hash.slice(1)), code = given.get("once");
  if (!code) return;
  history.replaceState(null, "", location.pathname + location.search + "#/" + (given.get("at") || ""));
  try {
    await logIn(code);
    followed = undefined;
    byId("login").hidden = true;
  } catch (error) {
    byId("login").hidden = false;
    say(error.message, true);
    throw error;
  }
}

let membersShown = 0;
// A member that was taken up or lost is noticed within some rounds; requests cost the daemon little.
function refreshMembers() {
  if (document.hidden || Date.now() - membersShown < MEMBERS_MS) return;
  membersShown = Date.now();
  showMembers(byId("members"));
}

async function show() {
  try {
    await useLink();
  } catch {
    if (!token.get()) return;  // a session of before is as good
  }
  const place = readPlace(), turn = ++shown;
  for (const link of document.querySelectorAll("nav a")) {
    const here = link.dataset.view === (place.view === "now" ? "now" : place.view);
    here ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
  }
  view.close?.();
  view = {};
  document.title = "Culprit";
  try {
    const open = place.view === "now" ? nowView : await LATER[place.view]();
    if (turn !== shown) return;
    replace(main);
    window.scrollTo(0, 0);
    view = open(main, { ...place, backlog: () => follow(null, true) });
    follow(place.view === "jobs" ? place.name : null);
    await refresh();
    if (place.view === "now") setTimeout(() => LATER.jobs().catch(() => {}), 1000);  // what is opened next
  } catch (error) {
    if (turn === shown) replace(main, h("p", { class: "bad" }, error.message));
  }
}

// ---- keys

function rows() {
  return [...main.querySelectorAll("[data-row]")].filter((row) => row.checkVisibility?.() ?? true);
}

function step(by) {
  const all = rows();
  if (!all.length) return;
  const at = all.findIndex((row) => row.contains(document.activeElement));
  const next = all[Math.max(0, Math.min(all.length - 1, at < 0 ? 0 : at + by))];
  (next.matches("a, button") ? next : next.querySelector("a, button") || next).focus();
  next.scrollIntoView({ block: "nearest" });
}

const GO = { n: "#/", h: "#/hosts", r: "#/rules", c: "#/recover" };

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
  const typing = event.target.matches("input, textarea, select");
  if (event.key === "Escape") {
    if (typing) return event.target.blur();
    if (!document.querySelector("dialog[open]") && location.hash.startsWith("#/jobs")) location.hash = "#/";
    return;
  }
  if (typing || document.querySelector("dialog[open]")) return;
  const before = key;
  key = event.key;
  if (before === "g" && GO[event.key]) location.hash = GO[event.key];
  else if (event.key === "j" || event.key === "k") step(event.key === "j" ? 1 : -1);
  else if (event.key === "/") main.querySelector("input[type=search]")?.focus();
  else if (event.key === "?") byId("help").showModal();
  else return;
  event.preventDefault();
}

byId("login").addEventListener("submit", (event) => {
  event.preventDefault();
  token.set(byId("token").value.trim());
  byId("token").value = "";
  followed = undefined;
  show();
});
byId("help-open").addEventListener("click", () => byId("help").showModal());
whenDenied((why) => {
  byId("login").hidden = false;
  say(why, true);
});
document.addEventListener("keydown", onKey);
document.addEventListener("visibilitychange", refreshSoon);
window.addEventListener("hashchange", show);
setInterval(refresh, REFRESH_MS);
show();
