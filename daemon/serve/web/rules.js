// The rules, and what people said of what each found.
import { items } from "./api.js";
import { counted, firstOf, h, name, number, plain, replace, table } from "./dom.js";

const ROWS = 100;

function record(x) {
  const said = x.record;
  if (!said || !said.hits) return "";
  const bar = h("span", { class: "score" }, `${number(said.right)} of ${number(said.hits)}`);
  bar.style.setProperty("--score", Math.round(100 * said.right / said.hits) + "%");
  return bar;
}

export function rulesView(main) {
  const search = h("input", { type: "search", placeholder: "Search rules", "aria-label": "Search rules" });
  const title = h("h1", {}, "Rules"), list = h("div", {});
  replace(main, title, h("p", { class: "soft" }, "A person's word on a diagnosis, from its job's page, counts for the record of its rule."),
          h("div", { class: "tools" }, search), list);
  let rules = [], last = "";

  function draw() {
    const words = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const some = rules.filter((x) => words.every((w) => plain([x.id, x.title, x.category, x.component, x.symptom].join(" ")).toLowerCase().includes(w)));
    some.sort((a, b) => (b.record?.hits || 0) - (a.record?.hits || 0));
    title.textContent = counted(some.length, "rule");
    replace(list, firstOf(some, ROWS, (rows) => table(["Rule", "Says", "Kind", "Action", "Record", "From"], rows.map((x) => [
      h("code", {}, name(x.id)), h("span", { class: x.enabled === false ? "gone" : "" }, x.title, x.enabled === false ? " (off)" : ""),
      [x.category, x.component, x.symptom].filter((one) => one && one !== "unknown" && one !== "other").join(" · "), plain(x.action === "none" ? "" : x.action),
      record(x), h("span", { class: "soft mono" }, name(x.file) + (x.line ? ":" + x.line : ""))]), "cards")));
  }

  search.addEventListener("input", draw);
  document.title = "Rules – Culprit";
  return {
    refresh: async () => {
      const found = await items("v1/rules"), text = JSON.stringify(found);
      if (text === last) return;
      last = text;
      rules = found;
      draw();
    },
  };
}
