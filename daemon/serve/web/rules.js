// The rules, and what people said of what each found. One of them opens: what it looks for, its remedy, its tests.
import { items, json } from "./api.js";
import { bdi, command, counted, firstOf, h, name, number, plain, quoted, replace, section, table } from "./dom.js";

const ROWS = 100;
const known = (words) => words.filter((one) => one && one !== "unknown" && one !== "other" && one !== "none").join(" · ");

function record(x) {
  const said = x.record;
  if (!said || !said.hits) return "";
  const bar = h("span", { class: "score" }, `${number(said.right)} of ${number(said.hits)}`);
  bar.style.setProperty("--score", Math.round(100 * said.right / said.hits) + "%");
  return bar;
}

function lines(title, list) {
  return list.length ? [h("h3", {}, title), h("pre", {}, list.map(plain).join("\n"))] : null;
}

function wholeRule(x) {
  const { hit, miss } = x.examples, w = x.window;
  return section(["Rule ", bdi(x.id)], h("p", {}, x.title, x.enabled ? "" : " (off)"),
    h("p", { class: "soft" }, known([x.category, x.component, x.severity, x.symptom, x.role, x.action])),
    x.remedy && h("p", {}, h("b", {}, "Remedy: "), x.remedy),
    lines("It looks for", [...x.match.template, ...x.match.regex]), lines("But not for", x.match.except),
    x.source.length ? h("p", { class: "soft" }, "In: " + x.source.join(", ") + (x.when ? "; a function has to agree" : "")) : null,
    w ? h("p", { class: "soft" }, `At least ${number(w.at_least)} within ${number(w.span_ns / 1e9)} s of one ${w.by}`) : null,
    h("h3", {}, `Tested on ${counted(hit.length, "line")} that it has to find and ${counted(miss.length, "line")} that it must not`),
    h("details", {}, h("summary", {}, "These lines"), lines("Found", hit), lines("Not found", miss)),
    h("p", { class: "soft mono" }, name(x.file) + ":" + x.line), command(`culprit rules explain ${quoted(x.id)}`));
}

export function rulesView(main, at) {
  const search = h("input", { type: "search", placeholder: "Search rules", "aria-label": "Search rules" });
  const title = h("h1", {}, "Rules"), opened = h("div", { "aria-live": "polite" }), list = h("div", {});
  replace(main, title, h("p", { class: "soft" }, "A person's word on a diagnosis, from its job's page, counts for the record of its rule."),
          opened, h("div", { class: "tools" }, search), list);
  let rules = [], last = "", asked = "";

  async function open(id) {
    asked = id;
    history.replaceState(null, "", "#/rules/" + encodeURIComponent(id));
    document.title = name(id) + " – Culprit";
    let shown;
    try {
      shown = wholeRule(await json("v1/rules/" + encodeURIComponent(id)));
    } catch (error) {
      shown = h("p", { class: "bad", role: "alert" }, error.message);
    }
    if (asked !== id) return;
    replace(opened, shown);
    opened.scrollIntoView({ block: "nearest" });
  }

  function opener(x) {
    const link = h("a", { href: "#/rules/" + encodeURIComponent(x.id) }, h("code", {}, name(x.id)));
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      open(x.id);
    });
    return h("span", { "data-row": "" }, link);
  }

  function draw() {
    const words = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const some = rules.filter((x) => words.every((w) => plain([x.id, x.title, x.category, x.component, x.symptom].join(" ")).toLowerCase().includes(w)));
    some.sort((a, b) => (b.record?.hits || 0) - (a.record?.hits || 0) || (a.id < b.id ? -1 : 1));
    title.textContent = counted(some.length, "rule");
    replace(list, firstOf(some, ROWS, (rows) => table(["Rule", "Says", "Kind", "Action", "Record", "From"], rows.map((x) => [
      opener(x), h("span", { class: x.enabled === false ? "gone" : "" }, x.title, x.enabled === false ? " (off)" : ""),
      known([x.category, x.component, x.symptom]), plain(x.action === "none" ? "" : x.action),
      record(x), h("span", { class: "soft mono" }, name(x.file) + (x.line ? ":" + x.line : ""))]), "cards")));
  }

  search.addEventListener("input", draw);
  document.title = "Rules – Culprit";
  if (at.name) open(at.name);
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
