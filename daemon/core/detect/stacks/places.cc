#include "core/detect/stacks/places.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace culprit::stacks {
namespace {

// Walks one stack from the innermost frame outwards.
class Walk {
 public:
  Walk(const Samples& samples, std::span<const CodePlace> path) : samples_(samples), path_(path) {}

  Found run() {
    for (size_t i = 0; i < path_.size() && strong_ == kNone; ++i) note(i, meaning(i));
    Found out;
    size_t from = 0;
    if (strong_ != kNone) {
      const FrameMeaning& m = meaning(strong_);
      const bool file = weak_ != kNone && is_of_file(weak_);
      // A device wait at this place is for work enqueued earlier.
      const bool device = weak_ != kNone && is_open(meaning(weak_).where) && !waits(m.where);
      const bool disk = file && (m.where == Where::kLoader || m.where == Where::kSave);
      out.where = device ? meaning(weak_).where : disk ? Where::kFile : m.where;
      out.in_loader = disk && m.where == Where::kLoader;
      out.in_save = disk && m.where == Where::kSave;
      out.op = m.op;
      out.proven = true;
      // The inner frames of a collective differ between ranks that wait in it.
      from = waits(m.where) ? strong_ : disk || device ? weak_ : first_shown();
      tell_ = disk || device ? weak_ : strong_;
      if (waits(m.where)) out.site = site_of(strong_);
    } else if (weak_ != kNone) {
      out.where = asks_for_input(weak_) ? Where::kInput : meaning(weak_).where;
      out.proven = true;
      from = tell_ = weak_;
    } else {
      from = first_shown();
    }
    out.blind = !path_.empty() && std::ranges::all_of(path_, [&](const CodePlace& s) {
      return samples_.frame(s.frame).function == "?";
    });
    for (size_t i = from; i < path_.size(); ++i) {
      if (i == tell_) out.tells = out.frames.size();
      if (meaning(i).role != FrameRole::kHidden) out.frames.push_back(path_[i]);
    }
    out.whole = is_whole();
    for (size_t i = 0; i < path_.size(); ++i) out.helper = out.helper || meaning(i).helper;
    return out;
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;

  const FrameMeaning& meaning(size_t i) const { return samples_.frame(path_[i].frame).meaning; }

  // The innermost call is native and is not an unclassified wait.
  bool is_whole() const {
    for (size_t i = 0; i < path_.size(); ++i) {
      if (meaning(i).role == FrameRole::kHidden) continue;
      return samples_.frame(path_[i].frame).native && meaning(i).role != FrameRole::kNeutral;
    }
    return false;
  }

  // A read in the loader or of a checkpoint is a file read, unless a pipe or socket library made it.
  bool is_of_file(size_t call) const {
    if (meaning(call).where != Where::kStream) return meaning(call).where == Where::kFile;
    if (!samples_.frame(path_[call].frame).native) return false;
    for (size_t i = call + 1; i < path_.size() && i < strong_; ++i)
      if (meaning(i).where == Where::kStream || meaning(i).where == Where::kLock) return false;
    return true;
  }

  bool asks_for_input(size_t call) const {
    if (meaning(call).where != Where::kStream) return false;
    for (size_t i = call + 1; i < path_.size() && meaning(i).role != FrameRole::kPlain; ++i)
      if (meaning(i).where == Where::kInput) return true;
    return false;
  }

  void note(size_t i, const FrameMeaning& m) {
    if (m.role == FrameRole::kPlain) program_ = true;
    if (m.role == FrameRole::kWeak && weak_ == kNone && !program_) weak_ = i;
    // Program code inside a call is the running code: the call itself does not wait yet.
    if (m.role == FrameRole::kStrong && !(waits(m.where) && program_)) strong_ = outermost(i, m);
  }

  // For nested calls of one kind, the outermost counts: all_gather_object, not its all_gather.
  size_t outermost(size_t i, const FrameMeaning& m) const {
    size_t out = i;
    for (size_t k = i + 1; k < path_.size(); ++k) {
      const FrameMeaning& next = meaning(k);
      if (next.role == FrameRole::kPlain) break;
      if (next.role == FrameRole::kStrong && next.where == m.where && waits(m.where)) out = k;
    }
    return out;
  }

  size_t first_shown() const {
    for (size_t i = 0; i < path_.size(); ++i)
      if (meaning(i).role != FrameRole::kHidden && meaning(i).role != FrameRole::kNeutral) return i;
    return path_.size();
  }

  std::string site_of(size_t call) const {
    for (size_t i = call + 1; i < path_.size(); ++i)
      if (meaning(i).role == FrameRole::kPlain) return shown(samples_.frame(path_[i].frame), path_[i].line);
    return {};
  }

  const Samples& samples_;
  std::span<const CodePlace> path_;
  size_t weak_ = kNone, strong_ = kNone, tell_ = kNone;
  bool program_ = false;
};

bool is_entry(const Frame& frame) {
  return frame.function == "<module>" || frame.function == "_run_module_as_main" ||
         frame.function == "_start" || frame.function == "__libc_start_main" || frame.function == "main";
}

bool is_thread_start(const Frame& frame) {
  return frame.function == "_bootstrap" || frame.function == "clone" || frame.function == "clone3" ||
         frame.function == "__clone3" || frame.function == "__clone" || frame.function == "start_thread";
}

const Thread* main_thread(const Samples& samples, const Sample& sample) {
  const Thread* fallback = nullptr;
  for (const Thread& t : sample.threads) {
    if (t.child) continue;
    if (t.main || t.name == "MainThread") return &t;
  }
  for (const Thread& t : sample.threads) {
    const auto path = samples.path(t.path);
    if (t.child || path.empty()) continue;
    for (size_t i = path.size(); i-- > 0 && path.size() - i <= 3;)
      if (is_entry(samples.frame(path[i].frame))) return &t;
    if (!is_thread_start(samples.frame(path.back().frame))) fallback = &t;
    if (!fallback) fallback = &t;
  }
  return fallback;
}

// How well a thread explains that the main thread waits for the backward pass; 0: not at all.
int explains_backward(const Samples& samples, const Thread& t, const Found& found) {
  const auto path = samples.path(t.path);
  if (t.child || path.empty()) return 0;
  bool autograd = false;
  for (const CodePlace& s : path) {
    const Frame& frame = samples.frame(s.frame);
    autograd = autograd || frame.file.find("torch/autograd/function.py") != frame.file.npos ||
               frame.function.find("autograd::Engine") != frame.function.npos;
  }
  const Frame& outermost = samples.frame(path.back().frame);
  // A thread started by Python computes no gradients.
  if (!autograd && (is_thread_start(outermost) || outermost.native)) return 0;
  if (waits(found.where)) return 4;
  if (found.proven && !is_open(found.where)) return 3;
  return autograd && found.where != Where::kBackward ? 2 : 1;
}

// The kernel function in which a read sleeps, for a file and for a terminal.
bool sleeps_for_file(std::string_view waits_in) {
  static constexpr std::array<std::string_view, 10> kParts = {
      "folio", "page", "io_schedule", "nfs", "rpc_wait", "fuse", "ceph", "lustre", "xfs", "ext4"};
  return std::any_of(kParts.begin(), kParts.end(),
                     [&](std::string_view part) { return waits_in.find(part) != waits_in.npos; });
}
bool sleeps_for_terminal(std::string_view waits_in) { return waits_in.find("tty_read") != waits_in.npos; }

bool is_stopped(const std::string& state) { return state.starts_with('T') || state.starts_with('t'); }

}  // namespace

Found place_of(const Samples& samples, PathId path) { return Walk(samples, samples.path(path)).run(); }

Found place_of(const Samples& samples, const Sample& sample) {
  Found out;
  const Thread* const main = main_thread(samples, sample);
  if (main) out = place_of(samples, main->path);
  if (main && out.where == Where::kBackward) {
    int best = 0;
    Found inner;
    for (const Thread& t : sample.threads) {
      if (&t == main) continue;
      Found found = place_of(samples, t.path);
      const int score = explains_backward(samples, t, found);
      if (score <= best) continue;
      best = score;
      inner = std::move(found);
    }
    if (best > 1) {
      inner.frames.insert(inner.frames.end(), out.frames.begin(), out.frames.end());
      out = std::move(inner);
    }
  }
  // The data loader waits for a worker that is in the file system.
  if (out.where == Where::kLoader)
    for (const Thread& t : sample.threads)
      if (t.child && place_of(samples, t.path).where == Where::kFile) out.in_loader = true;
  // A thread that holds the interpreter's lock runs Python code.
  if (main && main->state == ThreadState::kGil) out.whole = true;
  if (out.where == Where::kStream && sleeps_for_file(sample.waits_in)) out.where = Where::kFile;
  if (out.where == Where::kStream && sleeps_for_terminal(sample.waits_in)) out.where = Where::kInput;
  out.stopped = is_stopped(sample.process_state);
  if (sample.process_state.starts_with('D') && !waits(out.where) && !is_open(out.where) &&
      out.where != Where::kDeviceCall) {
    out.in_loader = out.where == Where::kLoader;
    out.in_save = out.where == Where::kSave;
    out.where = Where::kFile;
    out.proven = true;
  }
  return out;
}

std::string shown(const Frame& frame, uint32_t line) {
  if (frame.file.empty()) return frame.function;
  if (line == 0) return fmt::format("{}:{}", frame.file, frame.function);
  return fmt::format("{}:{}:{}", frame.file, frame.function, line);
}

}  // namespace culprit::stacks
