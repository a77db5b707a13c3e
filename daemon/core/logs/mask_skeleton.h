// A key by which the form of a message is remembered, far cheaper than the form: the message with each number
// cut to one digit. Masking looks at the kinds of bytes, not at the digits, and at the length of a run of
// digits in a few places only, where the key keeps it; so messages of equal key have equal forms
// (mask_skeleton_test.cc holds it against form_hash). Messages of one form may have several keys. Pure, any
// thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace culprit::logs {

// 0: this message has no key (it is long, or has a terminal's escapes, backslashes or a progress bar).
uint64_t form_key(std::string_view message);

}  // namespace culprit::logs
