// Hosts and devices: who is suspected and why, and how each agent is.
import { items, json, post } from "./api.js";
import { bdi, bytes, counted, firstOf, h, jobLink, name, number, percent, plain, replace, section, since, span, table } from "./dom.js";
import { showHealth } from "./health.js";
import { scoreBar } from "./parts.js";

const ROWS = 16;  // the others on demand
const GONE = ["withdrawn", "refuted"];

function agent(x) {
  const out = [];
  if (x.connected === false) out.push(x.left ? "gone: " + plain(x.left) : "not connected");
  if (x.trouble) out.push(plain(x.trouble));
  if (x.lag_ns > 5e9) out.push(span(x.lag_ns / 1e9) + " behind");
  if (x.lag_frames > 0 && x.lag_ns === null) out.push(counted(x.lag_frames, "frame") + " behind");
  if (x.lag_bytes > 0) out.push(bytes(x.lag_bytes) + " unread");
  if (x.dropped_bytes > 0) out.push(bytes(x.dropped_bytes) + " lost");
  if (Math.abs(x.clock_ahead_ns || 0) > 1e9) out.push(`clock ${span(x.clock_ahead_ns / 1e9)} ${x.clock_ahead_ns > 0 ? "ahead" : "behind"}`);
  return out.join(", ");
}

// A host that is gone does not stand before one that has a trouble.
function order(x) {
  if (x.suspected) return 0;
  if (x.standing === "odd") return 1;
  return { unhealthy: 2, healthy: 4 }[x.state] ?? 3;
}

const STATES = { healthy: "good", unhealthy: "bad" };
const byName = new Intl.Collator("en", { numeric: true });

export function hostsView(main, at) {
  const search = h("input", { type: "search", placeholder: "Search hosts", "aria-label": "Search hosts", value: at.name });
  const title = h("h1", {}, "Hosts"), list = h("div", {}), health = h("div", {}), past = h("div", {}), devices = h("div", {});
  replace(main, title, h("div", { class: "tools" }, search), health, past, list, devices);
  let hosts = [], last = "", shownPast = "";

  function row(x) {
    const history = h("button", { type: "button", class: "link", "aria-label": "History of " + name(x.host) }, bdi(x.host));
    history.addEventListener("click", () => showPast(x.host));
    const reason = x.suspected
      ? h("div", {}, bdi(x.reason || ""), x.job ? [" in ", h("a", { href: jobLink(x.job) }, bdi(x.job))] : "") : "";
    return [h("span", { "data-row": "" }, history), x.suspected ? scoreBar(x.score) : "", reason,
            h("span", { class: "state " + (STATES[x.state] || "soft") }, plain(x.state)),
            agent(x), since(x.last_ns), plain(x.version)];
  }

  function draw() {
    const words = search.value.trim().toLowerCase();
    const some = hosts.filter((x) => !words || plain(x.host + " " + (x.reason || "") + " " + x.state).toLowerCase().includes(words));
    const suspects = hosts.filter((x) => x.suspected).length, silent = hosts.filter((x) => x.state === "silent" || x.state === "unhealthy").length;
    title.textContent = suspects ? `${counted(suspects, "host")} suspected` : "No host is suspected";
    title.className = suspects ? "alarm" : "";
    replace(list, h("p", { class: "soft" }, counted(hosts.length, "host"), silent ? `, ${silent} of them silent or unhealthy` : ""),
            some.length ? firstOf(some.sort((a, b) => order(a) - order(b) || (b.score || 0) - (a.score || 0) || byName.compare(a.host, b.host)), ROWS,
              (rows) => table(["Host", "Score", "Suspected of", "State", "Agent", "Heard", "Version"], rows.map(row), "cards")) :
              h("p", { class: "soft" }, "No host is like this."));
  }

  // The plugins of this daemon's own host; null: of another one, or of one whose plugins this reader may not see.
  async function ownPlugins(host) {
    const status = await json("v1/status").catch(() => ({}));
    return status.host === host ? items("v1/plugins").catch(() => null) : null;
  }

  // What verdicts said of a host over jobs.
  async function showPast(host) {
    shownPast = host;
    window.history.replaceState(null, "", "#/hosts/" + encodeURIComponent(host));
    document.title = name(host) + " – Culprit";
    const plugins = await ownPlugins(host);
    if (shownPast !== host) return;
    showHealth(health, host, plugins).catch((error) => replace(health, h("p", { class: "bad" }, error.message)));
    replace(past, h("p", { class: "soft" }, "reading the history of ", bdi(host)));
    const all = (await items("v1/diagnoses")).filter((d) => d.settled !== false && d.hosts.some((p) => p.host === host));
    if (shownPast !== host) return;
    const line = (d) => [since(d.last_ns), h("a", { href: jobLink(d.job, d.run) }, bdi(d.job)), bdi(d.title),
                         scoreBar(d.hosts.find((p) => p.host === host).score), d.verdict ? percent(d.confidence) : "no verdict", plain(d.state)];
    const columns = ["Last", "Job", "Diagnosis", "Score", "Verdict", "State"];
    const stand = all.filter((d) => !GONE.includes(d.state)), gone = all.filter((d) => GONE.includes(d.state));
    const clear = h("button", { type: "button" }, "It was repaired");
    clear.addEventListener("click", async () => {
      if (!confirm(`Was ${name(host)} repaired? What was held against it until now counts no more.`)) return;
      try {
        await post(`v1/hosts/${encodeURIComponent(host)}/clear`);
        refresh(true);
        showPast(host);
      } catch (error) {
        past.append(h("p", { class: "bad", role: "alert" }, error.message));
      }
    });
    replace(past, section(["History of ", bdi(host)],
      stand.length ? table(columns, stand.map(line), "cards") : h("p", { class: "soft" }, "Nothing is held against it."),
      gone.length ? h("details", { class: "past" }, h("summary", {}, `${number(gone.length)} withdrawn or refuted`), table(columns, gone.map(line), "cards")) : null,
      stand.length ? h("div", { class: "actions" }, clear) : null));
  }

  function drawDevices(rows) {
    if (!rows.length) return replace(devices);
    replace(devices, section("Devices suspected of wrong numbers", firstOf(rows, 50, (some) =>
      table(["Device", "Host", "Job", "Step", "When"], some.map((x) => [h("code", {}, name(x.device)), bdi(x.host),
        h("a", { href: jobLink(x.job, x.run) }, bdi(x.job)), number(x.step), since(x.time_ns)]), "cards"))));
  }

  async function refresh(force) {
    const [found, faults] = await Promise.all([items("v1/hosts"), items("v1/devices")]);
    const text = JSON.stringify([found.map((x) => ({ ...x, last_ns: 0 })), faults]);
    if (text === last && force !== true) return;
    last = text;
    hosts = found;
    draw();
    drawDevices(faults);
  }

  search.addEventListener("input", draw);
  document.title = "Hosts – Culprit";
  if (at.name) showPast(at.name).catch((error) => replace(past, h("p", { class: "bad" }, error.message)));
  return { refresh };
}
