// The names of a job's metrics as numbers, with what is known of a name: which place of the training step it
// speaks of, and of which layer. Owned by one detector; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace culprit::core::numerics {

enum class Role : uint8_t {
  kLoss,
  kGradNorm,    // local, of all parameters
  kGradPart,    // local, of one group of parameters: "grad_norm/layer.3"
  kGradCos,     // of the local with the reduced gradient
  kReduced,     // norm of the reduced gradient
  kParamNorm,   // after the step
  kUpdateNorm,  // of what the optimiser applied
  kQueryNorm,
  kKeyNorm,
  kEntropy,  // of attention
  kActMax,
  kRate,       // learning rate
  kTokens,     // of the rank's batch
  kDataStage,  // a counter of planned changes of the data
  kLossScale,  // of mixed precision
  kTiming,     // speaks of the machine, not of numbers
  kOther,
};

struct Name {
  std::string text;
  Role role = Role::kOther;
  std::optional<uint32_t> layer;  // by the digits at the end of what follows the slash
};

// Whether metrics of the role are said by the loop's plan and not measured on numbers.
constexpr bool is_planned(Role role) {
  return role == Role::kRate || role == Role::kTokens || role == Role::kDataStage || role == Role::kLossScale;
}
// Whether all replicas of a model should say the same of it.
constexpr bool is_shared(Role role) {
  return role == Role::kReduced || role == Role::kParamNorm || role == Role::kUpdateNorm;
}

class Names {
 public:
  // The number of a name, a new one while there are fewer than `limit`. `hint` is where to look first:
  // records name the same things in the same order, so that most names are compared once and never hashed.
  std::optional<uint32_t> number(std::string_view text, size_t& hint, size_t limit);

  const Name& operator[](uint32_t number) const { return names_[number]; }
  size_t size() const { return names_.size(); }
  uint64_t refused() const { return refused_; }  // names beyond the limit, each time that one was told

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  uint64_t refused_ = 0;
  std::vector<Name> names_;
  std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> numbers_;
};

}  // namespace culprit::core::numerics
