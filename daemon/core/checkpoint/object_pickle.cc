#include "core/checkpoint/object_pickle.h"

#include <fmt/format.h>

#include <charconv>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "base/limits.h"

namespace culprit::checkpoint {
namespace {

using Kind = PickleValue::Kind;

struct Items {
  uint32_t start = 0, size = 0;  // in the arena
};

class Machine {
 public:
  Machine(std::string_view bytes, PickleVisitor& visitor) : bytes_(bytes), visitor_(visitor) {}

  Result<PickleEnd> run() {
    while (!stopped_ && !error_) {
      op_at_ = at_;
      if (at_ >= bytes_.size()) {
        cut();
        break;
      }
      step(static_cast<uint8_t>(bytes_[at_++]));
      if (stack_.size() > limits::kCheckpointPieces || arena_.size() > limits::kCheckpointMemo ||
          containers_.size() > limits::kCheckpointMemo || memo_.size() > limits::kCheckpointMemo)
        set_error(ErrorCode::kInvalid, "holds more values than are read");
    }
    if (error_) return tl::unexpected(*error_);
    PickleEnd out{at_, {}};
    if (!stack_.empty() && stack_.back().kind == Kind::kItems) {
      const auto items = items_of(stack_.back());
      out.items.assign(items.begin(), items.end());
    }
    return out;
  }

 private:
  void set_error(ErrorCode code, std::string text) {
    if (!error_) error_ = Error{code, std::move(text)};
  }
  void cut() { set_error(ErrorCode::kLimit, fmt::format("its pickle is cut at byte {}", at_)); }
  void damage(std::string_view what) {
    set_error(ErrorCode::kInvalid, fmt::format("its pickle is damaged at byte {}: {}", op_at_, what));
  }

  std::string_view take(uint64_t n) {
    if (n > bytes_.size() - at_) {
      at_ = bytes_.size();
      cut();
      return {};
    }
    const std::string_view out = bytes_.substr(at_, n);
    at_ += n;
    return out;
  }
  uint64_t number(size_t width) {
    uint64_t out = 0;
    const std::string_view raw = take(width);
    for (size_t i = 0; i < raw.size(); ++i) out |= uint64_t{static_cast<uint8_t>(raw[i])} << (8 * i);
    return out;
  }
  std::string_view line() {
    const size_t end = bytes_.find('\n', at_);
    if (end == bytes_.npos) {
      at_ = bytes_.size();
      cut();
      return {};
    }
    const std::string_view out = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return out;
  }

  void push(PickleValue value) { stack_.push_back(value); }
  void push(Kind kind) {
    PickleValue value;
    value.kind = kind;
    push(value);
  }
  void push_int(int64_t n) {
    PickleValue value;
    value.kind = Kind::kInt;
    value.number = n;
    push(value);
  }
  void push_text(std::string_view text, Kind kind = Kind::kText) {
    if (text.size() > UINT32_MAX) return damage("a text is too long");
    PickleValue value;
    value.kind = kind;
    value.size = static_cast<uint32_t>(text.size());
    value.chars = text.data();
    push(value);
  }
  void push_decimal(std::string_view digits) {
    if (digits.ends_with('L')) digits.remove_suffix(1);
    int64_t value = 0;
    const auto [stop, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (stop == digits.data() || bad == std::errc::invalid_argument) return damage("a number is none");
    push_int(value);
  }
  // A number of more than 64 bits is not used here.
  void push_long(std::string_view raw) {
    uint64_t value = !raw.empty() && (raw.back() & 0x80) ? ~uint64_t{0} : 0;
    for (size_t i = 0; i < raw.size() && i < 8; ++i) {
      value &= ~(uint64_t{0xff} << (8 * i));
      value |= uint64_t{static_cast<uint8_t>(raw[i])} << (8 * i);
    }
    push_int(static_cast<int64_t>(value));
  }

  // ---- lists, tuples, sets and tables: one kind, since only the fields of objects matter

  std::span<const PickleValue> items_of(const PickleValue& value) const {
    const Items& items = containers_[static_cast<size_t>(value.number)];
    if (items.size == 0) return {};
    return std::span(arena_).subspan(items.start, items.size);
  }
  void push_items(size_t first) {
    PickleValue value;
    value.kind = Kind::kItems;
    value.number = static_cast<int64_t>(containers_.size());
    containers_.push_back(
        {static_cast<uint32_t>(arena_.size()), static_cast<uint32_t>(stack_.size() - first)});
    arena_.insert(arena_.end(), stack_.begin() + static_cast<ptrdiff_t>(first), stack_.end());
    stack_.resize(first);
    push(value);
  }
  // Moves the values from `first` on into the value below them. A container that grows after later ones were
  // created is too large for an object's fields, and loses its content.
  void store(size_t first) {
    const size_t floor = marks_.empty() ? 0 : marks_.back();
    if (first <= floor || first > stack_.size()) return damage("values without a container");
    const PickleValue& into = stack_[first - 1];
    if (into.kind == Kind::kItems) {
      Items& items = containers_[static_cast<size_t>(into.number)];
      if (items.size == 0) items.start = static_cast<uint32_t>(arena_.size());
      if (items.start + items.size == arena_.size()) {
        items.size += static_cast<uint32_t>(stack_.size() - first);
        arena_.insert(arena_.end(), stack_.begin() + static_cast<ptrdiff_t>(first), stack_.end());
      } else {
        items.size = 0;
      }
    } else if (into.kind != Kind::kObject) {
      return damage("values without a container");
    }
    stack_.resize(first);
  }
  // The content is not needed any more.
  void forget(const PickleValue& value) {
    if (value.kind != Kind::kItems) return;
    Items& items = containers_[static_cast<size_t>(value.number)];
    if (items.start + items.size == arena_.size()) arena_.resize(items.start);
    items.size = 0;
  }

  size_t since_mark() {
    if (marks_.empty()) {
      damage("a mark is missing");
      return stack_.size();
    }
    const size_t mark = marks_.back();
    marks_.pop_back();
    return mark;
  }
  bool have(size_t n) {
    const size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() >= floor + n) return true;
    damage("a value is missing");
    return false;
  }

