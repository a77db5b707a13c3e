#include "app/daemon/intake/journal_source.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::app;

BOOST_AUTO_TEST_CASE(journalctl_reads_all_boots_of_this_machine_from_the_stored_entry) {
  const auto has = [](const std::vector<std::string>& words, const std::string& word) {
    return std::ranges::find(words, word) != words.end();
  };
  const auto first = journalctl_words("", "3d12", {}, 7 * kNsPerSecond);
  for (const char* word : {"--follow", "--no-tail", "--merge", "--system", "--all", "--quiet",
                           "--output=json", "_MACHINE_ID=3d12", "--since=@7"})
    BOOST_TEST(has(first, word), word);
  const JournalPlace place{0x0dc1c2ee46a344f7, 0x995904de0d1e9368, 0x1f, 0x6618c79c19093, 0x2b70};
  const auto later = journalctl_words("/srv/journal", "3d12", place, 7 * kNsPerSecond);
  BOOST_TEST(has(later, "--directory=/srv/journal"));
  BOOST_TEST(has(later, "--cursor=s=0dc1c2ee46a344f7995904de0d1e9368;i=1f;t=6618c79c19093;x=2b70"));
  for (const char* word : {"--system", "_MACHINE_ID=3d12", "--since=@7"}) BOOST_TEST(!has(later, word), word);
}
