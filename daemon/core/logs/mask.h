// The masked form of a message: its variable parts (numbers, hex, addresses, paths, UUIDs, IPs, times, lists)
// as
// "<*>". A value of letters alone stays: whether it varies is the miner's to find. Messages of equal form
// share everything that follows, so this is what each line pays for. Pure, any thread. Only the first
// limits::kMessageBytes bytes and limits::kMessageTokens tokens with holes count; the rest is one hole.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace culprit::logs {

// A hash of the form, without building it. Equal forms give equal hashes. The hot path.
uint64_t form_hash(std::string_view message);

// The form itself: tokens separated by one space, holes "<*>".
std::string form_text(std::string_view message);

}  // namespace culprit::logs
