#include "serve/sessions.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "serve/target.h"

namespace culprit::serve {
namespace {

// Ensures room for one more: removes the maker's oldest entry if that maker has too many. False: all makers
// together have too many.
template <class List>
bool make_room(List& list, const LinkMaker& maker, size_t most_of, size_t most) {
  const auto own = [&](const auto& one) { return one.maker.name == maker.name; };
  if (static_cast<size_t>(std::count_if(list.begin(), list.end(), own)) >= most_of)
    list.erase(std::find_if(list.begin(), list.end(), own));
  return list.size() < most;
}

}  // namespace

// Refuses new names while too many are counted; counts expire after a minute.
bool Sessions::Rate::admits(const std::string& name, size_t most, TimeNs now) {
  for (auto& [of, times] : times_)
    std::erase_if(times, [&](TimeNs at) { return now - at >= 60 * kNsPerSecond; });
  std::erase_if(times_, [](const auto& one) { return one.second.empty(); });
  const auto known = times_.find(name);
  return known == times_.end() ? times_.size() < kPeers : known->second.size() < most;
}

void Sessions::forget_old(TimeNs now) {
  std::erase_if(links_, [&](const Link& one) { return one.until_ns <= now; });
  std::erase_if(sessions_, [&](const Session& one) { return one.until_ns <= now; });
}

Status Sessions::make_link(const LinkMaker& maker, std::string code, TimeNs now) {
  CULPRIT_CHECK(!code.empty());  // an empty secret would match a request without one
  forget_old(now);
  if (!made_.admits(maker.name, kLinksInMinute, now))
    return fail(ErrorCode::kTooSoon, fmt::format("more than {} links in a minute", kLinksInMinute));
  if (!make_room(links_, maker, kLinksOf, kLinks))
    return fail(ErrorCode::kTooSoon, fmt::format("{} links wait to be opened", kLinks));
  made_.count(maker.name, now);
  links_.push_back({maker, std::move(code), now + kLinkLife});
  return {};
}

Result<Token> Sessions::log_in(std::string_view code, const std::string& peer, std::string secret,
                               TimeNs now) {
  CULPRIT_CHECK(!secret.empty());
  forget_old(now);
  const std::string given = fmt::format("Bearer {}", code);
  std::optional<size_t> found;
  for (size_t i = 0; i < links_.size(); ++i)
    if (bearer_matches(given, links_[i].code)) found = i;
  // The rate limit applies only to wrong codes: other clients of the same address cannot block a right one.
  if (!found) {
    if (!failed_.admits(peer, kFailedInMinute, now))
      return fail(ErrorCode::kTooSoon, "too many links of this address failed: try again in a minute");
    failed_.count(peer, now);
    return fail(
        ErrorCode::kDenied,
        fmt::format("this link was used already or is older than {} minutes: `culprit page` prints another",
                    kLinkLife / (60 * kNsPerSecond)));
  }
  const LinkMaker maker = std::move(links_[*found].maker);
  links_.erase(links_.begin() + static_cast<std::ptrdiff_t>(*found));
  if (!make_room(sessions_, maker, kSessionsOf, kSessions))
    return fail(ErrorCode::kTooSoon, fmt::format("{} sessions are open", kSessions));
  const Token token{std::move(secret), maker.role, "page of " + maker.name};
  sessions_.push_back({maker, token, now + kSessionLife});
  return token;
}

const Token* Sessions::find(std::string_view authorization, TimeNs now) {
  forget_old(now);
  const Token* out = nullptr;
  for (const Session& one : sessions_)
    if (bearer_matches(authorization, one.token.secret)) out = &one.token;
  return out;
}

void Sessions::end_of_tokens() {
  std::erase_if(links_, [](const Link& one) { return one.maker.by_token; });
  std::erase_if(sessions_, [](const Session& one) { return one.maker.by_token; });
}

}  // namespace culprit::serve
