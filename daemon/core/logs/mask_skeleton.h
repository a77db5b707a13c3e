// A cheap key for the form of a message: the message with each number cut to one digit. Masking depends on
// the classes of bytes, not on the digits. In a few places it depends on the length of a run of digits, so
// the key contains that length there. Messages of equal key therefore have equal forms (mask_skeleton_test.cc
// compares with form_hash); messages of one form may have several keys. Pure, any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace culprit::logs {

// 0: no key, because the message is long, or has terminal escapes, backslashes or a progress bar.
uint64_t form_key(std::string_view message);

}  // namespace culprit::logs
