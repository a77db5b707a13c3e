#include "cli/sweep_page.h"

#include <fmt/format.h>

#include "base/text.h"
#include "cli/sweep_matrix.h"
#include "cli/sweep_text.h"

namespace culprit::cli {
namespace {

using app::sweeping::SweepResult;

// Colours by the sign too, for people who see no difference of red.
constexpr const char* kSweepHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>culprit sweep</title>
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 1.5rem; }
h1 { font-size: 1.2rem; } p { margin: .3rem 0; max-width: 60rem; }
.found { font-weight: 600; } .what { opacity: .75; }
table { border-collapse: collapse; font: 13px/1.2 ui-monospace, monospace; margin: 1rem 0; }
td, th { padding: .15rem .4rem; text-align: right; font-weight: 400; }
th[scope=row] { text-align: left; }
.alarm { background: #b3261e; color: #fff; } .caution { background: #f2c14e; color: #000; } .dim { opacity: .5; }
</style></head><body>
)";

const char* ink_class(Ink ink) {
  switch (ink) {
    case Ink::kAlarm:
      return " class=\"alarm\"";
    case Ink::kCaution:
      return " class=\"caution\"";
    case Ink::kDim:
      return " class=\"dim\"";
    default:
      return "";
  }
}

std::string html_name(const SweepResult& r, uint32_t member) {
  return to_html(r.members[r.ranks[member]].host);
}

std::string matrix_html(const SweepResult& r) {
  const SweepMatrix matrix(r);
  if (matrix.rows().empty()) return {};
  std::string out = fmt::format("<table><caption>{}</caption>\n<tr><td></td>", to_html(matrix.legend()));
  for (uint32_t j = 0; j < r.ranks.size(); ++j)
    out += fmt::format("<th scope=\"col\" title=\"{}\">#{}</th>", html_name(r, j), r.ranks[j]);
  out += "</tr>\n";
  for (const uint32_t i : matrix.rows()) {
    out += fmt::format("<tr><th scope=\"row\">{}</th>", html_name(r, i));
    for (uint32_t j = 0; j < r.ranks.size(); ++j) {
      const SweepCell cell = matrix.cell(i, j);
      out += fmt::format("<td{} title=\"{} to {}\">{}</td>", ink_class(cell.ink), html_name(r, i),
                         html_name(r, j), to_html(cell.text));
    }
    out += "</tr>\n";
  }
  return out + "</table>\n";
}

}  // namespace

std::string sweep_page(const SweepResult& r) {
  std::string out = kSweepHead;
  out += fmt::format("<h1>culprit sweep: {}</h1>\n", r.verdict.findings.empty()
                                                         ? "nothing found"
                                                         : counted(r.verdict.findings.size(), "finding"));
  for (const sweep::SweepFinding& f : r.verdict.findings)
    out += fmt::format("<p><span class=\"found\">{}</span><br><span class=\"what\">{}</span></p>\n",
                       to_html(sweep_sentence(r, f)), to_html(sweep_advice(f)));
  if (const std::string hosts = sweep_excluded(r); !hosts.empty())
    out += fmt::format("<p><code>sbatch --exclude={}</code></p>\n", to_html(hosts));
  for (const std::string& note : sweep_notes(r)) out += fmt::format("<p>{}</p>\n", to_html(note));
  return out + matrix_html(r) + "</body></html>\n";
}

}  // namespace culprit::cli
