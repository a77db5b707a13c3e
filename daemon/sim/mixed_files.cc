// Findings that plugins stored, and the metrics of the training, as lines of JSON. The formats are written
// here and never by the product's readers.
#include <cmath>

#include <fmt/format.h>

#include "base/hash.h"
#include "model/json_writer.h"
#include "sim/mixed_plan.h"

namespace culprit::sim {
namespace {

class Numbers {
 public:
  Numbers(const MixedPlan& plan, Random random) : p_(plan), random_(random), seed_(random_.next()) {
    corrupts_ = p_.fault == MixedFault::kMemory;
    not_finite_ = corrupts_ && random_.chance(30);
    changes_ = p_.fault == MixedFault::kPlanned       ? 1 + static_cast<int>(random_.below(3))
               : p_.fault == MixedFault::kHealthyPlan ? 1
                                                      : 0;
    jump_ = p_.fault == MixedFault::kPlanned ? 0.6 + 0.8 * random_.real() : 0.02;
  }

  std::string lines() {
    std::string out;
    for (uint32_t i = 0; i < p_.step_ends_ns.size(); ++i)
      for (uint32_t r = 0; r < p_.hosts.size() * p_.ranks_per_host; ++r) row(i, r, out);
    return out;
  }

 private:
  // Uniform number in -1 .. 1, a function of its key.
  double drawn(uint64_t what, uint64_t step, uint64_t of) const {
    const uint64_t word = mix64(mix64(seed_ ^ what, step), of);
    return static_cast<double>(word >> 11) * 0x1.0p-52 - 1;
  }
  // About normal, with a deviation of one.
  double normal(uint64_t what, uint64_t step, uint64_t of) const {
    double sum = 0;
    for (uint64_t i = 0; i < 6; ++i) sum += drawn(what + 100 * i, step, of);
    return sum * 0.7071;
  }
  double common_loss(uint32_t step) const {
    double loss = 2.2 + 5.0 / (1 + 0.08 * (p_.first_step + step));
    loss *= 1 + 0.0008 * (drawn(6, step, 0) + drawn(6, step, 1) + drawn(6, step, 2));  // of the model
    if (changes_ != 0 && step >= p_.onset) loss += jump_ * std::exp(-0.08 * (step - p_.onset));
    return loss;
  }

  void row(uint32_t step, uint32_t r, std::string& out) const {
    const bool after = step >= p_.onset;
    const bool odd = corrupts_ && p_.rank == r && after;
    const uint32_t sample = r / p_.tp % p_.dp, part = r % p_.tp + p_.tp * (r / (p_.tp * p_.dp));
    const bool lost = not_finite_ && after && (odd || step > p_.onset);
    const auto number = [&](double value) {
      return lost ? std::string("\"NaN\"") : fmt::format("{:.6g}", value);
    };
    const double loss = common_loss(step) * (1 + 0.012 * normal(1, step, sample));
    const double local = 0.8 * std::exp(0.05 * normal(2, step, r)) * (odd && step == p_.onset ? 6.0 : 1.0);
    const double reduced = 0.35 * std::exp(0.03 * normal(3, step, part));
    const double held = 812 + part + 0.01 * (p_.first_step + step) + (odd ? 0.4 : 0.0);
    double rate = 1.5e-4 * (1 - 1e-5 * step);
    if (changes_ == 1 && after) rate *= 1.6;
    const int tokens = changes_ == 2 && after ? 16384 : 8192, stage = changes_ == 3 && after ? 2 : 1;
    const uint64_t digest = mix64(mix64(seed_ ^ 4, step), part) ^ (odd ? 0x5a5a : 0);
    fmt::format_to(
        std::back_inserter(out),
        "{{\"kind\":\"metric\",\"host\":\"{}\",\"rank\":{},\"step\":{},\"time_ns\":{},\"values\":{{\"loss\":{"
        "},"
        "\"grad_norm\":{},\"grad_norm_reduced\":{},\"param_norm\":{},\"lr\":{:.8g},\"tokens\":{},"
        "\"data_stage\":{}}},\"digests\":{{\"param\":\"{:016x}\",\"grad_reduced\":\"{:016x}\"}}}}\n",
        p_.hosts[p_.host_of(r)], r, p_.first_step + step, p_.step_ends_ns[step] + r % 7 * 100'000,
        number(loss), number(local), lost && step > p_.onset ? "\"NaN\"" : fmt::format("{:.6g}", reduced),
        number(held), rate, tokens, stage, digest, mix64(mix64(seed_ ^ 5, step), part));
  }

  const MixedPlan& p_;
  Random random_;
  const uint64_t seed_;
  bool corrupts_ = false, not_finite_ = false;
  int changes_ = 0;  // 1: the learning rate, 2: the batch, 3: the data
  double jump_ = 0;
};

}  // namespace

std::string mixed_metric_lines(const MixedPlan& plan, Random random) { return Numbers(plan, random).lines(); }

std::string mixed_counter_lines(const MixedPlan& plan, uint32_t host) {
  std::string out;
  for (const MixedCounter& c : plan.counters) {
    if (c.host != host) continue;
    JsonWriter w;
    w.object([&] {
      w.field("kind", "finding");
      w.field("plugin", c.plugin);
      w.field("id", c.id);
      w.field("title", c.title);
      w.field("text", c.text);
      w.field("host", plan.hosts[host]);
      if (!c.part.empty()) w.field("part", c.part);
      if (c.device) w.field("device", *c.device);
      w.field("category", c.category);
      w.field("component", c.component);
      w.field("symptom", c.symptom);
      w.field("action", c.action);
      w.field("severity", c.severity);
      w.field("state", c.state);
      w.field("confidence", c.confidence);
      w.field("time_ns", c.at_ns);
    });
    out += w.finish() + "\n";
  }
  return out;
}

}  // namespace culprit::sim
