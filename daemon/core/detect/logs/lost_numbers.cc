#include "core/detect/logs/lost_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace culprit::detect {
namespace {

using logs::Course;
using logs::NumberLine;
using logs::NumberPlace;
using logs::WriterNumbers;

// Number of consecutive lines that make a spell certain: one line may be a skipped step, two may be adjacent
// skipped steps.
constexpr uint64_t kCertainSigns = 3;
// A dynamic loss scale begins at 2^16 (PyTorch, DeepSpeed) or 2^32 (Megatron), and each overflow halves it.
// So this many consecutive lost norms may still belong to the scale search.
constexpr uint64_t kUsualSearch = 16, kLongestSearch = 32;
constexpr double kLossRose =
    1.5;                         // the loss rose before, if the last values exceed this multiple of the best
constexpr int64_t kResumed = 3;  // iterations after the last overflow that show a recovery
constexpr size_t kEvidence = 4;

enum class What : uint8_t { kLoss, kNorm, kScale };

// A number of one writer that stays NaN or infinite until the writer's last line.
struct Spell {
  const WriterNumbers* of = nullptr;
  What what = What::kLoss;
  uint64_t lines = 0;
  const NumberLine* first = nullptr;
  int64_t iteration = -1;
  uint64_t finite = 0;  // number of finite values before

  const Course& course() const { return what == What::kNorm ? of->norm : of->loss; }
};

class Search {
 public:
  Search(const View& view, const Analysis& a) : log_(*view.log), a_(a) {}

  std::optional<LostNumbers> run() {
    for (const WriterNumbers& w : log_.numbers().writers()) {
      add(w, What::kLoss, w.loss.lost, w.loss.first_lost);
      add(w, What::kNorm, w.norm.lost, w.norm.first_lost);
      add(w, What::kScale, w.starved, w.first_starved);
    }
    std::erase_if(spells_, [&](const Spell& s) { return !is_lasting(s); });
    if (spells_.empty()) return {};
    std::stable_sort(spells_.begin(), spells_.end(),
                     [](const Spell& x, const Spell& y) { return is_before(x, y); });
    const auto loss =
        std::find_if(spells_.begin(), spells_.end(), [](const Spell& s) { return s.what == What::kLoss; });
    const double sure = confidence();
    if (sure <= 0) return {};
    return describe(loss == spells_.end() ? spells_.front() : *loss, sure);
  }

 private:
  int64_t iteration_of(const NumberPlace& line) const {
    if (line.iteration >= 0) return line.iteration;
    return log_.iterations().iteration_at(line.place.time_ns, line.place.source, line.place.line);
  }

  void add(const WriterNumbers& w, What what, uint64_t lines, const NumberLine& first) {
    if (lines == 0) return;
    spells_.push_back({&w, what, lines, &first, iteration_of(first), 0});
    spells_.back().finite = what == What::kScale ? w.loss.finite : spells_.back().course().finite;
  }

  static bool is_before(const Spell& x, const Spell& y) {
    if (x.iteration != y.iteration) return x.iteration < y.iteration;
    return x.first->place.time_ns < y.first->place.time_ns;
  }

  // Whether another writer has finite values after this writer's last line: then the job recovered, or the
  // number does not belong to the job.
  bool is_contradicted(const Spell& s) const {
    const NumberPlace& end = s.of->newest;
    for (const WriterNumbers& w : log_.numbers().writers()) {
      const Course& other = s.what == What::kNorm ? w.norm : w.loss;
      if (&w == s.of || other.lost > 0 || other.last.empty()) continue;
      if (s.finite == 0) return true;
      const NumberPlace& last = other.last.back();
      const bool timed = last.place.time_ns != kNoTime && end.place.time_ns != kNoTime;
      if (timed ? last.place.time_ns > end.place.time_ns : iteration_of(last) > iteration_of(end))
        return true;
    }
    return false;
  }

