#include "core/checkpoint/json_scan.h"

#include <nlohmann/json.hpp>

#include "base/limits.h"

namespace culprit::checkpoint {
namespace {

class Walker {
 public:
  using Number = nlohmann::json::number_integer_t;
  using Unsigned = nlohmann::json::number_unsigned_t;
  using Float = nlohmann::json::number_float_t;

  explicit Walker(const std::function<void(const JsonPath&, const JsonScalar&)>& on) : on_(on) {}

  bool null() { return tell({}); }
  bool boolean(bool value) { return tell({JsonScalar::Kind::kBool, value}); }
  bool number_integer(Number value) { return tell({JsonScalar::Kind::kNumber, value}); }
  bool number_unsigned(Unsigned value) {
    return tell({JsonScalar::Kind::kNumber, static_cast<int64_t>(std::min<Unsigned>(value, INT64_MAX))});
  }
  bool number_float(Float, const std::string&) { return tell({JsonScalar::Kind::kNumber}); }
  bool string(std::string& value) { return tell({JsonScalar::Kind::kText, 0, value}); }
  bool binary(nlohmann::json::binary_t&) { return false; }
  bool start_object(size_t) { return open(); }
  bool start_array(size_t) { return open(); }
  bool key(std::string& value) {
    path_.back() = std::move(value);
    return true;
  }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool parse_error(size_t, const std::string&, const nlohmann::json::exception&) { return false; }

 private:
  bool tell(const JsonScalar& value) {
    on_(path_, value);
    return true;
  }
  bool open() {
    tell({JsonScalar::Kind::kEmpty});
    path_.emplace_back();
    return path_.size() <= limits::kNesting;
  }
  bool close() {
    path_.pop_back();
    return true;
  }

  const std::function<void(const JsonPath&, const JsonScalar&)>& on_;
  JsonPath path_;
};

// Python writes NaN and Infinity, which are invalid JSON, into its log of losses; this reads them as zeros.
std::string without_nan(std::string_view text) {
  std::string out(text);
  bool quoted = false;
  for (size_t at = 0; at < out.size(); ++at) {
    if (out[at] == '"') quoted = !quoted;
    if (quoted && out[at] == '\\') ++at;
    if (quoted) continue;
    for (const std::string_view word : {"NaN", "Infinity"})
      if (std::string_view(out).substr(at).starts_with(word)) {
        out[at] = '0';
        for (size_t i = 1; i < word.size(); ++i) out[at + i] = ' ';
      }
  }
  return out;
}

}  // namespace

bool scan_json(std::string_view text, const std::function<void(const JsonPath&, const JsonScalar&)>& on) {
  Walker walker(on);
  if (text.find("NaN") != text.npos || text.find("Infinity") != text.npos) {
    const std::string plain = without_nan(text);
    return nlohmann::json::sax_parse(plain.begin(), plain.end(), &walker);
  }
  return nlohmann::json::sax_parse(text.begin(), text.end(), &walker);
}

}  // namespace culprit::checkpoint
