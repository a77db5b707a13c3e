#include "ingest/pickle.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cstring>
#include <vector>

#include "base/limits.h"

namespace culprit::ingest {
namespace {

using Ref = DataTree::Ref;

// Names of known opcodes that are not data, as in Python's pickletools.
std::string_view refused_name(uint8_t op) {
  switch (op) {
    case 'c':
      return "GLOBAL";
    case 0x93:
      return "STACK_GLOBAL";
    case 'R':
      return "REDUCE";
    case 'b':
      return "BUILD";
    case 'i':
      return "INST";
    case 'o':
      return "OBJ";
    case 0x81:
      return "NEWOBJ";
    case 0x92:
      return "NEWOBJ_EX";
    case 0x82:
      return "EXT1";
    case 0x83:
      return "EXT2";
    case 0x84:
      return "EXT4";
    case 'P':
      return "PERSID";
    case 'Q':
      return "BINPERSID";
    case 0x97:
      return "NEXT_BUFFER";
    case 0x98:
      return "READONLY_BUFFER";
    case 0x8f:
      return "EMPTY_SET";
    case 0x90:
      return "ADDITEMS";
    case 0x91:
      return "FROZENSET";
    default:
      return "";
  }
}

class Machine {
 public:
  explicit Machine(std::string_view bytes) : bytes_(bytes) {}

  Result<ReadTree> run() {
    while (!stopped_ && out_.problem.empty()) {
      op_at_ = at_;
      if (at_ >= bytes_.size()) {
        damage("is cut off");
        break;
      }
      const auto op = static_cast<uint8_t>(bytes_[at_++]);
      if (const std::string_view name = refused_name(op); !name.empty())
        return fail(ErrorCode::kDenied,
                    fmt::format("is refused: opcode {} at byte {} is none of plain data", name, op_at_));
      if (const std::string_view why = out_.tree.refusal(); !why.empty()) {
        damage(why);
        break;
      }
      if (!number(op) && !text(op) && !container(op) && !memo(op)) control(op);
    }
    finish();
    return std::move(out_);
  }

 private:
  void damage(std::string_view what) {
    if (out_.problem.empty()) out_.offset = op_at_;
    if (out_.problem.empty()) out_.problem = what;
  }

  // Reads `n` bytes of an argument. If fewer are left, the pickle is damaged and the result is empty.
  std::string_view read_bytes(uint64_t n) {
    if (n > bytes_.size() - at_) {
      damage("is cut off");
      at_ = bytes_.size();
      return {};
    }
    const std::string_view out = bytes_.substr(at_, n);
    at_ += n;
    return out;
  }

  uint64_t unsigned_of(size_t width) {
    uint64_t out = 0;
    const std::string_view raw = read_bytes(width);
    for (size_t i = 0; i < raw.size(); ++i) out |= uint64_t{static_cast<uint8_t>(raw[i])} << (8 * i);
    return out;
  }

  std::string_view line() {
    const size_t end = bytes_.find('\n', at_);
    if (end == bytes_.npos) {
      damage("is cut off");
      at_ = bytes_.size();
      return {};
    }
    const std::string_view out = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return out.ends_with('\r') ? out.substr(0, out.size() - 1) : out;
  }

  void push(Ref value) {
    if (out_.problem.empty()) stack_.push_back(value);
  }

  // Integers beyond 64 bits do not occur in dumps: they become null.
  void push_long(std::string_view raw) {
    if (raw.size() > 8) {
      push(out_.tree.add_null());
      return;
    }
    uint64_t value = !raw.empty() && (raw.back() & 0x80) ? ~uint64_t{0} : 0;
    for (size_t i = 0; i < raw.size(); ++i) {
      value &= ~(uint64_t{0xff} << (8 * i));
      value |= uint64_t{static_cast<uint8_t>(raw[i])} << (8 * i);
    }
    push(out_.tree.add_int(static_cast<int64_t>(value)));
  }

  void push_decimal(std::string_view digits) {
    if (digits.ends_with('L')) digits.remove_suffix(1);
    int64_t value = 0;
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error == std::errc::result_out_of_range)
      push(out_.tree.add_null());
    else if (error != std::errc() || stop != digits.data() + digits.size())
      damage("is damaged: a number is none");
    else
      push(out_.tree.add_int(value));
  }

