// What a person does about the alerts of a job: acknowledge, silence, repaired. Nothing changes before a button is
// pressed: a link only opens them.
import { items, json } from "./api.js";
import { bdi, h, plain, replace, since, stamp } from "./dom.js";

const BY = "culprit-by";
const DEEDS = [["acknowledge", "Acknowledge", "No reminder is sent any more"],
               ["silence", "Silence for 2 h", "Nothing of this alert is sent but its end"],
               ["repaired", "Repaired", "Closes the alert, and holds nothing against its hosts any more"]];

function stateOf(alert) {
  if (alert.state !== "firing") return ["over ", since(alert.resolved_ns), ": ", alert.end];
  const out = ["fires ", since(alert.since_ns), alert.again ? [", ", bdi(alert.again)] : ""];
  if (alert.acknowledged_by) out.push(", acknowledged by ", bdi(alert.acknowledged_by), " ", since(alert.acknowledged_ns));
  if (alert.silent_until_ns) out.push(", silent until " + stamp(alert.silent_until_ns), alert.silenced_by ? [" by ", bdi(alert.silenced_by)] : "");
  return out;
}

// One alert. `done` gets what it has become.
function row(alert, linked, done) {
  const trouble = h("p", { class: "bad", role: "alert" });
  const firing = alert.state === "firing";
  const by = h("input", { id: "by-" + alert.key, value: sessionStorage.getItem(BY) || "", autocomplete: "name", maxlength: 200 });
  const possible = ([deed]) => deed === "acknowledge" ? !alert.acknowledged_by : deed !== "repaired" || !alert.decision;
  const buttons = DEEDS.filter(possible).map(([deed, label, title]) => {
    const out = h("button", { type: "button", title }, label);
    out.addEventListener("click", async () => {
      sessionStorage.setItem(BY, by.value.trim());
      buttons.forEach((one) => { one.disabled = true; });
      try {
        const body = by.value.trim() ? { by: by.value.trim() } : {};
        done(await json(`v1/alerts/${encodeURIComponent(alert.key)}/${deed}`, { method: "POST", body: JSON.stringify(body) }));
      } catch (error) {
        trouble.textContent = plain(error.message);
        buttons.forEach((one) => { one.disabled = false; });
      }
    });
    return out;
  });
  return h("div", { class: linked ? "alert linked" : "alert", "data-alert": alert.key, tabindex: linked ? "-1" : null },
    h("p", { role: "status" }, h("b", {}, "Alert"), " ", stateOf(alert)),
    alert.decision && h("p", {}, bdi(alert.title), firing && [": ", h("a", { href: "#/recover/" + encodeURIComponent(alert.decision) }, "answer it")]),
    firing && h("div", { class: "actions" }, buttons, h("label", { for: "by-" + alert.key }, "as "), by),
    trouble);
}

// The alerts of a run. `wanted`: the key that a link named: it is shown also when it is over, and has the focus.
export class Alerts {
  constructor(wanted) {
    this.wanted = wanted;
    this.element = h("div", { class: "alerts" });
    this.last = "";
  }

  async refresh(job, run) {
    let found;
    try {
      found = await items("v1/alerts?" + new URLSearchParams({ job, run }));
    } catch {
      return;  // an agent sends none, and some readers may not see them
    }
    this.draw(found.filter((one) => one.state === "firing" || one.key === this.wanted), job, run);
  }

  draw(list, job, run) {
    const text = JSON.stringify(list);
    if (text === this.last) return;
    if (this.last && this.element.contains(document.activeElement) && document.activeElement.matches("input")) return;
    this.last = text;
    replace(this.element, list.map((one) => row(one, one.key === this.wanted, (now) => {
      this.draw(list.map((x) => x.key === now.key ? now : x), job, run);
    })));
    const at = this.focused ? null : this.element.querySelector(".linked");
    if (!at) return;
    this.focused = true;
    at.scrollIntoView({ block: "nearest" });
    (at.querySelector("button") || at).focus({ preventScroll: true });
  }
}
