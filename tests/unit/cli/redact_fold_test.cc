// What hides a word from a pattern and not from a reader.
#include "cli/redact_fold.h"

#include <boost/test/unit_test.hpp>
#include <utility>

#include "cli/redact.h"

namespace culprit::cli {
namespace {

BOOST_AUTO_TEST_CASE(disguised_names_of_secrets_are_read_as_a_person_reads_them) {
  const std::pair<const char*, const char*> cases[] = {
      {"\uff50\uff41\uff53\uff53\uff57\uff4f\uff52\uff44=hunter22", "password=[secret-1]"},
      {"\u0440\u0430ssword=hunter22", "password=[secret-1]"},
      {"p\u0430ssword=hunter22", "password=[secret-1]"},
      {"p%61ssword=hunter22", "password=[secret-1]"},
      {"token%3Dabcdef123456", "token%3D[secret-1]"},
      {"\\x70assword=hunter22", "password=[secret-1]"},
      {"\"to\\u006ben\": \"abcdef123456\"", "\"token\": \"[secret-1]\""},
      {"pass\\u200bword=hunter22", "password=[secret-1]"},
      {"to\x1b[31mken=abcdef123456\x1b[0m", "token=[secret-1]"},
      {"\u30d1\u30b9\u30ef\u30fc\u30c9\uff1ahimitsu1", "\u30d1\u30b9\u30ef\u30fc\u30c9:[secret-1]"}};
  for (const auto& [line, expected] : cases) {
    Redactor redactor({});
    BOOST_TEST(redactor.apply(line) == expected);
  }
}

BOOST_AUTO_TEST_CASE(what_disguises_nothing_stays) {
  for (const char* line :
       {"\u043e\u0448\u0438\u0431\u043a\u0430 disk", "format \"%4d %6f\" 50%", "C:\\lib\\x64\\bin",
        "caf\u00e9 \u00b5s na\u00efve", "\u30a8\u30e9\u30fc", "\x1b \xff\xe3 \xc3", "a\\u4e2db"})
    BOOST_TEST(folded(line) == line);
}

BOOST_AUTO_TEST_CASE(short_names_of_hosts_go_where_the_report_has_them) {
  Redactor redactor({});
  redactor.learn_host("dgx-a100-03");
  redactor.learn_host("gpu");  // a word of sentences
  BOOST_TEST(redactor.apply("DGX-A100-03: gpu 3 down, dgx-a100-031 is not, dgx-a100-03.log") ==
             "host-1.example: gpu 3 down, dgx-a100-031 is not, host-1.example.log");
  Redactor keeps({.keep_hosts = true});
  keeps.learn_host("dgx-a100-03");
  BOOST_TEST(keeps.apply("dgx-a100-03") == "dgx-a100-03");
}

}  // namespace
}  // namespace culprit::cli