  // ---- names, calls and fields

  void push_global(std::string_view module, std::string_view name) {
    const std::string& whole = *names_.insert(fmt::format("{} {}", module, name)).first;
    if (names_.size() > limits::kZipEntries) return damage("names too many classes");
    if (!visitor_.allowed(whole))
      return set_error(
          ErrorCode::kDenied,
          fmt::format("is refused: its pickle names {}.{}, which no such index has", module, name));
    push_text(whole, Kind::kGlobal);
  }
  // Replaces the values from `first` on, the first of them the class, by an object without content.
  void make_object(size_t first) {
    if (first >= stack_.size()) return damage("a class is missing");
    PickleValue made = stack_[first];
    if (made.kind != Kind::kGlobal && made.kind != Kind::kObject) return damage("no class is called");
    made.kind = Kind::kObject;
    for (size_t i = stack_.size(); i-- > first;) forget(stack_[i]);
    stack_.resize(first);
    push(made);
  }
  void build() {
    if (!have(2)) return;
    const PickleValue state = stack_.back();
    stack_.pop_back();
    const PickleValue& object = stack_.back();
    if (object.kind == Kind::kObject && state.kind == Kind::kItems) {
      auto fields = items_of(state);
      // Of a class with slots: (None, fields).
      if (fields.size() == 2 && fields[0].kind == Kind::kNone && fields[1].kind == Kind::kItems)
        fields = items_of(fields[1]);
      visitor_.on_fields(object.text(), fields);
    }
    forget(state);
  }
  void refer() {
    if (!have(1)) return;
    const PickleValue id = stack_.back();
    stack_.pop_back();
    if (id.kind == Kind::kItems) visitor_.on_reference(items_of(id));
    forget(id);
    push_text("", Kind::kObject);
  }

  void put(uint64_t name) {
    if (!have(1)) return;
    if (name == memo_.size())
      memo_.push_back(stack_.back());
    else if (name < memo_.size())
      memo_[name] = stack_.back();
    else
      sparse_[name] = stack_.back();
    if (sparse_.size() > limits::kZipEntries) damage("it remembers too much");
  }
  void get(uint64_t name) {
    if (name < memo_.size()) return push(memo_[name]);
    const auto at = sparse_.find(name);
    if (at == sparse_.end()) return damage("it asks for a value that it did not have");
    push(at->second);
  }
  uint64_t name_in_line() {
    const std::string_view digits = line();
    uint64_t name = 0;
    const auto [stop, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), name);
    if (bad != std::errc() || stop != digits.data() + digits.size()) damage("a number is none");
    return name;
  }

  void step(uint8_t op) {
    if (!scalar(op) && !container(op) && !object(op) && !control(op))
      damage(fmt::format("there is no opcode {:#04x}", op));
  }

