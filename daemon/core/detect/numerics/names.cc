#include "core/detect/numerics/names.h"

#include <array>
#include <charconv>

#include "base/limits.h"

namespace culprit::numerics {

namespace {

struct NameRole {
  std::string_view text;
  Role role;
};
// docs/formats.md section 4, and common synonyms.
constexpr std::array kKnown = {
    NameRole{"loss", Role::kLoss},
    NameRole{"train_loss", Role::kLoss},
    NameRole{"grad_norm", Role::kGradNorm},
    NameRole{"grad_norm_reduced", Role::kReduced},
    NameRole{"grad_cos", Role::kGradCos},
    NameRole{"param_norm", Role::kParamNorm},
    NameRole{"update_norm", Role::kUpdateNorm},
    NameRole{"lr", Role::kRate},
    NameRole{"learning_rate", Role::kRate},
    NameRole{"tokens", Role::kTokens},
    NameRole{"data_stage", Role::kDataStage},
    NameRole{"loss_scale", Role::kLossScale},
    NameRole{"iteration_ms", Role::kTiming},
    NameRole{"tokens_per_s", Role::kTiming},
};
constexpr std::array kKnownParts = {
    NameRole{"grad_norm", Role::kGradPart},     NameRole{"q_norm", Role::kQueryNorm},
    NameRole{"k_norm", Role::kKeyNorm},         NameRole{"attn_entropy", Role::kEntropy},
    NameRole{"act_max", Role::kActMax},         NameRole{"param_norm", Role::kParamNorm},
    NameRole{"update_norm", Role::kUpdateNorm}, NameRole{"host", Role::kTiming},
};

Name describe(std::string_view text) {
  Name name{.text = std::string(text), .role = Role::kOther, .layer = {}};
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) {
    for (const NameRole& known : kKnown) {
      if (known.text == text) name.role = known.role;
    }
    return name;
  }
  for (const NameRole& known : kKnownParts) {
    if (known.text == text.substr(0, slash)) name.role = known.role;
  }
  const size_t digits = text.find_last_not_of("0123456789") + 1;
  uint32_t layer = 0;
  const auto [end, error] = std::from_chars(text.data() + digits, text.data() + text.size(), layer);
  if (error == std::errc{} && end == text.data() + text.size()) name.layer = layer;
  return name;
}

}  // namespace

std::optional<uint32_t> Names::number(std::string_view text, size_t& hint, size_t limit) {
  if (hint < names_.size() && names_[hint].text == text) return static_cast<uint32_t>(hint++);
  const auto known = numbers_.find(text);
  if (known != numbers_.end()) {
    hint = known->second + size_t{1};
    return known->second;
  }
  if (names_.size() >= limit || text.size() > limits::kNameBytes) {
    ++refused_;
    return {};
  }
  const auto number = static_cast<uint32_t>(names_.size());
  names_.push_back(describe(text));
  numbers_.emplace(std::string(text), number);
  hint = number + size_t{1};
  return number;
}

}  // namespace culprit::numerics
