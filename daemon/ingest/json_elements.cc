#include "ingest/json_elements.h"

#include <algorithm>
#include <utility>

namespace culprit::ingest {
namespace {

constexpr size_t kElementReadBytes = 256 << 10;
constexpr size_t kElementKeyMax = 256;

bool json_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
// Bytes that no JSON text has within a string.
bool ends_no_string(char c) { return c == '\n' || c == '\0'; }

}  // namespace

JsonElements::JsonElements(Decompressor bytes, std::string_view array, std::vector<Member> members,
                           size_t element_max)
    : bytes_(std::move(bytes)), array_(array), members_(std::move(members)), element_max_(element_max) {}

bool JsonElements::fill() {
  if (buffer_.empty()) buffer_.resize(kElementReadBytes);
  filled_ = bytes_.read(buffer_.data(), buffer_.size());
  at_ = 0;
  content_bytes_ += filled_;
  return filled_ > 0;
}

bool JsonElements::next(Piece& out) {
  for (;;) {
    if (at_ >= filled_ && !fill()) return false;
    if (const size_t run = plain_run(); run > 0) {
      if (!over_) value_.append(buffer_, at_, run);
      at_ += run;
      if (value_.size() > value_max_) over_ = true;
      continue;
    }
    if (step(buffer_[at_++], out)) return true;
  }
}

// Bytes from here on that change no state: within a value, neither quotes nor brackets.
size_t JsonElements::plain_run() const {
  if ((state_ != State::kValue && state_ != State::kArray) || !begun_ || escaped_) return 0;
  size_t end = at_;
  for (; end < filled_; ++end) {
    const char c = buffer_[end];
    if (c == '"' || c == '\\' || c == '\0') break;
    if (in_string_ ? c == '\n' : (c == '{' || c == '}' || c == '[' || c == ']' || c == ',')) break;
  }
  return end - at_;
}

bool JsonElements::step(char c, Piece& out) {
  switch (state_) {
    case State::kBefore:
      if (c == '{') state_ = State::kKey;
      if (c == '[') {
        state_ = State::kArray;
        in_array_ = bare_ = seen_ = true;
        begin_value();
      }
      // Not a byte order mark.
      if (state_ == State::kBefore && !json_blank(c) && static_cast<unsigned char>(c) < 0x80) damage();
      return false;
    case State::kKey:
      if (in_string_) {
        if (c == '"' && !escaped_) {
          in_string_ = false;
          state_ = State::kColon;
        } else if (ends_no_string(c)) {
          damage();
        } else if (key_.size() < kElementKeyMax) {
          key_ += c;
        }
        escaped_ = c == '\\' && !escaped_;
      } else if (c == '"') {
        key_.clear();
        in_string_ = true;
        escaped_ = false;
      } else if (c == '}') {
        close();
      } else if (c != ',' && !json_blank(c)) {
        damage();
        opened_ = c == '{';
      }
      return false;
    case State::kColon:
      if (c == ':') {
        state_ = State::kValue;
        begin_value();
      } else if (!json_blank(c)) {
        damage();
      }
      return false;
    case State::kValue:
    case State::kArray:
      return value_byte(c) && end_value(out);
    case State::kResync:
      return resync(c);
    case State::kEnd:
      return false;
  }
  return false;
}

// Within the array `{"` begins an element. Before it, objects are no elements: a wanted key is looked for,
// also between what may be the quotes of two other texts.
bool JsonElements::resync(char c) {
  closing_ = closing_ && json_blank(c);
  if (!seen_) {
    const auto wanted = [this](const Member& member) { return member.key == key_; };
    if (c != '"') {
      if (key_.size() < kElementKeyMax) key_ += c;
    } else if (key_ == array_ || std::any_of(members_.begin(), members_.end(), wanted)) {
      state_ = State::kColon;
    } else {
      key_.clear();
    }
    return false;
  }
  if (opened_ && c == '"') {
    state_ = State::kArray;
    in_array_ = true;
    begin_value();
    begun_ = in_string_ = true;
    depth_ = 1;
    value_ = "{\"";
  }
  opened_ = c == '{' || (opened_ && json_blank(c));
  return false;
}

void JsonElements::begin_value() {
  value_.clear();
  depth_ = 0;
  begun_ = in_string_ = escaped_ = over_ = false;
  value_max_ = element_max_;
  if (in_array_) return;
  value_max_ = 0;
  for (const Member& member : members_)
    if (member.key == key_) value_max_ = member.bytes_max;
}

// Whether the value has ended: a comma or the bracket of its parent follows, which is not part of it.
bool JsonElements::value_byte(char c) {
  if (!begun_) {
    if (json_blank(c)) return false;
    if (c == ',' || c == ']' || c == '}') return true;
    if (!in_array_ && c == '[' && key_ == array_) {
      state_ = State::kArray;
      in_array_ = seen_ = true;
      begin_value();
      return false;
    }
    begun_ = true;
  }
  if (in_string_) {
    if (ends_no_string(c)) {
      damage();
      return false;
    }
    in_string_ = c != '"' || escaped_;
    escaped_ = c == '\\' && !escaped_;
  } else if (c == '"') {
    in_string_ = true;
  } else if (c == '{' || c == '[') {
    ++depth_;
  } else if (depth_ == 0 && (c == ',' || c == ']' || c == '}')) {
    return true;
  } else if (c == '}' || c == ']') {
    --depth_;
  } else if (c == '\0') {
    damage();
    return false;
  }
  if (!over_) value_ += c;
  if (value_.size() > value_max_) over_ = true;
  return false;
}

bool JsonElements::end_value(Piece& out) {
  const char end = buffer_[at_ - 1];
  const bool element = in_array_, whole = begun_ && !over_ && value_max_ > 0;
  too_long_ += over_ && value_max_ > 0;
  piece_.swap(value_);
  if (end == ',' && !element) state_ = State::kKey;
  if (end == ']' && element) {
    state_ = State::kKey;
    in_array_ = false;
  }
  if ((end == '}' && !element) || (end == ']' && element && bare_)) close();
  if (end == ']' && !element) damage();
  begin_value();
  if (!whole) return false;
  out.element = element;
  out.key = element ? std::string_view() : std::string_view(key_);
  out.text = piece_;
  return true;
}

// After damage a bracket may be one of an inner value.
void JsonElements::close() {
  state_ = damages_ > 0 ? State::kResync : State::kEnd;
  closing_ = damages_ > 0;
  opened_ = false;
}

void JsonElements::damage() {
  ++damages_;
  in_array_ = closing_ = false;
  key_.clear();
  state_ = State::kResync;
  in_string_ = escaped_ = opened_ = false;
  value_.clear();
}

}  // namespace culprit::ingest
