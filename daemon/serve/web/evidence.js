// The evidence of a diagnosis, and lines of a source. `site`: as in parts.js.
import { bdi, firstOf, h, name, number, plain, replace, stamp } from "./dom.js";

const FIRST = 8;  // of a list; the others on demand

function evidenceItem(site, e) {
  const at = e.line ? `${e.file}:${e.line}` : e.file, href = e.line ? site.lineHref(e) : null;
  const when = typeof e.time_ns === "number" ? h("time", { datetime: new Date(e.time_ns / 1e6).toISOString() }, stamp(e.time_ns)) : null;
  const head = h("div", { class: "at" }, when, when && " ", href ? h("a", { href }, bdi(at)) : bdi(at), " ",
    h("span", { class: "soft" }, [e.host && name(e.host), e.uid !== undefined && "uid " + e.uid, e.pod && "pod:" + e.pod].filter(Boolean).join(", ")));
  const out = h("li", {}, head, h("pre", {}, plain(e.text)));
  const context = h("div", {}), open = h("button", { type: "button", class: "quiet", "aria-expanded": "false" }, "Lines around it");
  open.addEventListener("click", () => {
    const shown = open.getAttribute("aria-expanded") === "true";
    open.setAttribute("aria-expanded", String(!shown));
    open.textContent = shown ? "Lines around it" : "Only this line";
    shown ? replace(context) : site.around(context, e);
  });
  if (href) out.append(open, context);
  else if (e.file) out.append(site.source(e));
  return out;
}

export function evidence(site, d) {
  if (!d.evidence?.length) return h("p", { class: "soft" }, "No log line: this comes from timing or numbers.");
  return firstOf(d.evidence, FIRST, (list) => h("ol", { class: "evidence" }, list.map((e) => evidenceItem(site, e))));
}

// Lines with their numbers. `got`: as /v1/evidence/lines answers; `here`: numbers of the lines that are meant; `id`:
// of a line's element, by its number.
export function numbered(got, here = [got.line], id = () => null) {
  return h("ol", { class: "lines" }, got.lines.map((text, i) => {
    const n = got.first + i, meant = here.includes(n);
    const cut = got.cut[i] ? h("i", {}, ` … ${number(got.cut[i])} bytes more`) : null;
    return h("li", { class: meant ? "here" : "", "aria-current": meant ? "true" : null, id: id(n) },
             h("span", { class: "n" }, number(n)), h("code", {}, plain(text.replace(/\r$/, "")), cut));
  }));
}
