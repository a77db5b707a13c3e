#include "core/logs/values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/ascii.h"
#include "base/text.h"

namespace culprit::logs {
namespace {

constexpr size_t kLineBytesRead = 2048;  // bytes of a line that are read: no progress line is longer
constexpr size_t kBetween = 24;          // separators between a key and its value
constexpr size_t kQualifiers = 4;        // words before a key that may qualify it

bool is_lower_letter(char c) { return c >= 'a' && c <= 'z'; }
// Characters allowed inside a key: "train_loss", "train/loss", "lm loss", "grad-norm".
bool joins(char c) { return c == ' ' || c == '_' || c == '-' || c == '/' || c == '.'; }

template <size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// Words that may qualify "loss" in the name of the whole training loss.
constexpr std::array<std::string_view, 30> kWholeWords = {
    "train",   "training", "lm",     "total",    "mean",  "average", "avg", "reduced", "global",  "batch",
    "running", "current",  "smooth", "smoothed", "model", "step",    "the", "value",   "epoch",   "iter",
    "final",   "overall",  "mlm",    "nll",      "ce",    "mse",     "bce", "cross",   "entropy", "sft"};
// Words in a line or key for an evaluation.
constexpr std::array<std::string_view, 8> kEvaluation = {"eval",  "evaluation", "evaluating", "val",
                                                         "valid", "validation", "test",       "dev"};
// Words between a key and its value.
constexpr std::array<std::string_view, 14> kFillers = {"is",      "was",    "became", "value",   "of",
                                                       "to",      "tensor", "np",     "float32", "float64",
                                                       "float16", "array",  "train",  "avg"};
constexpr std::array<std::string_view, 6> kScaled = {"loss", "grad", "amp", "fp16", "gradient", "dynamic"};

// Parses NaN or an infinity at `at`; sets `end`.
std::optional<double> word_number(std::string_view text, size_t at, size_t& end) {
  const bool negative = text[at] == '-';
  if (negative || text[at] == '+') ++at;
  std::optional<double> value;
  for (std::string_view word : {"nan", "infinity", "inf"}) {
    if (!text.substr(at).starts_with(word)) continue;
    value = word == "nan" ? std::numeric_limits<double>::quiet_NaN()
                          : (negative ? -1 : 1) * std::numeric_limits<double>::infinity();
    end = at + word.size();
    break;
  }
  if (value && text.substr(end).starts_with(".0")) end += 2;  // format of Lightning's bars
  if (value && end < text.size() && (is_lower_letter(text[end]) || digit(text[end]) || text[end] == '_'))
    return {};
  return value;
}

std::optional<double> value_at(std::string_view text, size_t at) {
  size_t end = 0;
  if (at >= text.size()) return {};
  if (const auto word = word_number(text, at, end)) return word;
  if (text[at] == '+') ++at;
  double value = 0;
  const char* first = text.data() + at;
  const auto [stop, error] = std::from_chars(first, text.data() + text.size(), value);
  if (error != std::errc() || stop == first) return {};
  // "3d" is a name, and "12/100" a count.
  const char next = stop < text.data() + text.size() ? *stop : ' ';
  const bool is_whole = std::find(first, stop, '.') == stop;
  if (is_lower_letter(next) || next == '_' || (next == '/' && is_whole)) return {};
  return value;
}

// The value after a key with its end at `at`, after separators and words like "is".
std::optional<double> value_after(std::string_view text, size_t at) {
  for (int words = 0; words < 3; ++words) {
    const size_t begin = at;
    while (at < text.size() && at - begin < kBetween && std::string_view(" :='\"[({").find(text[at]) != npos)
      ++at;
    if (at == begin && words == 0 && at < text.size() && !joins(text[at])) return {};
    if (at == begin && at < text.size() && (text[at] == '_' || text[at] == '/' || text[at] == '.')) ++at;
    if (const auto value = value_at(text, at)) return value;
    size_t end = at;
    while (end < text.size() && (is_lower_letter(text[end]) || digit(text[end]))) ++end;
    if (end == at || !is_one_of(text.substr(at, end - at), kFillers)) return {};
    at = end;
  }
  return {};
}

// The words of a key before the one at `at`, nearest first.
struct Qualifiers {
  std::array<std::string_view, kQualifiers> words;
  size_t size = 0;
};
Qualifiers qualifiers(std::string_view text, size_t at) {
  Qualifiers out;
  while (at > 0 && out.size < kQualifiers) {
    size_t end = at;
    while (end > 0 && joins(text[end - 1])) --end;
    size_t begin = end;
    while (begin > 0 && (is_lower_letter(text[begin - 1]) || digit(text[begin - 1]))) --begin;
    if (begin == end || end + 2 < at || digit(text[begin])) break;
    out.words[out.size++] = text.substr(begin, end - begin);
    at = begin;
  }
  return out;
}

enum class Loss : uint8_t { kWhole, kPart, kOther };

Loss kind_of_loss(std::string_view text, size_t at, size_t end) {
  // the qualifier follows: "loss_val", "loss/train"
  if (end < text.size() && (text[end] == '_' || text[end] == '/')) {
    size_t stop = end + 1;
    while (stop < text.size() && is_lower_letter(text[stop])) ++stop;
    const std::string_view suffix = text.substr(end + 1, stop - end - 1);
    if (is_one_of(suffix, kEvaluation)) return Loss::kOther;
    if (!suffix.empty() && !is_one_of(suffix, kWholeWords)) return Loss::kPart;
  }
  const Qualifiers before = qualifiers(text, at);
  for (size_t i = 0; i < before.size; ++i) {
    if (is_one_of(before.words[i], kEvaluation)) return Loss::kOther;
    // Only adjacent words qualify the key; farther words belong to the sentence.
    const char* after = before.words[i].data() + before.words[i].size();
    const bool touches = i == 0 || *after == '_' || *after == '/' || *after == '-' || *after == '.';
    if (!touches) break;
    if (!is_one_of(before.words[i], kWholeWords)) return Loss::kPart;
  }
  return Loss::kWhole;
}

bool is_bounded(std::string_view text, size_t at, size_t size) {
  const bool before = at == 0 || !(is_lower_letter(text[at - 1]) || digit(text[at - 1]));
  const bool after = at + size >= text.size() || !is_lower_letter(text[at + size]);
  return before && after;
}

// Calls `found(at)` for each occurrence of the whole word.
template <class Found>
void each(std::string_view text, std::string_view word, const Found& found) {
  for (size_t at = find_text(text, word); at != npos; at = find_text(text, word, at + 1))
    if (is_bounded(text, at, word.size())) found(at);
}

// The end of the letters of a suffix: "loss_train", "loss/step".
size_t suffix_end(std::string_view text, size_t end) {
  if (end >= text.size() || (text[end] != '_' && text[end] != '/')) return end;
  ++end;
  while (end < text.size() && is_lower_letter(text[end])) ++end;
  return end;
}

// A line reports an evaluation if a word before its first key says so.
bool is_evaluation(std::string_view text, size_t first_key) {
  const std::string_view before = text.substr(0, first_key);
  const auto has = [before](std::string_view part) { return find_text(before, part) != npos; };
  // Each word of kEvaluation contains one of these.
  if (!has("val") && !has("test") && !has("dev")) return false;
  bool found = false;
  for (const std::string_view word : kEvaluation) each(before, word, [&](size_t) { found = true; });
  return found;
}

void read_losses(std::string_view text, LineValues& out) {
  std::optional<double> part;
  size_t parts = 0;
  bool sound = false, checked = false, of_evaluation = false;
  each(text, "loss", [&](size_t at) {
    if (of_evaluation || out.loss) return;
    if (!checked) of_evaluation = is_evaluation(text, at);
    checked = true;
    if (of_evaluation) return;
    const Loss kind = kind_of_loss(text, at, at + 4);
    if (kind == Loss::kOther) return;
    const auto value = value_after(text, suffix_end(text, at + 4));
    if (!value) return;
    if (kind == Loss::kWhole) {
      out.loss = value;
    } else {
      sound |= std::isfinite(*value);
      part = value;
      ++parts;
    }
  });
  // If a line has only terms of the loss, the total counts as NaN if all of them are NaN.
  if (!out.loss && !of_evaluation && parts > 1 && !sound) out.loss = part;
}

void read_norm(std::string_view text, LineValues& out) {
  bool glued = false;
  for (size_t at = find_text(text, "norm"); at != npos; at = find_text(text, "norm", at + 1))
    glued = glued || (at > 0 && is_lower_letter(text[at - 1]));
  for (const std::string_view word : {"norm", "gnorm", "gradnorm"}) {
    if (word != "norm" && !glued) break;
    each(text, word, [&](size_t at) {
      if (out.norm) return;
      const Qualifiers before = qualifiers(text, at);
      const bool is_gradient = word != "norm" || (before.size > 0 && before.words[0].starts_with("grad"));
      if (is_gradient) out.norm = value_after(text, suffix_end(text, at + word.size()));
    });
  }
}

void read_rate(std::string_view text, LineValues& out) {
  const bool learning = find_text(text, "learning") != npos;
  for (const std::string_view word : {"lr", "learning rate", "learning_rate"}) {
    if (word != "lr" && !learning) break;
    each(text, word, [&](size_t at) {
      const bool is_part = at + word.size() < text.size() && text[at + word.size()] == '_';
      if (!out.rate && !is_part) out.rate = value_after(text, at + word.size());
    });
  }
}

void read_scale(std::string_view text, LineValues& out) {
  each(text, "scale", [&](size_t at) {
    const Qualifiers before = qualifiers(text, at);
    if (before.size == 0 || !is_one_of(before.words[0], kScaled)) return;
    const auto value = value_after(text, at + 5);
    // "Attempted loss scale: 2, reducing to 1": the smaller value applies from now on.
    if (value) out.scale = out.scale ? std::min(*out.scale, *value) : *value;
  });
  if (!out.scale) return;
  for (const std::string_view words : {"reducing to ", "reducing scale to "}) {
    const size_t at = find_text(text, words);
    if (at == npos) continue;
    if (const auto value = value_at(text, at + words.size())) out.scale = std::min(*out.scale, *value);
  }
}

// "number of nan iterations:   3 |"
bool counts(std::string_view text, std::string_view key) {
  const size_t at = find_text(text, key);
  if (at == npos) return false;
  const auto value = value_after(text, at + key.size());
  return value && *value > 0;
}

// Converts to lower case, with one blank per colour sequence.
std::string_view lowered(std::string_view text, char* room) {
  if (text.find('\x1b') == npos) return lower_ascii(text, room), std::string_view(room, text.size());
  size_t size = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    char c = text[at];
    if (c == '\x1b') {
      while (at < text.size() && text[at] != 'm') ++at;
      c = ' ';
    }
    room[size++] = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return {room, size};
}

}  // namespace

LineValues values_of(std::string_view message) {
  LineValues out;
  std::array<char, kLineBytesRead> room;
  const std::string_view low = lowered(message.substr(0, kLineBytesRead), room.data());
  const bool has_loss = find_text(low, "loss") != npos, has_norm = find_text(low, "norm") != npos;
  const bool overflows = find_text(low, "overflow") != npos;
  if (!has_loss && !has_norm && !overflows) return out;
  if (has_loss) read_losses(low, out);
  if (has_norm) read_norm(low, out);
  read_rate(low, out);
  read_scale(low, out);
  const bool iterations = find_text(low, "iterations") != npos;
  out.skipped = (overflows && low.find("skip") != npos) || (out.scale && low.find("reducing") != npos) ||
                (iterations && counts(low, "skipped iterations"));
  if (iterations && counts(low, "nan iterations")) out.loss = std::numeric_limits<double>::quiet_NaN();
  return out;
}

}  // namespace culprit::logs
