// Bytes as text of PostgreSQL's encode(…, 'hex'). Pure.
#pragma once

#include <optional>
#include <string>

namespace culprit::store::postgres {

std::string to_hex(const std::string& bytes);
// Nothing: it is no such text.
std::optional<std::string> from_hex(const std::string& text);

}  // namespace culprit::store::postgres
