#include "core/logs/counter.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"

namespace culprit::logs {
namespace {

// Seven equal steps in a row: random numbers show this once in some thousand forms.
constexpr uint32_t kProof = 7;

// The letters of a word in one integer: this runs for each number of each form's first lines.
constexpr uint64_t letters_of(std::string_view word) {
  uint64_t out = 0;
  for (const char c : word) out = out << 8 | static_cast<unsigned char>(lower(c));
  return out;
}

// Words before numbers of messages, processes and places, which may count up as regularly as iterations.
constexpr size_t kShortest = 2, kLongest = 8;  // letters of them
constexpr std::array<uint64_t, 12> kOtherNumbers = {
    letters_of("seq"),  letters_of("seqno"), letters_of("sequence"), letters_of("opcount"),
    letters_of("id"),   letters_of("pid"),   letters_of("tid"),      letters_of("port"),
    letters_of("slot"), letters_of("uid"),   letters_of("offset"),   letters_of("nonce")};

bool is_other_number(std::string_view word) {
  return word.size() >= kShortest && word.size() <= kLongest &&
         std::ranges::find(kOtherNumbers, letters_of(word)) != kOtherNumbers.end();
}

// Whether the word before the number at `at` names another kind of number.
bool counts_others(std::string_view text, size_t at) {
  size_t end = at;
  const auto is_between = [](char c) { return c == ' ' || c == '=' || c == ':' || c == '#' || c == '_'; };
  while (end > 0 && at - end < 3 && is_between(text[end - 1])) --end;
  size_t begin = end;
  while (begin > 0 && alpha(text[begin - 1])) --begin;
  if (!is_other_number(text.substr(begin, end - begin))) return false;
  // "batch_id=12", "step id: 5"
  return std::ranges::none_of(
      std::array<std::string_view, 4>{"step", "iter", "iteration", "batch"}, [&](std::string_view own) {
        return begin > own.size() &&
               std::ranges::equal(text.substr(begin - 1 - own.size(), own.size()), own, {}, lower);
      });
}

// Writes the first numbers of a text to `out`, as many as fit; returns how many.
size_t integers(std::string_view text, std::span<int64_t> out) {
  size_t count = 0;
  for (size_t i = 0; i < text.size() && count < out.size();) {
    const char c = text[i];
    if (c < '0' || c > '9') {
      ++i;
      continue;
    }
    const bool glued = i > 0 && (text[i - 1] == '.' || (text[i - 1] >= 'a' && text[i - 1] <= 'z') ||
                                 (text[i - 1] >= 'A' && text[i - 1] <= 'Z'));
    const bool other = glued || counts_others(text, i);
    int64_t value = 0;
    size_t digits = 0;
    while (i < text.size() && text[i] >= '0' && text[i] <= '9') {
      if (++digits < 17) value = value * 10 + (text[i] - '0');
      ++i;
    }
    const bool fraction = i + 1 < text.size() && text[i] == '.' && text[i + 1] >= '0' && text[i + 1] <= '9';
    out[count++] = other || fraction || digits > 12 ? -1 : value;  // -1 keeps the column, and never counts
    if (fraction)
      for (++i; i < text.size() && text[i] >= '0' && text[i] <= '9';) ++i;
  }
  return count;
}

}  // namespace

void CounterWatch::compare(std::span<const int64_t> now) {
  for (size_t c = 0; c < now.size(); ++c) {
    const int64_t step = now[c] < 0 || last_[c] < 0 ? 0 : now[c] - last_[c];
    const bool steady = step > 0 && (rises_[c] == 0 || step == step_[c]);
    rises_[c] = steady ? rises_[c] + 1 : step > 0 ? 1 : 0;
    step_[c] = step;
    if (rises_[c] >= kProof && column_ < 0) column_ = static_cast<int>(c);
  }
}

std::optional<int64_t> CounterWatch::see(uint32_t writer, std::string_view message) {
  if (seen_ >= kLook && column_ < 0) return std::nullopt;
  if (seen_ == 0) writer_ = writer;
  if (column_ < 0 && writer != writer_) return std::nullopt;
  // Runs for every line of a counting form: no allocation.
  std::array<int64_t, kColumns> numbers;
  const size_t most = column_ >= 0 ? static_cast<size_t>(column_) + 1 : kColumns;
  const std::span<const int64_t> now(numbers.data(), integers(message, std::span(numbers).first(most)));
  if (column_ >= 0) {
    const auto c = static_cast<size_t>(column_);
    return c < now.size() && now[c] >= 0 ? std::optional<int64_t>(now[c]) : std::nullopt;
  }
  ++seen_;
  if (now.size() == last_.size()) {
    compare(now);
  } else {
    rises_.assign(now.size(), 0);
    step_.assign(now.size(), 0);
  }
  last_.assign(now.begin(), now.end());
  if (decided()) last_ = step_ = {}, rises_ = {};  // frees memory: a job has many forms that do not count
  return std::nullopt;
}

}  // namespace culprit::logs