  bool is_lasting(const Spell& s) const {
    if (is_contradicted(s)) return false;
    if (s.what == What::kLoss) return true;
    const bool loss_too = s.of->loss.lost > 0;
    if (s.what == What::kScale) {
      const int64_t at = iteration_of(s.of->last_starved), end = a_.outcome.last_iteration;
      return s.lines >= kCertainSigns && (loss_too || at < 0 || end - at <= kResumed);
    }
    if (loss_too) return true;
    // Only norms: their overflow is expected during the search for a loss scale.
    const bool scaled = s.of->scale && *s.of->scale > 1;
    const uint64_t search = scaled ? kLongestSearch : s.finite == 0 && !s.of->scale ? kUsualSearch : 0;
    return s.lines >= kCertainSigns && s.lines > search;
  }

  // From the length of the longest spell, and from whether finite values preceded it.
  double confidence() const {
    double best = 0;
    for (const Spell& s : spells_) {
      const uint64_t both = s.what == What::kLoss && s.of->norm.lost > 0 ? 1 : 0;
      const uint64_t n = s.lines + both;
      double sure = n >= kCertainSigns ? 0.9 : n == 2 ? 0.75 : 0.55;
      if (n == 1 && a_.outcome.ended_well) sure = 0;
      if (s.what != What::kLoss) sure = std::min(sure, 0.85);
      if (s.finite == 0) sure = n >= kCertainSigns ? std::min(sure, 0.8) : 0.4;
      best = std::max(best, sure);
    }
    return best;
  }

  static std::string_view name(What what) { return what == What::kNorm ? "gradient norm" : "loss"; }
  static std::string_view state(const NumberPlace& line) {
    return std::isnan(line.value) ? "NaN" : "infinite";
  }
  std::string at(const NumberPlace& line) const {
    const int64_t iteration = iteration_of(line);
    return iteration < 0 ? "" : fmt::format(" at iteration {}", iteration);
  }
  static std::string from(int64_t iteration) {
    return iteration < 0 ? "" : fmt::format(" from iteration {} on", iteration);
  }

  static std::string where(const Spell& s) {
    return s.iteration < 0 ? fmt::format("line {}", s.first->place.line)
                           : fmt::format("iteration {}", s.iteration);
  }

  std::string title(const Spell& lead) const {
    if (lead.what == What::kScale)
      return fmt::format("Gradients overflow at the smallest loss scale{}", from(lead.iteration));
    if (lead.finite == 0)
      return fmt::format("The {} is {} from the first line on", name(lead.what), state(*lead.first));
    std::string text =
        fmt::format("The {} became {} at {}", name(lead.what), state(*lead.first), where(lead));
    if (const logs::RateJump* jump = jump_before(lead))
      text += fmt::format(", after the learning rate went from {:g} to {:g}", jump->from, jump->to);
    return text;
  }

  void add_before(const Spell& lead, std::vector<std::string>& why) const {
    const Course& course = lead.course();
    const Spell& first = spells_.front();
    if (&first != &lead && first.what != lead.what && first.iteration < lead.iteration)
      why.push_back(first.what == What::kScale
                        ? fmt::format("steps overflow at the smallest loss scale{}", from(first.iteration))
                        : fmt::format("the {} was {} first, at iteration {}", name(first.what),
                                      state(*first.first), first.iteration));
    if (lead.what == What::kScale || course.last.empty()) return;
    const NumberPlace& last = course.last.back();
    if (last.value > kLossRose * course.best && course.best > 0)
      why.push_back(fmt::format("the {} rose before: from {:.4g} at best to {:.4g}{}", name(lead.what),
                                course.best, last.value, at(last)));
    else
      why.push_back(fmt::format("the {} was {:.4g}{}", name(lead.what), last.value, at(last)));
    const WriterNumbers& w = *lead.of;
    if (w.scale && w.scale_most && *w.scale < *w.scale_most / 2)
      why.push_back(fmt::format("the loss scale fell from {:g} to {:g}", *w.scale_most, *w.scale));
  }

  // Names the rank that printed the value first, if ranks print their own values.
  void add_ranks(const Spell& lead, std::vector<std::string>& why) const {
    size_t same = 0, later = 0;
    for (const Spell& s : spells_) {
      same += s.what == lead.what;
      later += s.what == lead.what && s.iteration > lead.iteration;
    }
    if (same < 2) return;
    const auto rank = log_.writers()[lead.first->place.writer].rank;
    if (later + 1 == same && rank)
      why.push_back(fmt::format("rank {} printed it first; {} followed", *rank, counted(later, "writer")));
    else
      why.push_back(fmt::format("{} print it", counted(same, "writer")));
  }

