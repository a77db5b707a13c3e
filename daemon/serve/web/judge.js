// A person's word on a diagnosis: confirm or refute, with what confirm would write shown before.
import { json, post } from "./api.js";
import { command, h, plain, quoted, replace } from "./dom.js";

const BY = "culprit-by";

function path(job, run, id, word) {
  return `v1/jobs/${encodeURIComponent(job)}/diagnoses/${encodeURIComponent(id)}/${word}?run=${run}`;
}

// A daemon without dry runs refuses the unknown parameter: then nothing is shown, and nothing was judged.
async function preview(to, job, run, id) {
  try {
    const got = await json(path(job, run, id, "confirm") + "&dry=1", { method: "POST", body: "" });
    const rule = got.text || got.rule?.text || got.rule;
    if (typeof rule === "string") replace(to, h("p", {}, "The rule that would be written:"), h("pre", {}, rule));
  } catch { /* the command alone */ }
}

// Asks, and calls `done` when the daemon has it.
export function judge(job, run, d, right, done) {
  const by = h("input", { id: "judge-by", value: sessionStorage.getItem(BY) || "", autocomplete: "off", maxlength: 200 });
  const rule = h("div", {}), trouble = h("p", { class: "bad", role: "alert" });
  const go = h("button", { class: "main" }, right ? "Confirm" : "Refute");
  const no = h("button", { type: "button" }, "Cancel");
  const form = h("form", { method: "dialog" },
    h("h2", { id: "judge-title" }, right ? "Was this the cause?" : "Was this not the cause?"),
    h("p", {}, d.title),
    h("p", { class: "soft" }, right
      ? "It counts for the record of its rule or detector. The job keeps this verdict."
      : "It is no verdict any more, its hosts are no suspects on its account, and its record gets a miss."),
    right && [rule, h("p", {}, "A rule for the next time is made of it by"),
              command(`culprit confirm ${quoted(job)} ${quoted(d.id)}`)],
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
  document.body.append(dialog);
  dialog.showModal();
  if (right) preview(rule, job, run, d.id);
}
