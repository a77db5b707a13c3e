#include <nlohmann/json.hpp>

#include "base/limits.h"
#include "ingest/pickle.h"

namespace culprit::ingest {
namespace {

using Ref = DataTree::Ref;

// Receives the parser's events. After a cut it has the values before the cut.
class Builder {
 public:
  explicit Builder(ReadTree& out) : out_(out) {}

  bool null() { return add(out_.tree.add_null()); }
  bool boolean(bool value) { return add(out_.tree.add_bool(value)); }
  bool number_integer(int64_t value) { return add(out_.tree.add_int(value)); }
  bool number_unsigned(uint64_t value) {
    return add(value > INT64_MAX ? out_.tree.add_null() : out_.tree.add_int(static_cast<int64_t>(value)));
  }
  bool number_float(double value, const std::string&) { return add(out_.tree.add_real(value)); }
  bool string(std::string& value) { return add(out_.tree.add_own_text(std::move(value))); }
  bool binary(nlohmann::json::binary_t&) { return false; }
  bool start_object(size_t) { return open(out_.tree.add_table()); }
  bool start_array(size_t) { return open(out_.tree.add_list()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    key_ = out_.tree.add_own_text(std::move(name));
    return !out_.tree.full() || refuse("holds more values than are read");
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) {
    out_.problem = "is cut off or damaged";
    out_.offset = position;
    return false;
  }

 private:
  bool refuse(const char* why) {
    out_.problem = why;
    return false;
  }

  bool add(Ref value) {
    if (out_.tree.full()) return refuse("holds more values than are read");
    if (open_.empty()) {
      out_.root = value;
      return true;
    }
    if (out_.tree.kind(open_.back()) == DataTree::Kind::kTable) {
      const Ref pair[2] = {key_, value};
      return out_.tree.append(open_.back(), pair, 2) || refuse("is too large");
    }
    return out_.tree.append(open_.back(), &value, 1) || refuse("is too large");
  }

  bool open(Ref container) {
    if (!add(container)) return false;
    if (open_.size() >= limits::kDumpNesting) return refuse("is nested too deeply");
    open_.push_back(container);
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  ReadTree& out_;
  std::vector<Ref> open_;
  Ref key_ = 0;
};

}  // namespace

ReadTree read_json_tree(std::string_view text) {
  ReadTree out;
  Builder builder(out);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return out;
}

}  // namespace culprit::ingest
