#include <nlohmann/json.hpp>

#include "base/limits.h"
#include "ingest/pickle.h"

namespace culprit::ingest {
namespace {

using Ref = DataTree::Ref;

// Receives the parser's events. After a cut, the tree has the values before the cut.
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
  bool string(std::string& value) { return add(out_.tree.add_own_text(value)); }
  bool binary(nlohmann::json::binary_t&) { return false; }
  bool start_object(size_t) { return open(true); }
  bool start_array(size_t) { return open(false); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) { return string(name); }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) {
    out_.problem = "is cut off or damaged";
    out_.offset = position;
    return false;
  }

  // Closes lists and tables left open by a cut. A key without a value is dropped.
  void finish() {
    while (!open_.empty()) close();
    if (!pending_.empty()) out_.root = pending_.front();
  }

 private:
  struct Open {
    size_t first;  // index of the first member in `pending_`
    bool table;
  };

  bool refuse(std::string_view why) {
    out_.problem = why;
    return false;
  }

  bool add(Ref value) {
    if (const std::string_view why = out_.tree.refusal(); !why.empty()) return refuse(why);
    pending_.push_back(value);
    return true;
  }

  bool open(bool table) {
    if (open_.size() >= limits::kNesting) return refuse("is nested too deeply");
    open_.push_back({pending_.size(), table});
    return true;
  }

  bool close() {
    const auto [first, table] = open_.back();
    open_.pop_back();
    DataTree::Members members(pending_.data() + first, pending_.size() - first);
    if (table) members = members.first(members.size() & ~size_t{1});
    const Ref done = table ? out_.tree.add_table(members) : out_.tree.add_list(members);
    pending_.resize(first);
    pending_.push_back(done);
    return true;
  }

  ReadTree& out_;
  std::vector<Ref> pending_;  // members of open lists and tables
  std::vector<Open> open_;
};

}  // namespace

ReadTree read_json_tree(std::string_view text) {
  ReadTree out;
  Builder builder(out);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  builder.finish();
  return out;
}

}  // namespace culprit::ingest