  bool scalar(uint8_t op) {
    switch (op) {
      case 'N':
        return push(Kind::kNone), true;
      case 0x88:
      case 0x89:
        push(Kind::kBool);
        stack_.back().number = op == 0x88;
        return true;
      case 'I':
      case 'L':
        return push_decimal(line()), true;
      case 'J':
        return push_int(static_cast<int32_t>(number(4))), true;
      case 'K':
        return push_int(static_cast<int64_t>(number(1))), true;
      case 'M':
        return push_int(static_cast<int64_t>(number(2))), true;
      case 0x8a:
        return push_long(take(number(1))), true;
      case 0x8b:
        return push_long(take(number(4))), true;
      case 'F':
        return line(), push(Kind::kReal), true;
      case 'G':
        return take(8), push(Kind::kReal), true;
      case 'S':
      case 'V':
        return push_text(line()), true;
      case 'U':
      case 'C':
      case 0x8c:
        return push_text(take(number(1))), true;
      case 'T':
      case 'B':
      case 'X':
        return push_text(take(number(4))), true;
      case 0x8d:
      case 0x8e:
      case 0x96:
        return push_text(take(number(8))), true;
      default:
        return false;
    }
  }

  bool container(uint8_t op) {
    switch (op) {
      case ']':
      case '}':
      case ')':
      case 0x8f:
        return push_items(stack_.size()), true;
      case 'l':
      case 't':
      case 'd':
      case 0x91:
        return push_items(since_mark()), true;
      case 0x85:
      case 0x86:
      case 0x87:
        if (have(op - 0x84u)) push_items(stack_.size() - (op - 0x84u));
        return true;
      case 'a':
        if (have(2)) store(stack_.size() - 1);
        return true;
      case 's':
        if (have(3)) store(stack_.size() - 2);
        return true;
      case 'e':
      case 'u':
      case 0x90:
        return store(since_mark()), true;
      default:
        return false;
    }
  }

  bool object(uint8_t op) {
    switch (op) {
      case 'c': {
        const std::string_view module = line();
        return push_global(module, line()), true;
      }
      case 0x93:
        if (have(2)) {
          const std::string_view name = stack_.back().text(), module = stack_[stack_.size() - 2].text();
          stack_.resize(stack_.size() - 2);
          push_global(module, name);
        }
        return true;
      case 'R':
      case 0x81:
        if (have(2)) make_object(stack_.size() - 2);
        return true;
      case 0x92:
        if (have(3)) make_object(stack_.size() - 3);
        return true;
      case 'o':
        return make_object(since_mark()), true;
      case 'b':
        return build(), true;
      case 'Q':
        return refer(), true;
      default:
        return false;
    }
  }

  bool control(uint8_t op) {
    switch (op) {
      case 0x80:
        if (number(1) > 5) damage("its protocol is not known");
        return true;
      case 0x95:  // a frame: its content is read as usual
        return number(8), true;
      case '(':
        if (marks_.size() >= limits::kNesting) damage("it is nested too deeply");
        return marks_.push_back(stack_.size()), true;
      case '.':
        stopped_ = have(1);
        return true;
      case '0':
        if (!marks_.empty() && marks_.back() == stack_.size())
          marks_.pop_back();
        else if (have(1))
          stack_.pop_back();
        return true;
      case '1':
        return stack_.resize(since_mark()), true;
      case '2':
        if (have(1)) push(PickleValue(stack_.back()));
        return true;
      case 'p':
        return put(name_in_line()), true;
      case 'q':
        return put(number(1)), true;
      case 'r':
        return put(number(4)), true;
      case 0x94:
        return put(memo_.size()), true;
      case 'g':
        return get(name_in_line()), true;
      case 'h':
        return get(number(1)), true;
      case 'j':
        return get(number(4)), true;
      default:
        return false;
    }
  }

  std::string_view bytes_;
  PickleVisitor& visitor_;
  size_t at_ = 0, op_at_ = 0;
  bool stopped_ = false;
  std::optional<Error> error_;
  std::vector<PickleValue> stack_, arena_;
  std::deque<PickleValue> memo_;  // grows without a copy: an index remembers some ten values for each piece
  std::vector<size_t> marks_;     // indices on the stack
  std::deque<Items> containers_;
  std::unordered_map<uint64_t, PickleValue> sparse_;
  std::set<std::string> names_;
};

}  // namespace

Result<PickleEnd> read_objects(std::string_view bytes, PickleVisitor& visitor) {
  return Machine(bytes, visitor).run();
}

}  // namespace culprit::checkpoint
