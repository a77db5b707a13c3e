#include "base/wide_text.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace std::string_literals;

namespace {

std::string wide(std::u16string_view text, bool big) {
  std::string out;
  for (const char16_t c : text) {
    const char high = static_cast<char>(c >> 8), low = static_cast<char>(c & 0xff);
    out += big ? high : low;
    out += big ? low : high;
  }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(text_in_utf_16_is_read_however_it_is_cut) {
  const std::u16string text = u"\ufeffRuntimeError: CUDA error\r\nGrüße 上海 \U0001f600\nend\n";
  const std::string_view expected = "RuntimeError: CUDA error\r\nGrüße 上海 \U0001f600\nend\n";
  for (const bool big : {false, true}) {
    const std::string bytes = wide(text, big);
    for (size_t cut = 2; cut < bytes.size(); ++cut) {
      WideText reader;
      std::string out;
      for (const std::string& part : {bytes.substr(0, cut), bytes.substr(cut)}) {
        BOOST_TEST(reader.takes(part), cut);
        reader.decode(part, out);
      }
      BOOST_TEST(out == expected, cut);
    }
  }
}

BOOST_AUTO_TEST_CASE(text_in_utf_16_is_recognised_without_its_mark_and_its_end_too) {
  WideText reader;
  const std::string bytes = wide(u"step=1 loss=2.5\nstep=2 loss=2.5\n", false);
  BOOST_TEST(reader.takes(bytes.substr(6)));
  BOOST_TEST(!reader.takes("2026-11-21 02:12:09,123 step=3 loss=2.5\n"));
  for (const std::string& other :
       {"plain text of a log\n"s, std::string(300, '\0'), "a\0b\0c\0 and so on, xargs -0 style"s,
        "\xff\xfe\0\0x\0\0\0"s, "\0\0\0\0RuntimeError: x\n"s, "caf\xe9 in Latin-1, a line of it\n"s})
    BOOST_TEST(!reader.takes(other), other);
}

BOOST_AUTO_TEST_CASE(what_is_no_character_of_utf_16_becomes_a_replacement) {
  WideText reader;
  std::string out;
  const std::string bytes = wide(u"\ufeffa\xd800z\xdc00\xd800\xd83d\xde00", false);
  BOOST_TEST(reader.takes(bytes));
  reader.decode(bytes, out);
  BOOST_TEST(out == "a\ufffdz\ufffd\ufffd\U0001f600");
}
