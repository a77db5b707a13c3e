#include "cli/text_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "cli/narrative.h"
#include "cli/step_view.h"

namespace culprit::cli {
namespace {

constexpr size_t kTextSpells = 5, kLinks = 6, kTextRanks = 12;
constexpr size_t kNameColumns = 26;  // columns for a rank and its host before its row
constexpr size_t kTextSuspects = 3;

class StepText {
 public:
  StepText(const Report& report, size_t width) : r_(report), width_(width) {}

  std::vector<TextRow> run() {
    spells();
    if (!r_.irregularities.empty()) chain(worst());
    const size_t room = width_ > kNameColumns + 10 ? width_ - kNameColumns : 10;
    const std::vector<StepBin> bins = bin_steps(r_, room);
    if (bins.size() > 1) {
      curve(bins);
      heat(bins);
    }
    return std::move(rows_);
  }

 private:
  void add(std::string text, Ink ink = Ink::kPlain) { rows_.push_back({std::move(text), ink}); }

  // The total cost of a period of slow steps.
  static double cost(const Irregularity& x) {
    return x.cost_ms * static_cast<double>(x.last_step - x.first_step + 1);
  }
  const Irregularity& worst() const {
    return *std::max_element(r_.irregularities.begin(), r_.irregularities.end(),
                             [](const Irregularity& a, const Irregularity& b) { return cost(a) < cost(b); });
  }

  static std::string who(const Irregularity& x) {
    std::vector<std::string> parts;
    for (size_t i = 0; i < std::min(x.suspects.size(), kTextSuspects); ++i)
      parts.push_back(rank_place(x.suspects[i]));
    if (x.suspects.size() > kTextSuspects)
      parts.push_back(fmt::format("{} more", x.suspects.size() - kTextSuspects));
    if (!x.links.empty()) parts.push_back(fmt::format("link {} - {}", x.links[0].a, x.links[0].b));
    return parts.empty() ? "no single rank or link" : fmt::format("{}", fmt::join(parts, ", "));
  }

  // The most expensive periods of slow steps, in the order of steps.
  void spells() {
    if (r_.irregularities.empty()) return;
    std::vector<const Irregularity*> shown;
    for (const Irregularity& x : r_.irregularities) shown.push_back(&x);
    std::stable_sort(shown.begin(), shown.end(),
                     [](const Irregularity* a, const Irregularity* b) { return cost(*a) > cost(*b); });
    if (shown.size() > kTextSpells) shown.resize(kTextSpells);
    std::sort(shown.begin(), shown.end(),
              [](const Irregularity* a, const Irregularity* b) { return a->first_step < b->first_step; });
    add(fmt::format("  {:<18} {:>7} {:>11}  {:<7} {}", "when", "slower", "a step", "kind", "suspects"),
        Ink::kDim);
    for (const Irregularity* x : shown) {
      const std::string steps = x->first_step == x->last_step
                                    ? fmt::format("step {}", x->first_step)
                                    : fmt::format("steps {}-{}", x->first_step, x->last_step);
      add(fmt::format("  {:<18} {:>6.2f}x {:>11}  {:<7} {}", steps, x->slowdown,
                      "+" + milliseconds(x->cost_ms), to_string(x->kind), who(*x)));
    }
    if (r_.irregularities.size() > shown.size())
      add(fmt::format("  and {} more", counted(r_.irregularities.size() - shown.size(), "spell")), Ink::kDim);
    for (const std::string& sentence : watch_sentences(r_)) add("  " + sentence);
  }

  void chain(const Irregularity& x) {
    const std::vector<std::string> links = chain_sentences(x);
    if (links.empty()) return;
    add("");
    add(fmt::format("  Who waited for whom, step {}:", x.first_step), Ink::kDim);
    // The last links are closest to the culprit, so earlier links are left out.
    const size_t skipped = links.size() > kLinks ? links.size() - kLinks : 0;
    if (skipped) add(fmt::format("    ({} before)", counted(skipped, "rank")), Ink::kDim);
    for (size_t i = skipped; i < links.size(); ++i)
      add(std::string(4 + 2 * (i - skipped), ' ') + (i > skipped ? "└ " : "") + links[i]);
  }

  void curve(const std::vector<StepBin>& bins) {
    static constexpr std::array<const char*, 8> kBars{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    double most = 0, least = INFINITY;
    for (const StepBin& b : bins) most = std::max(most, b.step_ms), least = std::min(least, b.step_ms);
    if (most <= 0) return;
    // The scale starts at zero, so twice the time is twice the height.
    std::string line, marks;
    bool any = false;
    for (const StepBin& b : bins) {
      line += kBars[static_cast<size_t>(std::clamp(b.step_ms / most * 8 - 0.5, 0.0, 7.0))];
      marks += b.slow ? '^' : ' ';
      any = any || b.slow;
    }
    add("");
    add(named(fmt::format("{} to {}", milliseconds(least), milliseconds(most))) + line);
    if (any) add(named("slow steps") + marks, Ink::kCaution);
    const std::string first = fmt::format("{}", r_.comm.steps.front());
    const std::string last = fmt::format("{}", r_.comm.steps.back());
    const size_t between =
        bins.size() > first.size() + last.size() ? bins.size() - first.size() - last.size() : 1;
    add(named("step") + first + std::string(between, ' ') + last, Ink::kDim);
  }

  static std::string named(const std::string& name) {
    const std::string text = shorten_around(name, 0, kNameColumns - 4);
    return "  " + padded(text, kNameColumns - 4) + "  ";
  }

  void heat(const std::vector<StepBin>& bins) {
    static constexpr std::array<const char*, 5> kShades{" ", "░", "▒", "▓", "█"};
    const std::vector<HeatRow> rows = heat_rows(r_, bins, kTextRanks);
    const double most = most_excess(rows);
    if (most <= 0) return;
    add("");
    add("  Time of their own beyond that of their peers:", Ink::kDim);
    for (const HeatRow& row : rows) {
      std::string line;
      for (const double ms : row.excess_ms)
        line += std::isnan(ms) ? "·" : kShades[static_cast<size_t>(shade(ms, most))];
      std::string name = fmt::format("{}rank {}", row.suspect ? "* " : "  ", row.row->rank);
      if (row.row->host) name += " " + *row.row->host;
      add(named(name) + line, row.suspect ? Ink::kBold : Ink::kPlain);
    }
    add(fmt::format("  ░ from {}, ▒ {}, ▓ {}, █ {}; · not seen{}", milliseconds(most * 0.05),
                    milliseconds(most * 0.25), milliseconds(most * 0.5), milliseconds(most * 0.75),
                    std::any_of(rows.begin(), rows.end(), [](const HeatRow& x) { return x.suspect; })
                        ? "; * suspect"
                        : ""),
        Ink::kDim);
    if (r_.comm.ranks > rows.size())
      add(fmt::format("  {} of {}: those with most", rows.size(), counted(r_.comm.ranks, "rank")), Ink::kDim);
  }

  const Report& r_;
  size_t width_;
  std::vector<TextRow> rows_;
};

}  // namespace

std::vector<TextRow> step_rows(const Report& report, size_t width) { return StepText(report, width).run(); }

}  // namespace culprit::cli
