#include "core/detect/numerics/window.h"

#include <fmt/format.h>
#include <algorithm>

#include "base/check.h"
#include "base/limits.h"

namespace culprit::numerics {

namespace {

// Steps to wait for a silent rank. Collectives keep ranks within one step of each other, so a rank further
// behind lost its rows or died.
constexpr int64_t kPatience = 4;
// Open steps of one run. More than kPatience, because some loops do not report every step.
constexpr size_t kOpen = 8;

}  // namespace

std::optional<uint32_t> Window::slot_of(uint32_t rank, std::string_view host) {
  const auto found = slot_of_.find(rank);
  if (found != slot_of_.end()) {
    Rank& known = ranks_[found->second];
    if (known.host != host && !host.empty()) known.host = host.substr(0, limits::kNameBytes);
    return found->second;
  }
  if (ranks_.size() >= limits::kNumericRanks || rank >= limits::kCommRanks ||
      (ranks_.size() + 1) * names_.size() > limits::kNumericCells) {
    ++refused_ranks_;
    return {};
  }
  const auto slot = static_cast<uint32_t>(ranks_.size());
  ranks_.push_back({});
  ranks_.back().rank = rank;
  ranks_.back().host = host.substr(0, limits::kNameBytes);
  ranks_.back().last_frame = closed_frames_;
  slot_of_.emplace(rank, slot);
  return slot;
}

bool Window::is_alive(const Rank& rank) const {
  return !rank.ahead && closed_frames_ - rank.last_frame <= kPatience;
}

Window::Place Window::place(Rank& rank, const MetricRow& row) {
  if (row.step > closed_step_) {
    if (!rank.ahead) return Place::kOpen;
    // Rows that continue the rank's earlier steps come from a second sender with the same rank number.
    return row.step > rank.last_step + static_cast<int64_t>(kOpen) ? Place::kOpen : Place::kAhead;
  }
  if (rank.ahead) return Place::kAhead;
  // Late or repeated rows are older than the rank's last row; rows of a new run are newer.
  const bool is_newer = row.time_ns != kNoTime && rank.last_ns != kNoTime && row.time_ns > rank.last_ns;
  const bool is_back = rank.last_step >= 0 && row.step <= rank.last_step;
  if (row.time_ns != kNoTime && rank.last_ns != kNoTime)
    return is_back && is_newer ? Place::kAhead : Place::kLate;
  // Without times, only a large step back indicates a new run.
  return is_back && rank.last_step - row.step > static_cast<int64_t>(kOpen) ? Place::kAhead : Place::kLate;
}

Frame& Window::frame(std::deque<Frame>& run, int64_t step) {
  auto at =
      std::lower_bound(run.begin(), run.end(), step, [](const Frame& f, int64_t s) { return f.step < s; });
  if (at != run.end() && at->step == step) return *at;
  Frame fresh;
  if (!spare_.empty()) {
    fresh = std::move(spare_.back());
    spare_.pop_back();
  }
  fresh.step = step;
  const bool is_first = at == run.begin();
  Frame& made = *run.insert(at, std::move(fresh));
  if (is_first && &run == &runs_[0]) {
    behind_ = 0;
    for (const Rank& rank : ranks_) behind_ += is_alive(rank) && rank.last_step <= step;
  }
  return made;
}

void Window::add(Frame& frame, uint32_t slot, const MetricRow& row) {
  CULPRIT_CHECK(slot < ranks_.size());
  if (frame.seen.size() <= slot) frame.seen.resize(ranks_.size());
  frame.ranks += !frame.seen[slot];
  frame.seen[slot] = true;
  if (row.time_ns != kNoTime) {
    frame.first_ns = frame.first_ns == kNoTime ? row.time_ns : std::min(frame.first_ns, row.time_ns);
    frame.last_ns = frame.last_ns == kNoTime ? row.time_ns : std::max(frame.last_ns, row.time_ns);
  }
  const size_t limit = std::min(limits::kNumericNames, limits::kNumericCells / ranks_.size());
  size_t hint = 0;
  bool clash = false;
  for (const MetricValue& value : row.values) {
    const auto column = names_.number(value.name, hint, limit);
    if (!column) continue;
    if (frame.values.size() <= *column) frame.values.resize(names_.size());
    auto& cells = frame.values[*column];
    if (cells.size() <= slot) cells.resize(ranks_.size(), kAbsent);
    clash |= is_reported(cells[slot]) && cells[slot] != normal_form(value.value) && !std::isnan(value.value);
    cells[slot] = normal_form(value.value);
  }
  hint = 0;
  for (const MetricDigest& digest : row.digests) {
    const auto number = digest_names_.number(digest.name, hint, limits::kNumericDigests);
    if (!number) continue;
    if (frame.digests.size() <= *number) {
      frame.digests.resize(digest_names_.size());
      frame.digest_reported.resize(digest_names_.size());
    }
    auto& cells = frame.digests[*number];
    auto& reported = frame.digest_reported[*number];
    if (cells.size() <= slot) cells.resize(ranks_.size());
    if (reported.size() <= slot) reported.resize(ranks_.size());
    clash |= reported[slot] && cells[slot] != digest.value;
    cells[slot] = digest.value;
    reported[slot] = true;
  }
  if (clash) {
    ++clashes_;
    ++ranks_[slot].clashes;
  }
}

void Window::recycle(Frame&& frame) {
  if (spare_.size() >= kOpen) return;
  for (auto& column : frame.values) std::fill(column.begin(), column.end(), kAbsent);
  for (auto& reported : frame.digest_reported) std::fill(reported.begin(), reported.end(), false);
  std::fill(frame.seen.begin(), frame.seen.end(), false);
  frame.ranks = 0;
  frame.first_ns = frame.last_ns = kNoTime;
  spare_.push_back(std::move(frame));
}

// Closes complete steps, and all except the last `keep` open steps.
void Window::close(Ready& ready, size_t keep) {
  auto& run = runs_[0];
  // At the beginning, the set of ranks is not yet known.
  const size_t first = closed_step_ < 0 ? static_cast<size_t>(kPatience) : 1;
  while (!run.empty() && (run.size() > keep || (behind_ == 0 && run.size() > first))) {
    closed_step_ = run.front().step;
    ++closed_frames_;
    for (uint32_t slot = 0; slot < ranks_.size(); ++slot) {
      if (run.front().is_seen(slot)) ranks_[slot].last_frame = closed_frames_;
    }
    ready.frames.push_back(std::move(run.front()));
    run.pop_front();
    behind_ = 0;
    if (run.empty()) return;
    for (const Rank& rank : ranks_) behind_ += is_alive(rank) && rank.last_step <= run.front().step;
  }
}

void Window::restart(Ready& ready) {
  close(ready, 0);
  ready.restarted = true;
  runs_[0] = std::move(runs_[1]);
  runs_[1].clear();
  closed_step_ = -1;
  for (Rank& rank : ranks_) {
    // Ranks that have not begun the new run: their last step belongs to the ended run.
    if (!rank.ahead) rank.last_step = -1;
    rank.last_frame = closed_frames_;
    rank.ahead = false;
  }
  behind_ = 0;
  if (runs_[0].empty()) return;
  for (const Rank& rank : ranks_) behind_ += rank.last_step <= runs_[0].front().step;
}

Window::Ready Window::add(const MetricRow& row) {
  Ready ready;
  const auto slot = slot_of(row.rank, row.host);
  if (!slot || row.step < 0) return ready;
  Rank& rank = ranks_[*slot];
  const Place where = place(rank, row);
  if (where == Place::kLate) {
    ++late_;
    return ready;
  }
  const bool is_first_ahead = where == Place::kAhead && !rank.ahead;
  auto& run = runs_[where == Place::kAhead ? 1 : 0];
  if (is_first_ahead) {
    rank.ahead = true;
    rank.last_step = row.step;
  }
  Frame& to = frame(run, row.step);
  add(to, *slot, row);
  if (row.step > rank.last_step || is_first_ahead) {
    const bool passes = !is_first_ahead && where == Place::kOpen && !runs_[0].empty() && is_alive(rank) &&
                        rank.last_step <= runs_[0].front().step && row.step > runs_[0].front().step;
    behind_ -= passes && behind_ > 0;
    rank.last_step = row.step;
  }
  if (row.time_ns != kNoTime) rank.last_ns = std::max(rank.last_ns, row.time_ns);
  if (where == Place::kAhead) {
    size_t ahead = 0, alive = 0;
    for (const Rank& r : ranks_) {
      ahead += r.ahead;
      alive += r.ahead || is_alive(r);
    }
    if (ahead * 2 >= alive) {
      restart(ready);
    } else if (run.size() > kOpen) {
      strangers_ += run.front().ranks;
      stranger_ = rank.rank;
      recycle(std::move(run.front()));
      run.pop_front();
    }
  } else {
    close(ready, kOpen);
  }
  return ready;
}

std::vector<std::string> Window::problems() const {
  std::vector<std::string> reported;
  if (late_ > 0)
    reported.push_back(fmt::format("{} records of metrics came again, or after their step", late_));
  if (names_.refused() > 0) {
    reported.push_back(fmt::format("{} values of metrics beyond the first {} names were passed over",
                                   names_.refused(), names_.size()));
  }
  if (digest_names_.refused() > 0) {
    reported.push_back(fmt::format("{} digests beyond the first {} names were passed over",
                                   digest_names_.refused(), limits::kNumericDigests));
  }
  if (refused_ranks_ > 0) {
    reported.push_back(
        fmt::format("{} records of ranks beyond {} were passed over", refused_ranks_, ranks_.size()));
  }
  if (stranger_) {
    reported.push_back(
        fmt::format("rank {} has two senders whose steps do not agree; {} records were "
                    "passed over",
                    *stranger_, strangers_));
  }
  // If a loop reports a step in several rows, all ranks do, so this is no clash.
  std::vector<uint32_t> clashing;
  for (const Rank& rank : ranks_) {
    if (rank.clashes > 0) clashing.push_back(rank.rank);
  }
  if (!clashing.empty() && clashing.size() * 2 <= ranks_.size()) {
    reported.push_back(
        fmt::format("rank {} was reported twice with different numbers, {} times: two senders have one "
                    "number",
                    clashing.front(), clashes_));
  }
  return reported;
}

}  // namespace culprit::numerics
