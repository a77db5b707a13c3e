// Each line of redact_samples.txt: what it marks goes, all else stays.
#include <boost/test/unit_test.hpp>
#include <fstream>

#include "cli/redact.h"

namespace culprit::cli {
namespace {

struct Sample {
  std::string line;                           // without the marks
  std::vector<std::string> retained, secret;  // in turns, from what is kept
};

Sample parse(std::string_view text) {
  constexpr std::string_view kBegin = "\u00ab", kEnd = "\u00bb";
  Sample out;
  while (true) {
    const size_t begin = text.find(kBegin), end = text.find(kEnd, begin);
    out.retained.emplace_back(text.substr(0, begin));
    out.line += out.retained.back();
    if (begin == text.npos || end == text.npos) return out;
    out.secret.emplace_back(text.substr(begin + kBegin.size(), end - begin - kBegin.size()));
    out.line += out.secret.back();
    text.remove_prefix(end + kEnd.size());
  }
}

// Whether `text` is what is kept with something, and no secret, between.
bool is_redacted(std::string_view text, const Sample& sample) {
  if (!text.starts_with(sample.retained[0])) return false;
  text.remove_prefix(sample.retained[0].size());
  for (size_t i = 1; i < sample.retained.size(); ++i) {
    const bool last = i + 1 == sample.retained.size();
    if (last && !text.ends_with(sample.retained[i])) return false;
    const size_t end = last ? text.size() - sample.retained[i].size() : text.find(sample.retained[i], 1);
    if (end == text.npos || end == 0) return false;
    if (text.substr(0, end).find(sample.secret[i - 1]) != text.npos) return false;
    text.remove_prefix(end + sample.retained[i].size());
  }
  return text.empty();
}

}  // namespace

BOOST_AUTO_TEST_CASE(of_200_common_lines_secrets_go_and_all_else_stays) {
  std::ifstream file(CULPRIT_SOURCE_DIR "/tests/unit/cli/redact_samples.txt");
  size_t with = 0, without = 0;
  for (std::string text; std::getline(file, text);) {
    if (text.empty() || text.starts_with('#')) continue;
    const Sample sample = parse(text);
    ++(sample.secret.empty() ? without : with);
    Redactor redactor({});
    redactor.learn(sample.line);
    const std::string out = redactor.apply(sample.line);
    BOOST_TEST(is_redacted(out, sample), text << "\n  became " << out);
    BOOST_TEST(redactor.apply(sample.line) == out);
  }
  BOOST_TEST(with + without >= 200u);
  BOOST_TEST(without >= 50u);
}

}  // namespace culprit::cli
