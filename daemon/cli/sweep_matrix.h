// The matrix of a sweep: what each host sends to each other one. Pure; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "app/sweep/coordinator.h"
#include "cli/layout.h"
#include "core/sweep/links.h"

namespace culprit::cli {

struct SweepCell {
  std::string text;
  Ink ink = Ink::kPlain;
};

// Borrows the result. With up to 16 hosts a cell is a number, beyond them a character; with more than 64 only
// hosts that a finding names have a row.
class SweepMatrix {
 public:
  explicit SweepMatrix(const app::sweeping::SweepResult& result);

  const std::vector<uint32_t>& rows() const { return rows_; }  // members
  bool has_numbers() const;
  const char* legend() const;
  SweepCell cell(uint32_t from, uint32_t to) const;

 private:
  bool is_named(uint32_t member) const;

  const app::sweeping::SweepResult& r_;
  const std::map<sweep::Pair, sweep::Link> links_;
  const double usual_;
  std::vector<uint32_t> rows_;
};

}  // namespace culprit::cli
