// Numbers for the names of a job's metrics, with the meaning of each name: its role in the training step and
// its layer. Owned by one detector; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace culprit::numerics {

enum class Role : uint8_t {
  kLoss,
  kGradNorm,    // local, over all parameters
  kGradPart,    // local, of one parameter group: "grad_norm/layer.3"
  kGradCos,     // cosine of the local and the reduced gradient
  kReduced,     // norm of the reduced gradient
  kParamNorm,   // after the step
  kUpdateNorm,  // norm of the applied update
  kQueryNorm,
  kKeyNorm,
  kEntropy,  // of attention
  kActMax,
  kRate,       // learning rate
  kTokens,     // of the rank's batch
  kDataStage,  // a counter of planned changes of the data
  kLossScale,  // of mixed precision
  kTiming,     // a property of the machine, not a numeric result
  kOther,
};

struct Name {
  std::string text;
  Role role = Role::kOther;
  std::optional<uint32_t> layer;  // digits at the end of the part after the slash
};

// Whether metrics of a role are settings of the loop and not measurements.
constexpr bool is_planned(Role role) {
  return role == Role::kRate || role == Role::kTokens || role == Role::kDataStage || role == Role::kLossScale;
}
// Whether all replicas of a model should report the same value.
constexpr bool is_shared(Role role) {
  return role == Role::kReduced || role == Role::kParamNorm || role == Role::kUpdateNorm;
}

class Names {
 public:
  // The number of a name; new names get a number up to `limit`. `hint`: start of the search. Rows list names
  // in the same order, so most look-ups need one comparison and no hash.
  std::optional<uint32_t> number(std::string_view text, size_t& hint, size_t limit);

  const Name& operator[](uint32_t number) const { return names_[number]; }
  size_t size() const { return names_.size(); }
  uint64_t refused() const { return refused_; }  // number of reports of names beyond the limit

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  uint64_t refused_ = 0;
  std::vector<Name> names_;
  std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> numbers_;
};

}  // namespace culprit::numerics
