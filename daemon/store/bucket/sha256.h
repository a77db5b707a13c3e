// SHA-256 of bytes in memory. Pure.
#pragma once

#include <string>
#include <string_view>

namespace culprit::store::bucket {

std::string sha256(std::string_view bytes);  // 32 bytes
std::string hex(std::string_view bytes);     // lower case

}  // namespace culprit::store::bucket