  void push_real(std::string_view digits) {
    double value = 0;
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || stop != digits.data() + digits.size())
      return damage("is damaged: a number is none");
    push(out_.tree.add_real(value));
  }

  bool number(uint8_t op) {
    switch (op) {
      case 'N':
        push(out_.tree.add_null());
        return true;
      case 0x88:
      case 0x89:
        push(out_.tree.add_bool(op == 0x88));
        return true;
      case 'I': {
        const std::string_view digits = line();
        if (digits == "00" || digits == "01")
          push(out_.tree.add_bool(digits == "01"));
        else
          push_decimal(digits);
        return true;
      }
      case 'J':
        push(out_.tree.add_int(static_cast<int32_t>(unsigned_of(4))));
        return true;
      case 'K':
        push(out_.tree.add_int(static_cast<int64_t>(unsigned_of(1))));
        return true;
      case 'M':
        push(out_.tree.add_int(static_cast<int64_t>(unsigned_of(2))));
        return true;
      case 'L':
        push_decimal(line());
        return true;
      case 0x8a:
        push_long(read_bytes(unsigned_of(1)));
        return true;
      case 0x8b:
        push_long(read_bytes(unsigned_of(4)));
        return true;
      case 'F':
        push_real(line());
        return true;
      case 'G': {
        uint64_t bits = 0;
        for (const char c : read_bytes(8)) bits = bits << 8 | static_cast<uint8_t>(c);
        push(out_.tree.add_real(std::bit_cast<double>(bits)));
        return true;
      }
      default:
        return false;
    }
  }

  void push_text(uint64_t size) { push(out_.tree.add_text(read_bytes(size))); }

  bool text(uint8_t op) {
    switch (op) {
      case 'S': {  // quoted; escapes are not decoded
        std::string_view quoted = line();
        if (quoted.size() >= 2 && (quoted[0] == '\'' || quoted[0] == '"') && quoted.back() == quoted[0])
          quoted = quoted.substr(1, quoted.size() - 2);
        push(out_.tree.add_text(quoted));
        return true;
      }
      case 'V':
        push(out_.tree.add_text(line()));
        return true;
      case 'U':
      case 'C':
      case 0x8c:
        push_text(unsigned_of(1));
        return true;
      case 'T':
      case 'B':
      case 'X':
        push_text(unsigned_of(4));
        return true;
      case 0x8d:
      case 0x8e:
      case 0x96:
        push_text(unsigned_of(8));
        return true;
      default:
        return false;
    }
  }

  // The index of the first value since the last mark; removes the mark.
  size_t since_mark() {
    if (marks_.empty()) {
      damage("is damaged: a mark is missing");
      return stack_.size();
    }
    const size_t mark = marks_.back();
    marks_.pop_back();
    return mark;
  }