  // The sudden rise of the learning rate just before the spell.
  const logs::RateJump* jump_before(const Spell& lead) const {
    const logs::RateJump* found = nullptr;
    for (const WriterNumbers& w : log_.numbers().writers()) {
      if (!w.jump) continue;
      // The rise must be within the stored values before the spell.
      const auto& last = lead.course().last;
      const bool same = &w == lead.of && !last.empty() && w.jump->at.place.line >= last.front().place.line &&
                        w.jump->at.place.line <= lead.first->place.line;
      if (same) found = &*w.jump;
    }
    return found;
  }

  LostNumbers describe(const Spell& lead, double sure) const {
    LostNumbers out;
    Finding& f = out.finding;
    f.detector = DetectorKind::kNumerics;
    f.kind = FindingKind::kFault;
    f.by_no_device = true;
    f.category = Category::kUser;
    f.component = Component::kNumeric;
    f.symptom = Symptom::kNumeric;
    f.action = ActionKind::kRollback;
    f.restart = f.restart_after_steps = lead.finite == 0 ? Restart::kNever : Restart::kOlder;
    f.title = title(lead);
    f.confidence = sure;
    f.first_ns = lead.first->place.time_ns;
    f.last_ns = lead.of->newest.place.time_ns;
    if (lead.iteration >= 0) f.iteration = lead.iteration;
    f.why.push_back(
        lead.what == What::kScale
            ? fmt::format("{} in a row report a skipped step at a loss scale of one or less",
                          counted(lead.lines, "line"))
            : fmt::format("the {} is {} in {}{}, until the log's end", name(lead.what), state(*lead.first),
                          lead.lines == 1 ? "one line" : fmt::format("{} lines in a row", lead.lines),
                          " from " + where(lead) + " on"));
    const logs::RateJump* jump = jump_before(lead);
    if (jump)
      f.why.push_back(
          fmt::format("the learning rate went from {:g} to {:g}{}", jump->from, jump->to, at(jump->at)));
    add_before(lead, f.why);
    add_ranks(lead, f.why);
    for (const Spell& s : spells_)
      if (f.evidence.size() < kEvidence && (s.what == lead.what || &s == &spells_.front()))
        f.evidence.push_back(evidence_at(log_, s.first->place, s.first->text));
    for (const Spell& s : spells_) f.lines += s.lines;
    out.fault.kind = jump ? NumericClass::kOptimizer : NumericClass::kUnknown;
    if (jump) f.component = Component::kUserConfig;
    f.remedy = remedy(lead, jump);
    fill(lead, out);
    return out;
  }

  std::string remedy(const Spell& lead, const logs::RateJump* jump) const {
    const std::string back =
        lead.iteration < 0 ? std::string("Go back to the last checkpoint before it")
                           : fmt::format("Go back to a checkpoint from before iteration {}", lead.iteration);
    if (jump)
      return fmt::format("{}, and correct the learning rate: {:g} is {:.3g} times the one before.", back,
                         jump->to, jump->to / jump->from);
    if (lead.finite == 0)
      return "Compute one batch in float32: look at its data, the initial weights or the loaded checkpoint, "
             "and the loss function.";
    return back +
           ", without that step's batch; when it comes again, look at its samples, the learning rate and the "
           "number format (bf16 in place of fp16); when it does not, compute the step again on each device.";
  }

  void fill(const Spell& lead, LostNumbers& out) const {
    NumericFault& fault = out.fault;
    fault.step = fault.detected_at = std::max<int64_t>(0, lead.iteration);
    for (const Spell& s : spells_) {
      const std::string metric = s.what == What::kScale  ? "loss_scale"
                                 : s.what == What::kNorm ? "grad_norm"
                                                         : "loss";
      if (std::find(fault.metrics.begin(), fault.metrics.end(), metric) == fault.metrics.end())
        fault.metrics.push_back(metric);
    }
    fault.confidence = out.finding.confidence;
    fault.mitigation = out.finding.remedy;
  }

  const logs::JobLog& log_;
  const Analysis& a_;
  std::vector<Spell> spells_;
};

}  // namespace

std::optional<LostNumbers> find_lost_numbers(const View& view, const Analysis& analysis) {
  return Search(view, analysis).run();
}

}  // namespace culprit::detect
