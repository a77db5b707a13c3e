#include "core/detect/stacks/samples.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "base/limits.h"
#include "base/text.h"

namespace culprit::stacks {
namespace {

constexpr uint32_t kNoRank = UINT32_MAX;

uint64_t hash_of(std::span<const CodePlace> path) {
  uint64_t hash = 0x9e3779b97f4a7c15;
  for (const CodePlace& s : path) {
    hash ^= (static_cast<uint64_t>(s.frame) << 32) | s.line;
    hash *= 0xff51afd7ed558ccd;
    hash ^= hash >> 32;
  }
  return hash;
}

bool is_copy(const Sample& a, const Sample& b) {
  const bool other_host = !a.host.empty() && !b.host.empty() && a.host != b.host;
  return !other_host && a.tool == b.tool && a.file != b.file && a.time_ns == b.time_ns && a.pid == b.pid &&
         a.process_state == b.process_state &&
         std::ranges::equal(a.threads, b.threads, [](const Thread& x, const Thread& y) {
           return x.path == y.path && x.name == y.name && x.child == y.child;
         });
}

}  // namespace

FrameId Samples::intern(std::string_view function_text, std::string_view file_text, bool native) {
  std::string function = normal_function(function_text, native);
  std::string file = normal_file(file_text, native);
  const auto [known, fresh] =
      frame_ids_.try_emplace({function, file, native}, static_cast<FrameId>(frames_.size()));
  if (!fresh) return known->second;
  if (frames_.size() >= limits::kStackFramesMax) {
    frame_ids_.erase(known);
    ++dropped_frames_;
    return 0;  // counts as the first process
  }
  FrameMeaning meaning = meaning_of(function, file, native);
  frames_.push_back({std::move(function), std::move(file), native, std::move(meaning)});
  return known->second;
}

FrameId Samples::frame_of(const StackDump& dump, const StackFrame& f) {
  const std::string& function = dump.words[f.function];
  const std::string& file = dump.words[f.file];
  const uint64_t key = mix64(hashes_[f.function], hashes_[f.file] * 2 + (f.native ? 1 : 0));
  if (const uint32_t* at = raw_ids_.find(key)) {
    const Raw& raw = raws_[*at];
    if (raw.native == f.native && raw.function == function && raw.file == file) return raw.id;
    return intern(function, file, f.native);
  }
  const FrameId id = intern(function, file, f.native);
  if (raws_.size() < limits::kStackFramesMax) {
    raw_ids_.try_emplace(key, static_cast<uint32_t>(raws_.size()));
    raws_.push_back({function, file, f.native, id});
  }
  return id;
}

PathId Samples::path_of(const StackDump& dump, const StackThread& thread) {
  const size_t begin = standings_.size();
  for (const StackFrame& f : thread.frames) {
    if (f.function >= dump.words.size() || f.file >= dump.words.size()) continue;
    const FrameId id = frame_of(dump, f);
    standings_.push_back({id, frames_[id].native ? 0 : f.line});
  }
  const std::span<const CodePlace> own(standings_.data() + begin, standings_.size() - begin);
  const uint64_t hash = hash_of(own);
  const auto [first, last] = path_ids_.equal_range(hash);
  for (auto at = first; at != last; ++at)
    if (std::ranges::equal(path(at->second), own)) {
      standings_.resize(begin);
      return at->second;
    }
  const auto id = static_cast<PathId>(paths_.size());
  paths_.emplace_back(static_cast<uint32_t>(begin), static_cast<uint32_t>(own.size()));
  path_ids_.emplace(hash, id);
  return id;
}

std::span<const CodePlace> Samples::path(PathId id) const {
  return {standings_.data() + paths_[id].first, paths_[id].second};
}

void Samples::add(const StackDump& dump) {
  hashes_.clear();
  for (const std::string& word : dump.words) hashes_.push_back(hash64(word));
  const Place place{dump.rank.value_or(kNoRank), dump.rank ? "" : dump.host.value_or(""),
                    dump.rank ? 0 : dump.pid};
  if (by_place_.size() >= limits::kStackUnits && !by_place_.contains(place)) {
    ++dropped_processes_;
    return;
  }
  order_.clear();
  last_capture_ = std::max(last_capture_, dump.sample);
  Process& process = by_place_[place];
  process.rank = dump.rank;
  if (dump.host) process.host = dump.host;
  if (dump.pid != 0) process.pid = dump.pid;
  Sample sample{dump.tool, dump.host.value_or(""), dump.pid,      dump.time_ns, arrivals_++, dump.file,
                dump.line, dump.process_state,     dump.waits_in, {},           dump.sample};
  for (const StackThread& t : dump.threads) {
    if (threads_ >= limits::kStackThreadsMax || standings_.size() >= UINT32_MAX / 2) {
      ++dropped_threads_;
      continue;
    }
    ++threads_;
    const bool child = t.pid != 0 && t.pid != dump.pid;
    sample.threads.push_back({t.name < dump.words.size() ? dump.words[t.name] : std::string(), t.main, child,
                              t.state, path_of(dump, t)});
  }
  const auto later = [](const Sample& a, const Sample& b) {
    return a.time_ns != b.time_ns && a.time_ns != kNoTime && b.time_ns != kNoTime ? a.time_ns < b.time_ns
                                                                                  : a.number < b.number;
  };
  auto& all = process.samples;
  if (std::any_of(all.begin(), all.end(), [&](const Sample& s) { return is_copy(s, sample); })) {
    threads_ -= sample.threads.size();
    return;
  }
  all.insert(std::upper_bound(all.begin(), all.end(), sample, later), std::move(sample));
  const auto same = [&](const Sample& s) { return s.tool == dump.tool; };
  if (static_cast<size_t>(std::count_if(all.begin(), all.end(), same)) > limits::kStackSamples) {
    const auto oldest = std::find_if(all.begin(), all.end(), same);
    threads_ -= oldest->threads.size();
    all.erase(oldest);
    ++dropped_samples_;
  }
}

void Samples::add_silent(uint32_t rank, std::string reason) {
  if (silent_.size() < limits::kStackUnits) silent_.insert_or_assign(rank, std::move(reason));
}

void Samples::forget_before(TimeNs time) {
  if (time == kNoTime) return;
  order_.clear();
  for (auto& [place, process] : by_place_)
    std::erase_if(process.samples, [&](const Sample& s) {
      const bool old = s.time_ns != kNoTime && s.time_ns < time;
      if (old) threads_ -= s.threads.size();
      return old;
    });
  std::erase_if(by_place_, [](const auto& entry) { return entry.second.samples.empty(); });
}

const std::vector<const Process*>& Samples::processes() const {
  if (order_.empty())
    for (const auto& [place, process] : by_place_) order_.push_back(&process);
  return order_;
}

std::vector<std::string> Samples::drop_sentences() const {
  std::vector<std::string> out;
  const auto add = [&](uint64_t n, std::string_view what, std::string_view why) {
    if (n > 0) out.push_back(fmt::format("{} {}", counted(n, what), why));
  };
  add(dropped_processes_, "dump", "of further processes are left out of the stacks");
  add(dropped_samples_, "dump", "of stacks gave way to later ones of the same process");
  add(dropped_threads_, "thread", "of stacks are left out: those of others fill the memory");
  add(dropped_frames_, "frame", "of stacks are left out: others fill the memory");
  return out;
}

}  // namespace culprit::stacks
