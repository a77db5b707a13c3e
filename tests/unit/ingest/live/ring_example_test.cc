// examples/ring, as a user builds it.
#include "ring_fixtures.h"

#include <cstdio>

namespace culprit::ingest::testing {
namespace {

std::string output_of(const std::string& command) {
  std::string text;
  FILE* out = popen(command.c_str(), "r");
  BOOST_REQUIRE(out != nullptr);
  char bytes[256];
  while (const size_t got = fread(bytes, 1, sizeof bytes, out)) text.append(bytes, got);
  BOOST_TEST(pclose(out) == 0);
  return text;
}

BOOST_AUTO_TEST_CASE(the_example_runs_with_and_without_a_daemon) {
  RingFolder folder;
  BOOST_TEST(output_of(CULPRIT_RING_EXAMPLE " " + folder.path() + "/missing 2>&1") ==
             "not traced: " + folder.path() +
                 "/missing: No such file or directory\n100 steps, 0 records dropped\n");
  BOOST_TEST(output_of("SLURM_JOB_ID=4711 " CULPRIT_RING_EXAMPLE " " + folder.path()) ==
             "100 steps, 0 records dropped\n");
  RingReader reader({folder.path(), [] { return StreamId{1}; }, {}}, {});
  const RingReader::RingRead out = reader.round({1, 1});
  BOOST_REQUIRE_EQUAL(out.batch.opened.size(), 1u);
  BOOST_TEST(out.batch.opened[0].job == "4711");
  BOOST_TEST(out.batch.bytes() == 201u * 64);
}

BOOST_AUTO_TEST_CASE(the_header_compiles_as_strict_c_and_as_old_cxx) {
  RingFolder folder;
  const std::string source = CULPRIT_SOURCE_DIR "/examples/ring/ring.c";
  const std::string common =
      " -pedantic -Wall -Wextra -Werror -fsyntax-only -I" CULPRIT_SOURCE_DIR "/sdk/include ";
  for (const char* compiler :
       {"cc -std=c99", "cc -std=c11", "cc -std=gnu17", "c++ -x c++ -std=c++11", "c++ -x c++ -std=c++20"})
    BOOST_TEST(output_of(compiler + common + source + " 2>&1") == "");
  // After a system header, strict C99 lacks declarations: the error is one clear sentence.
  const std::string late = folder.path() + "/late.c";
  FILE* out = fopen(late.c_str(), "w");
  fputs("#include <stdio.h>\n#include <culprit/ring.h>\nint main(void) { return 0; }\n", out);
  fclose(out);
  const std::string reported =
      output_of("cc -std=c99" + common + late + " 2>&1 | grep -c 'define _DEFAULT_SOURCE'");
  BOOST_TEST(reported != "0\n");
}

}  // namespace
}  // namespace culprit::ingest::testing
