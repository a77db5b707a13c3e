#include "core/logs/mask_skeleton.h"

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <unordered_map>

#include "core/logs/mask.h"

using culprit::logs::form_key;
using culprit::logs::form_text;

namespace {

struct Random {
  uint64_t state = 11;
  uint32_t below(uint32_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>((state >> 33) % n);
  }
  template <size_t N>
  std::string_view of(const char* const (&choices)[N]) {
    return choices[below(N)];
  }
};

// The same text with other digits, and runs of digits of other lengths.
std::string other_numbers(const std::string& text, Random& random) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] < '0' || text[i] > '9') {
      out += text[i];
      continue;
    }
    out += static_cast<char>('0' + random.below(10));
    if (random.below(4) == 0)
      out += static_cast<char>('0' + random.below(10));
    else if (random.below(5) == 0 && i > 0 && text[i - 1] >= '0' && text[i - 1] <= '9')
      out.pop_back();
  }
  return out;
}

// Forms by key; a key with two forms is reported.
struct Forms {
  std::unordered_map<uint64_t, std::string> forms;
  uint64_t shared = 0;
  void see(const std::string& text) {
    const uint64_t key = form_key(text);
    if (key == 0) return;
    std::string form = form_text(text);
    const auto [at, fresh] = forms.emplace(key, form);
    shared += !fresh;
    BOOST_REQUIRE_MESSAGE(at->second == form, text + "\n  " + at->second + "\n  " + form);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(messages_of_equal_key_have_equal_forms) {
  constexpr const char* kPieces[] = {
      "1",   "27",      "123456", "a",   "f",  "ab",  "cafe", "e9ba8a35", "rank", "GiB", "x",  "é",  "0x",
      "ms",  "B",       "Jun",    "Sun", ".",  ",",   ":",    "::",       "-",    "_",   "/",  "//", "(",
      ")",   "[",       "]",      "{",   "}",  "<*>", "<",    ">",        "=",    "+",   "@",  "#",  "%",
      "~",   "\"",      "'",      ";",   "!",  "?",   " ",    "  ",       "\t",   "|",   "%|", "\\", "\x1b[3",
      "://", "http://", "C:\\",   "()",  "[]", ".py", " ",    " ",        " "};
  Forms forms;
  Random random;
  for (int round = 0; round < 300'000; ++round) {
    std::string text;
    for (uint32_t n = 1 + random.below(round % 4 == 0 ? 80 : 12); n > 0; --n) text += random.of(kPieces);
    forms.see(text);
    forms.see(other_numbers(text, random));
  }
  BOOST_TEST(forms.shared > 100'000);
}

BOOST_AUTO_TEST_CASE(numbers_do_not_change_the_key) {
  BOOST_TEST(form_key("step 7 took 1.5 ms, chunk 90/512") ==
             form_key("step 1234 took 27.125 ms, chunk 136/51"));
  BOOST_TEST(form_key("tag cb4c5990 rank12") == form_key("tag f0f0f0f0f0 rank3"));
  BOOST_TEST(form_key("stream 0xb3a02b9983d9, at 03:35:37") == form_key("stream 0x1, at 3:35:37"));
  BOOST_TEST(form_key("lost 7") != form_key("found 7"));
}

BOOST_AUTO_TEST_CASE(what_needs_its_length_has_a_key_of_its_own_or_none) {
  BOOST_TEST(form_key("mac 1234:ab:cd:ef") != form_key("mac 12345:ab:cd:ef"));
  BOOST_TEST(form_key("ab123") != form_key("ab1234"));
  BOOST_TEST(form_key("at fe80::1234") != form_key("at fe80::12345"));
  const std::string behind_a_long_token = "at:" + std::string(200, 'x') + " ";
  BOOST_TEST(form_key(behind_a_long_token + "a/b.c-12") != form_key(behind_a_long_token + "a/b.c-123"));
  BOOST_TEST(form_key("12%|##  | 3/8") == 0);
  BOOST_TEST(form_key("\x1b[31m7") == 0);
  BOOST_TEST(form_key(std::string(2000, '1')) == 0);
}

BOOST_AUTO_TEST_CASE(messages_of_real_logs_with_equal_key_have_equal_forms) {
  const char* data = std::getenv("CULPRIT_DATA");
  if (!data) {
    BOOST_TEST_MESSAGE("CULPRIT_DATA is unset: passed over");
    return;
  }
  constexpr uint64_t kLines = 20'000;  // of a file: all its forms have occurred by then
  Random random;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data)) {
    const std::string name = entry.path().filename();
    if (!entry.is_regular_file() ||
        !(name.ends_with(".log") || name.ends_with(".txt") || name.ends_with(".out")))
      continue;
    Forms forms;
    std::ifstream file(entry.path());
    std::string line;
    for (uint64_t n = 0; n < kLines && std::getline(file, line); ++n) {
      forms.see(line);
      forms.see(other_numbers(line, random));
      const size_t word = line.find(' ', line.size() / 4);
      if (word != std::string::npos) forms.see(line.substr(word + 1));
    }
  }
}
