#include "core/detect/numerics/names.h"

#include <array>
#include <charconv>

#include "base/limits.h"

namespace culprit::core::numerics {

namespace {

struct Known {
  std::string_view text;
  Role role;
};
// FORMATS.md section 4, and what loops commonly call the same.
constexpr std::array kKnown = {
    Known{"loss", Role::kLoss},
    Known{"train_loss", Role::kLoss},
    Known{"grad_norm", Role::kGradNorm},
    Known{"grad_norm_reduced", Role::kReduced},
    Known{"grad_cos", Role::kGradCos},
    Known{"param_norm", Role::kParamNorm},
    Known{"update_norm", Role::kUpdateNorm},
    Known{"lr", Role::kRate},
    Known{"learning_rate", Role::kRate},
    Known{"tokens", Role::kTokens},
    Known{"data_stage", Role::kDataStage},
    Known{"loss_scale", Role::kLossScale},
    Known{"iteration_ms", Role::kTiming},
    Known{"tokens_per_s", Role::kTiming},
};
constexpr std::array kKnownParts = {
    Known{"grad_norm", Role::kGradPart},     Known{"q_norm", Role::kQueryNorm},
    Known{"k_norm", Role::kKeyNorm},         Known{"attn_entropy", Role::kEntropy},
    Known{"act_max", Role::kActMax},         Known{"param_norm", Role::kParamNorm},
    Known{"update_norm", Role::kUpdateNorm}, Known{"host", Role::kTiming},
};

Name describe(std::string_view text) {
  Name name{.text = std::string(text), .role = Role::kOther, .layer = {}};
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) {
    for (const Known& known : kKnown) {
      if (known.text == text) name.role = known.role;
    }
    return name;
  }
  for (const Known& known : kKnownParts) {
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

}  // namespace culprit::core::numerics
