#include "app/daemon/watch/copy_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/text.h"
#include "io/child.h"

namespace culprit::app {
namespace {

using respond::checkpoint::CopySender;
using respond::checkpoint::CopySent;

constexpr TimeNs kFirstDelay = 5 * kNsPerSecond, kLongestDelay = 300 * kNsPerSecond;
constexpr size_t kSeen = 256;  // series of all folders
// Renewed certificates are loaded within this time.
constexpr TimeNs kBeat = kNsPerSecond;
// A job that saves all the time gets copies too. Less than the other side waits.
constexpr TimeNs kLongestHold = 600 * kNsPerSecond;

std::string full_path(const copies::Manifest& manifest) {
  return manifest.path.empty() ? manifest.root : manifest.root + "/" + manifest.path;
}

}  // namespace

CopyOut::CopyOut(io::Env& env, CopyParts parts)
    : env_(env),
      parts_(std::move(parts)),
      timer_(env.timer([this] { look(); })),
      saves_(env, parts_.copies.settle_ns, [this] { hold(); }) {
  timer_->start(kBeat, parts_.copies.every_ns);
}

CopyOut::~CopyOut() = default;

std::vector<std::string> CopyOut::addresses() const {
  return parts_.copies.command.empty() ? parts_.copies.to : std::vector<std::string>{"copies.command"};
}

// Logs a sentence when it is new.
void CopyOut::trouble(const std::string& key, const std::string& sentence) {
  std::string& before = troubles_[key];
  if (!sentence.empty() && sentence != before) parts_.log(LogLevel::kWarning, "copies: " + sentence);
  before = sentence;
  if (sentence.empty()) troubles_.erase(key);
}

void CopyOut::look() {
  if (parts_.tls.used() && (tls_ == nullptr || tls_->outdated())) {
    auto loaded = io::TlsCredentials::load({parts_.tls.cert, parts_.tls.key, parts_.tls.ca, parts_.tls.crl});
    trouble("tls", loaded ? "" : loaded.error().text);
    if (loaded) tls_ = std::move(*loaded);
  }
  if (sender_) {
    account(sender_->progress());
    return hold();
  }
  for (auto& [_, seen] : seen_) seen.present = false;
  present_.clear();
  left_out_ = 0;
  for (const std::string& folder : parts_.copies.folders) look_at(folder);
  std::erase_if(seen_, [](const auto& entry) { return !entry.second.present; });
  trouble("checkpoints", left_out_ == 0 ? std::string()
                                        : fmt::format("{} are not copied: the limit is {} at a time",
                                                      counted(left_out_, "checkpoint"), kSeen));
  std::erase_if(troubles_, [this](const auto& entry) {
    return entry.first.starts_with('/') && !present_.contains(entry.first) &&
           std::ranges::find(parts_.copies.folders, entry.first) == parts_.copies.folders.end();
  });
  const auto is_old = [this](const auto& entry) {
    return std::ranges::none_of(seen_, [&](const auto& seen) {
      return respond::checkpoint::id_of(seen.second.manifest) == entry.first.first;
    });
  };
  std::erase_if(done_, is_old);
  std::erase_if(turns_, [this](const auto& turn) {
    return std::ranges::none_of(
        seen_, [&](const auto& seen) { return copies::series_of(seen.second.manifest) == turn.first; });
  });
  std::erase_if(attempts_, is_old);
  watch_saves();
  send_next();
  publish();
}

void CopyOut::look_at(const std::string& folder) {
  const auto found = find_copyable(folder, parts_.copies.parts, wall());
  // A job that has not begun has no folder yet.
  const bool absent = !found && found.error().code == ErrorCode::kNotFound;
  trouble(folder, found || absent ? "" : found.error().text);
  if (!found) return;
  for (const Copyable& copyable : *found) see(copyable);
}

void CopyOut::see(const Copyable& copyable) {
  copies::Manifest manifest;
  manifest.root = copyable.root;
  manifest.path = copyable.path;
  manifest.format = copyable.format;
  manifest.step = copyable.step.value_or(-1);
  manifest.changed_ns = std::max<TimeNs>(0, copyable.changed_ns);
  for (const auto& [path, text] : copyable.pointers)
    if (manifest.pointers.size() < copies::kPointers && text.size() <= copies::kPointerBytes &&
        copies::is_safe_path(path))
      manifest.pointers.push_back({path, text});
  const std::string name = full_path(manifest);
  present_.insert(name);
  if (copyable.files.size() > copies::kFiles)
    return trouble(name, fmt::format("{}: has more than {} files and is not copied", name, copies::kFiles));
  auto files = respond::checkpoint::describe(copyable.root, copyable.files);
  if (!files) {
    if (files.error().code != ErrorCode::kNotFound) trouble(name, files.error().text);
    return;
  }
  manifest.files = std::move(*files);
  // What the other side would refuse is found here.
  if (const auto sound = copies::manifest_from(copies::to_bytes(manifest)); !sound)
    return trouble(name, fmt::format("{}: is not copied: {}", name, sound.error().text));
  trouble(name, "");
  if (seen_.size() >= kSeen && !seen_.contains(name)) return void(++left_out_);
  Seen& seen = seen_[name];
  if (seen.since_ns == 0 || seen.manifest.files != manifest.files) seen.since_ns = mono();
  seen.manifest = std::move(manifest);
  seen.present = true;
}

// A new checkpoint appears in the folder of its series, or takes the place of one.
void CopyOut::watch_saves() {
  std::set<std::string> folders(parts_.copies.folders.begin(), parts_.copies.folders.end());
  for (const auto& [path, seen] : seen_) {
    folders.insert(std::filesystem::path(path).parent_path());
    for (const copies::File& file : seen.manifest.files)
      folders.insert(std::filesystem::path(seen.manifest.root + "/" + file.path).parent_path());
  }
  const Status watched = saves_.watch(folders);
  trouble("saves", watched ? "" : "copies do not wait while the job saves: " + watched.error().text);
}

// The job's save comes first; another user's files hold nothing up.
void CopyOut::hold() {
  const TimeNs now = mono();
  if (held_since_ns_ != 0) {
    const TimeNs held = now - std::exchange(held_since_ns_, 0);
    held_ns_ += held;
    parts_.state->change([&](CopyCounters& counters) { counters.held_ns += held; });
  }
  const bool saving = sender_ && saves_.saving(copies::owner_of(sender_->manifest()));
  if (saving && held_ns_ < kLongestHold) held_since_ns_ = now;
  if (sender_) sender_->hold(held_since_ns_ != 0);
  publish();
}

// The series whose turn was the longest ago comes first: no job, and no user, holds up the others.
void CopyOut::send_next() {
  std::vector<std::pair<TimeNs, const Seen*>> order;
  for (const auto& [_, seen] : seen_)
    if (mono() - seen.since_ns >= parts_.copies.settle_ns)
      order.emplace_back(turns_[copies::series_of(seen.manifest)], &seen);
  std::ranges::stable_sort(order, {}, [](const auto& one) { return one.first; });
  for (const auto& [_, next] : order) {
    const Seen& seen = *next;
    const std::string id = respond::checkpoint::id_of(seen.manifest);
    for (const std::string& to : addresses()) {
      const Target target{id, to};
      if (done_.contains(target)) continue;
      if (const auto at = attempts_.find(target); at != attempts_.end() && mono() < at->second.not_before_ns)
        continue;
      now_ = target;
      turns_[copies::series_of(seen.manifest)] = mono();
      if (!parts_.copies.command.empty()) return run_command(seen.manifest);
      return send(seen.manifest, to);
    }
  }
}

void CopyOut::send(const copies::Manifest& manifest, const std::string& to) {
  respond::checkpoint::CopySenderOptions options;
  options.to = to;
  options.host = parts_.host;
  options.tls = tls_;
  options.rate = parts_.copies.rate;
  accounted_ = {};
  if (parts_.tls.used() && tls_ == nullptr) return;  // reported
  sender_ = std::make_unique<CopySender>(
      env_, std::move(options), manifest, [this, name = full_path(manifest)](Result<CopySent> result) {
        account(sender_->progress());
        held_since_ns_ = held_ns_ = 0;
        sent(now_, name, std::move(result));
        // Its callback is on the stack.
        env_.post([this, ended = std::shared_ptr<CopySender>(std::move(sender_))] { look(); });
      });
  hold();
}

// The program has its own limits; the thread waits for it, as for a read.
void CopyOut::run_command(const copies::Manifest& manifest) {
  const std::string name = full_path(manifest);
  std::vector<std::string> words;
  for (const std::string_view word : split(parts_.copies.command, ' '))
    if (!word.empty()) words.emplace_back(word);
  words.push_back(name);
  io::ChildProgram program{words.front(), words, {"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"}};
  auto child = io::Child::start(program);
  if (!child) return sent(now_, name, fail(ErrorCode::kIo, child.error().text));
  std::optional<io::ChildEnd> end;
  while (!end && !*parts_.stop) end = child->wait(kNsPerSecond / 4);
  if (!end) return;
  if (end->code == 0 && end->signal == 0) return sent(now_, name, CopySent{});
  sent(now_, name,
       fail(ErrorCode::kIo, fmt::format("copies.command: ended with {} for {}",
                                        end->signal ? 128 + end->signal : end->code, name)));
}

void CopyOut::account(const CopySent& progress) {
  parts_.state->change([&](CopyCounters& counters) {
    counters.sent_bytes += progress.sent - accounted_.sent;
    counters.read_bytes += progress.read - accounted_.read;
  });
  accounted_ = progress;
}

void CopyOut::sent(const Target& target, const std::string& name, Result<CopySent> result) {
  if (result) {
    done_[target] = wall();
    attempts_.erase(target);
    trouble(target.second, "");
    parts_.state->change([&](CopyCounters& counters) {
      counters.copied += result->was_complete ? 0 : 1;
      counters.last_copy_ns = wall();
    });
    if (!result->was_complete)
      parts_.log(LogLevel::kInfo, fmt::format("copies: {} is at {}: {} sent", name, target.second,
                                              format_bytes(result->sent)));
    return;
  }
  Attempt& attempt = attempts_[target];
  // A checkpoint that changed or left is no trouble: the next look finds what there is now.
  const bool moved = result.error().code == ErrorCode::kBusy || result.error().code == ErrorCode::kNotFound;
  attempt.delay_ns = moved ? kFirstDelay : std::clamp(attempt.delay_ns * 2, kFirstDelay, kLongestDelay);
  attempt.not_before_ns = mono() + attempt.delay_ns;
  attempt.error = result.error().text;
  parts_.state->change([&](CopyCounters& counters) { counters.failed += moved ? 0 : 1; });
  if (!moved) trouble(target.second, result.error().text);
}

void CopyOut::publish() {
  std::vector<copies::Copied> out;
  uint64_t pending = 0;
  for (const auto& [_, seen] : seen_) {
    const std::string id = respond::checkpoint::id_of(seen.manifest);
    for (const std::string& to : addresses()) {
      if (out.size() >= copies::kEntries) break;
      copies::Copied one{seen.manifest.root, seen.manifest.path, to, "waiting", 0};
      const Target target{id, to};
      if (const auto done = done_.find(target); done != done_.end()) {
        one.state = "copied";
        one.at_ns = done->second;
      } else if (sender_ && now_ == target) {
        one.state = held_since_ns_ != 0 ? "held" : "copying";
      } else if (const auto failed = attempts_.find(target); failed != attempts_.end()) {
        one.state = failed->second.error;
      }
      pending += one.state != "copied";
      out.push_back(std::move(one));
    }
  }
  std::string sentence;
  for (const auto& [_, text] : troubles_) sentence = sentence.empty() ? text : sentence;
  parts_.state->change([&](CopyCounters& counters) {
    counters.pending = pending;
    counters.out_trouble = sentence;
  });
  parts_.state->set_copied(std::move(out));
}

}  // namespace culprit::app
