// Single-use links that log a browser in, and their sessions, instead of a token typed by hand. A code is
// valid once, for minutes. A session is a token with the role of the link's maker, valid for half a day; it
// cannot make further links. All are in memory only and end with the daemon.
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

// Client that requests a link, and the role of the link's session.
struct LinkMaker {
  Role role = Role::kRead;
  std::string name;       // "uid 1000", "token alice"
  bool by_token = false;  // from the token file: sessions end when this file changes
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

  // Makes a link with this code. If its maker has too many unused links, the oldest is removed. kTooSoon:
  // too many.
  Status make_link(const LinkMaker& maker, std::string code, TimeNs now);
  // Exchanges a code for a session with this secret. Compares with every unused code in constant time.
  // kDenied: unknown code. kTooSoon: the peer failed too often. If the maker has too many sessions, the
  // oldest ends.
  Result<Token> log_in(std::string_view code, const std::string& peer, std::string secret, TimeNs now);
  // The session of "Bearer SECRET"; null: none. Compares with all secrets in constant time. Valid until the
  // next call.
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
