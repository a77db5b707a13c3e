// One decision of several `culprit run` processes, by files in a folder that their hosts share:
//
//   <run>/agreement/attempt-K/join.HOST, ready.HOST, end.HOST   records of one member
//                             report.HOST                       read by the member that decides alone
//                             decides.HOST                      this member decides; replaced each second
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
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

  // Writes `what`.HOST. `synced`: after its text is on the disk.
  Status write(std::string_view what, std::string_view text, bool synced = true) const;
  // Removes `what`.HOST of this member.
  void withdraw(std::string_view what) const;

  struct Entry {
    std::string text;
    TimeNs changed_ns = kNoTime;  // by the file system's clock, the same for all hosts
  };
  std::optional<Entry> read(std::string_view what, std::string_view host) const;
  // `what`.HOST by host, except hosts in `known`.
  template <class T>
  std::map<std::string, Entry> read_new(std::string_view what, const std::map<std::string, T>& known) const {
    std::map<std::string, Entry> out;
    for (std::string& host : hosts_with(what))
      if (!known.contains(host))
        if (auto entry = read(what, host)) out.emplace(std::move(host), std::move(*entry));
    return out;
  }
  // Hosts that have a file `what`.HOST.
  std::vector<std::string> hosts_with(std::string_view what) const;

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
  // How long this member has watched the host's `what`.HOST without seeing a new one; from the first call.
  TimeNs silence(std::string_view what, const std::string& host);
  // Whether this member saw no sign of life of the host for `within`; false until it has watched that long.
  bool is_lost(const std::string& host, TimeNs within) { return silence("alive", host) >= within; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Life {
    uint64_t inode = 0;
    int64_t changed_ns = 0;
    Clock::time_point seen, looked;
  };
  std::optional<Entry> read_file(const std::string& name) const;

  HeldFolder all_, at_;
  std::string host_;
  std::map<std::string, Life> lives_;  // by name of the file
  Clock::time_point shown_{};
};

}  // namespace culprit::app
