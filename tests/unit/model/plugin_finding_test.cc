#include "model/plugin_finding.h"

#include <boost/test/unit_test.hpp>

#include "base/limits.h"

using namespace culprit;

namespace {

PluginFinding largest(char of) {
  PluginFinding f;
  for (const auto text : kPluginFindingTexts) f.*text = std::string(3 * limits::kEvidenceText, of);
  f.plugin = f.id = std::string(64, 'i');
  for (const auto name : {&PluginFinding::host, &PluginFinding::job, &PluginFinding::peer})
    f.*name = std::string(limits::kNameBytes, of);
  for (size_t i = 0; i < limits::kPluginValues; ++i)
    f.values.emplace_back(std::to_string(i) + std::string(limits::kNameBytes - 2, of),
                          -1.7976931348623157e308);
  return f;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(plugin_finding)

BOOST_AUTO_TEST_CASE(a_line_that_is_too_long_keeps_what_identifies_the_fault) {
  for (const char of : {'x', '\x01', '"'}) {
    const PluginFinding before = largest(of);
    BOOST_REQUIRE(finding_line(before).size() > limits::kLineBytes);
    PluginFinding after = before;
    BOOST_TEST(fit_line(after));
    BOOST_TEST(finding_line(after).size() + 1 <= limits::kLineBytes);
    for (const auto text : {&PluginFinding::plugin, &PluginFinding::id, &PluginFinding::host,
                            &PluginFinding::job, &PluginFinding::peer, &PluginFinding::part})
      BOOST_TEST((after.*text == before.*text));
    BOOST_TEST(before.title.starts_with(after.title.substr(0, 200)));
    BOOST_TEST(!fit_line(after), "once");
  }
}

BOOST_AUTO_TEST_CASE(a_line_that_fits_is_left_as_it_is) {
  PluginFinding f;
  f.plugin = "p";
  f.id = "a.b";
  f.title = f.text = std::string(limits::kEvidenceText, 'x');
  const std::string line = finding_line(f);
  BOOST_TEST(!fit_line(f));
  BOOST_TEST(finding_line(f) == line);
}

BOOST_AUTO_TEST_SUITE_END()
