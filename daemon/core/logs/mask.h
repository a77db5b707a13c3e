// The masked form of a message, with "<*>" for its variable parts: numbers, hex, addresses, paths, UUIDs,
// IPs, times, lists. A value of letters alone stays; the miner decides whether it varies. All later work is
// per form, so masking is the cost of each line. Pure, any thread. Only the first limits::kMessageBytes bytes
// and limits::kMessageTokens tokens with holes count; the rest is one hole.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace culprit::logs {

// A hash of the form, computed without the form's text. Equal forms have equal hashes. The hot path.
uint64_t form_hash(std::string_view message);

// The text of the form: tokens separated by one space, holes "<*>".
std::string form_text(std::string_view message);

}  // namespace culprit::logs
