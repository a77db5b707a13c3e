#include "model/json_writer.h"

#include "base/text.h"

namespace culprit {
namespace {

bool is_plain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\';
}

}  // namespace

void JsonWriter::write(std::string_view text) {
  out_ += '"';
  const auto bad = std::find_if_not(text.begin(), text.end(), is_plain);
  out_.append(text.begin(), bad);
  if (bad != text.end()) escape(to_utf8(text.substr(static_cast<size_t>(bad - text.begin()))));
  out_ += '"';
}

// Readers in many languages treat C1 controls, U+2028 and U+2029 as line ends.
void JsonWriter::escape(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out_ += '\\', out_ += c;
    } else if (c == '\n') {
      out_ += "\\n";
    } else if (c == '\t') {
      out_ += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      fmt::format_to(std::back_inserter(out_), "\\u{:04x}", byte);
    } else if (byte == 0xc2 && static_cast<unsigned char>(text[i + 1]) < 0xa0) {
      fmt::format_to(std::back_inserter(out_), "\\u{:04x}", static_cast<unsigned char>(text[++i]));
    } else if (const std::string_view three = text.substr(i, 3);
               three == "\xe2\x80\xa8" || three == "\xe2\x80\xa9") {
      out_ += three[2] == '\xa8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      out_ += c;
    }
  }
}

}  // namespace culprit