  // Whether `n` values are on the stack above the last mark.
  bool have(size_t n) {
    const size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() >= floor + n) return true;
    damage("is damaged: a value is missing");
    return false;
  }

  DataTree::Members values_from(size_t first) const { return {stack_.data() + first, stack_.size() - first}; }

  void fold_tuple(size_t first) {
    const Ref tuple = out_.tree.add_list(values_from(first));
    stack_.resize(first);
    push(tuple);
  }

  void fold_table(size_t first) {
    if ((stack_.size() - first) % 2) return damage("is damaged: a key has no value");
    const Ref table = out_.tree.add_table(values_from(first));
    stack_.resize(first);
    push(table);
  }

  // Moves the values from `first` on into the container below them.
  void store(size_t first, DataTree::Kind kind) {
    if (first == 0 || first > stack_.size() || out_.tree.kind(stack_[first - 1]) != kind)
      return damage("is damaged: values without their list or table");
    const DataTree::Members values = values_from(first);
    if (kind == DataTree::Kind::kTable && values.size() % 2) return damage("is damaged: a key has no value");
    out_.tree.append(stack_[first - 1], values);
    stack_.resize(first);
  }

  bool container(uint8_t op) {
    using Kind = DataTree::Kind;
    const auto last = [&](size_t n) { return have(n) ? stack_.size() - n : stack_.size(); };
    switch (op) {
      case '(':
        if (marks_.size() >= limits::kNesting)
          damage("is nested too deeply");
        else
          marks_.push_back(stack_.size());
        return true;
      case ']':
        push(out_.tree.add_list());
        return true;
      case '}':
        push(out_.tree.add_table());
        return true;
      case ')':
        push(out_.tree.add_list());
        return true;
      case 'l':
      case 't':
        fold_tuple(since_mark());
        return true;
      case 'd':
        fold_table(since_mark());
        return true;
      case 0x85:
      case 0x86:
      case 0x87:
        if (have(op - 0x84u)) fold_tuple(stack_.size() - (op - 0x84u));
        return true;
      case 'a':
        if (have(2)) store(last(1), Kind::kList);
        return true;
      case 'e':
        store(since_mark(), Kind::kList);
        return true;
      case 's':
        if (have(3)) store(last(2), Kind::kTable);
        return true;
      case 'u':
        store(since_mark(), Kind::kTable);
        return true;
      default:
        return false;
    }
  }

  // Python and torch number memo entries from 0.
  void put(uint64_t name) {
    if (!have(1)) return;
    if (name >= limits::kDumpValues || name > bytes_.size()) return damage("remembers too much");
    if (name >= memo_.size()) memo_.resize(name + 1, kNothing);
    remembered_ += memo_[name] == kNothing;
    memo_[name] = stack_.back();
  }

  void get(uint64_t name) {
    if (name >= memo_.size() || memo_[name] == kNothing)
      return damage("is damaged: it asks for a value that it did not have");
    push(memo_[name]);
    // A value fetched repeatedly needs no own memory, but space on the stack.
    if (stack_.size() > limits::kDumpValues) damage("is too large");
  }

  uint64_t name_in_line() {
    const std::string_view digits = line();
    uint64_t name = 0;
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), name);
    if (error != std::errc() || stop != digits.data() + digits.size()) damage("is damaged: a number is none");
    return name;
  }

  bool memo(uint8_t op) {
    switch (op) {
      case 'p':
        put(name_in_line());
        return true;
      case 'q':
        put(unsigned_of(1));
        return true;
      case 'r':
        put(unsigned_of(4));
        return true;
      case 0x94:
        put(remembered_);
        return true;
      case 'g':
        get(name_in_line());
        return true;
      case 'h':
        get(unsigned_of(1));
        return true;
      case 'j':
        get(unsigned_of(4));
        return true;
      default:
        return false;
    }
  }

  void control(uint8_t op) {
    switch (op) {
      case 0x80:
        if (const uint64_t protocol = unsigned_of(1); protocol > 5)
          damage(fmt::format("is of protocol {}, which is not known", protocol));
        break;
      case 0x95:  // a frame: its content is read as usual
        unsigned_of(8);
        break;
      case '.':
        if (have(1)) stopped_ = true;
        break;
      case '0':
        if (!marks_.empty() && marks_.back() == stack_.size())
          marks_.pop_back();
        else if (have(1))
          stack_.pop_back();
        break;
      case '1':
        stack_.resize(since_mark());
        break;
      case '2':
        if (have(1)) push(stack_.back());
        break;
      default:
        damage(fmt::format("is damaged: there is no opcode {:#04x}", op));
    }
  }

  // After a cut: moves pending values into the lists and tables below them.
  void finish() {
    using Kind = DataTree::Kind;
    if (!stopped_) {
      while (!marks_.empty()) {
        const size_t first = marks_.back();
        marks_.pop_back();
        if (first == 0 || first > stack_.size()) continue;
        const Ref into = stack_[first - 1];
        const Kind kind = out_.tree.kind(into);
        DataTree::Members values = values_from(first);
        if (kind == Kind::kTable) values = values.first(values.size() & ~size_t{1});
        if (kind == Kind::kList || kind == Kind::kTable) out_.tree.append(into, values);
        stack_.resize(first);
      }
    }
    if (stack_.empty()) return;
    out_.root = stopped_ ? stack_.back() : stack_.front();
  }

  std::string_view bytes_;
  size_t at_ = 0, op_at_ = 0;
  bool stopped_ = false;
  std::vector<Ref> stack_;
  std::vector<size_t> marks_;                          // indices on the stack
  static constexpr Ref kNothing = (Ref{1} << 31) - 1;  // beyond the values of any tree
  std::vector<Ref> memo_;
  uint64_t remembered_ = 0;
  ReadTree out_;
};

}  // namespace

Result<ReadTree> read_pickle(std::string_view bytes) { return Machine(bytes).run(); }

}  // namespace culprit::ingest
