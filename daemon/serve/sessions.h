// Links that log a browser in once, and the sessions that they give, instead of a token typed by hand. A code
// is used once and within minutes. A session is a token of its own with the role of who made the link, for
// half a day, and makes no further links. All are kept in memory alone: the end of the daemon ends them.
//
// Pure: time (monotonic) and random secrets are arguments. One thread.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"
#include "serve/tokens.h"

namespace culprit::serve {

// Who asks for a link, and what a session of it may do.
struct LinkMaker {
  Role role = Role::kRead;
  std::string name;       // "uid 1000", "token alice"
  bool by_token = false;  // of the token file: its sessions end when that file changes
};

class Sessions {
 public:
  static constexpr TimeNs kLinkLife = 300 * kNsPerSecond;  // a person opens it, or scans it with a phone
  static constexpr TimeNs kSessionLife = TimeNs{12} * 3600 * kNsPerSecond;  // a shift
  static constexpr size_t kLinks = 64, kLinksOf = 4;                        // that wait; of one maker
  static constexpr size_t kSessions = 256, kSessionsOf = 16;
  static constexpr size_t kLinksInMinute = 10;   // of one maker
  static constexpr size_t kFailedInMinute = 10;  // of one peer
  static constexpr size_t kPeers = 1000;         // whose failures are counted

  // A link with this code. Of one maker's that wait the oldest gives way. kTooSoon: too many.
  Status make_link(const LinkMaker& maker, std::string code, TimeNs now);
  // The session of a code, under this secret. Every code that waits is compared, in constant time. kDenied:
  // it is none of them; kTooSoon: the peer failed too often. Of one maker's sessions the oldest gives way.
  Result<Token> log_in(std::string_view code, const std::string& peer, std::string secret, TimeNs now);
  // The session of "Bearer SECRET"; null: none. Compares all in constant time. Valid until the next call.
  const Token* find(std::string_view authorization, TimeNs now);
  // The token file has changed.
  void end_of_tokens();

 private:
  struct Link {
    LinkMaker maker;
    std::string code;
    TimeNs until_ns = kNoTime;
  };
  struct Session {
    LinkMaker maker;
    Token token;
    TimeNs until_ns = kNoTime;
  };
  // Calls within the last minute, by name.
  class Rate {
   public:
    bool admits(const std::string& name, size_t most, TimeNs now);
    void count(const std::string& name, TimeNs now) { times_[name].push_back(now); }

   private:
    std::map<std::string, std::deque<TimeNs>> times_;
  };
  void forget_old(TimeNs now);

  std::deque<Link> links_;        // oldest first
  std::deque<Session> sessions_;  // the same
  Rate made_, failed_;
};

}  // namespace culprit::serve
