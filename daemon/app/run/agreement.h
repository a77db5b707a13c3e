// One decision of several `culprit run` processes, by files in a folder that their hosts share:
//
//   <run>/agreement/attempt-K/join.HOST, ready.HOST, end.HOST   records of one member
//                             NAME.HOST.draft, NAME             a proposal, and the decision: NAME is a link
//                             stop                              the attempt is to end
//                             alive.HOST                        replaced every few seconds
//
// link(2) decides: the first member that makes the link wins. Its result is judged by the proposal's number
// of links, since NFS may lose the answer to a link that was made. A file is written, synced and renamed, so
// that a reader sees all of it or none. Only regular files of this user are read, up to a limit; no link is
// followed. Blocking; one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "app/run/held_folder.h"
#include "base/status.h"
#include "base/time.h"

namespace culprit::app {

class Agreement {
 public:
  // `run`: the run's folder. `host`: this member's name.
  static Result<Agreement> open(const HeldFolder& run, std::string host);

  // All below concern this attempt, in a folder of its own.
  Status enter(uint32_t attempt);

  // Writes `what`.HOST.
  Status write(std::string_view what, std::string_view text) const;
  // Texts of `what`.HOST by host, except hosts in `known`.
  template <class T>
  std::map<std::string, std::string> read_new(std::string_view what,
                                              const std::map<std::string, T>& known) const {
    return read_all(what, [&](const std::string& host) { return known.contains(host); });
  }

  struct Settled {
    std::string text;  // the agreed one
    bool won = false;  // it is this member's
  };
  // Proposes `text` for `name`. kIo: neither this proposal nor another one was accepted.
  Result<Settled> settle(std::string_view name, std::string_view text) const;
  // The agreed text; nothing: not yet agreed.
  std::optional<std::string> settled(std::string_view name) const;

  void stop() const;
  bool stopped() const { return at_.has("stop"); }

  // Shows that this member is alive. Writes at most every few seconds, so it may be called often. False: it
  // could not be written.
  bool show_life();
  // Whether this member saw no sign of life of the host for `within`; false until it has watched that long.
  bool is_lost(const std::string& host, TimeNs within);

 private:
  using Clock = std::chrono::steady_clock;
  struct Life {
    uint64_t inode = 0;
    int64_t changed_ns = 0;
    Clock::time_point seen, looked;
  };
  std::map<std::string, std::string> read_all(std::string_view what,
                                              const std::function<bool(const std::string&)>& skip) const;
  std::optional<std::string> read(const std::string& name) const;

  HeldFolder all_, at_;
  std::string host_;
  std::map<std::string, Life> lives_;
  Clock::time_point shown_{};
};

}  // namespace culprit::app
