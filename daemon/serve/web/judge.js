// A person's word on a diagnosis: confirm or refute, with what confirm would write shown before.
import { json, post } from "./api.js";
import { command, h, plain, quoted, replace } from "./dom.js";

const BY = "culprit-by";

function path(job, run, id, word) {
  return `v1/jobs/${encodeURIComponent(job)}/diagnoses/${encodeURIComponent(id)}/${word}?run=${run}`;
}

const PROPOSED = ["category", "component"];  // by the diagnosis
const TEXTS = ["title", "cause", "remedy", ...PROPOSED];  // what a person may say better than the evidence

// The rule that a confirmation would make, shown before it is written.
class RuleForm {
  constructor(job, run, d) {
    this.to = path(job, run, d.id, "rule");
    this.texts = TEXTS.map((name) => h("input", { id: "judge-" + name, autocomplete: "off", maxlength: 2000, value: PROPOSED.includes(name) && d[name] || "" }));
    this.shown = h("div", { "aria-live": "polite" });
    const again = h("button", { type: "button" }, "Show the rule");
    again.addEventListener("click", () => this.make(true));
    this.write = h("button", { type: "button", disabled: "" }, "Confirm and write the rule");
    this.box = h("details", {}, h("summary", {}, "Make a rule of it, so that the next job with this fault is answered at once"),
      TEXTS.map((name, i) => [h("label", { for: "judge-" + name }, name[0].toUpperCase() + name.slice(1) + " "), this.texts[i]]),
      h("div", { class: "actions" }, again, this.write), this.shown,
      h("p", {}, "The same on the command line:"), command(`culprit confirm ${quoted(job)} ${quoted(d.id)}`));
    this.box.addEventListener("toggle", () => this.box.open && !this.shown.textContent && this.make(true));
  }

  // True if the rule was written and loaded.
  async make(dry) {
    this.write.disabled = true;
    replace(this.shown, h("p", { class: "soft" }, dry ? "Making the rule…" : "Writing the rule…"));
    const body = {};
    TEXTS.forEach((name, i) => { if (this.texts[i].value.trim()) body[name] = this.texts[i].value.trim(); });
    try {
      const rule = await json(this.to + "&dry=" + (dry ? 1 : 0), { method: "POST", body: JSON.stringify(body) });
      replace(this.shown, h("ul", {}, rule.notes.map((one) => h("li", {}, plain(one)))),
        h("p", {}, rule.file ? ["It belongs into ", h("code", {}, plain(rule.file)), "."] : "No folder of rules can be written to."),
        h("pre", {}, plain(rule.text)));
      this.write.disabled = rule.loaded || !rule.file;
      return rule.loaded;
    } catch (error) {
      replace(this.shown, h("p", { class: "bad", role: "alert" }, plain(error.message)));
      return false;
    }
  }
}

// Asks, and calls `done` when the daemon has it.
export function judge(job, run, d, right, done) {
  const by = h("input", { id: "judge-by", value: sessionStorage.getItem(BY) || "", autocomplete: "off", maxlength: 200 });
  const rule = right && !d.rule ? new RuleForm(job, run, d) : null;
  const trouble = h("p", { class: "bad", role: "alert" });
  const go = h("button", { class: "main" }, right ? "Confirm" : "Refute");
  const no = h("button", { type: "button" }, "Cancel");
  const form = h("form", { method: "dialog" },
    h("h2", { id: "judge-title" }, right ? "Was this the cause?" : "Was this not the cause?"),
    h("p", {}, d.title),
    h("p", { class: "soft" }, right
      ? "It counts for the record of its rule or detector. The job keeps this verdict."
      : "It is no verdict any more, its hosts are no suspects on its account, and its record gets a miss."),
    rule && rule.box,
    h("label", { for: "judge-by" }, "Your name "), by, trouble,
    h("div", { class: "actions" }, go, no));
  const dialog = h("dialog", { "aria-labelledby": "judge-title" }, form);
  no.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    sessionStorage.setItem(BY, by.value.trim());
    go.disabled = true;
    try {
      await post(path(job, run, d.id, right ? "confirm" : "refute"), by.value.trim());
      dialog.close();
      done();
    } catch (error) {
      trouble.textContent = plain(error.message);
      go.disabled = false;
    }
  });
  rule?.write.addEventListener("click", async () => {
    if (!await rule.make(false)) return;
    dialog.close();
    done();
  });
  document.body.append(dialog);
  dialog.showModal();
}
