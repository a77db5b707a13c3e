// Each check of `culprit plugin check` finds its fault, and nothing else.
#include "app/plugins/check.h"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "app/plugins/corpus.h"
#include "app/plugins/exports.h"
#include "app/plugins/words.h"
#include "plughost/events.h"

namespace culprit::app {
namespace {

std::vector<PluginCheckRow> rows_of(const std::string& library, const std::string& mode) {
  PluginCheckOptions options;
  options.library = library;
  options.host_program = CULPRIT_TEST_PLUGIN_HOST;
  if (!mode.empty()) options.values = {{"mode", mode}};
  std::vector<PluginCheckRow> rows;
  const auto done = check_plugin(options, [&](PluginCheckRow row) { rows.push_back(std::move(row)); });
  BOOST_REQUIRE(done);
  return rows;
}

// The checks that failed, "name: text; ".
std::string wrong(const std::string& mode, const std::string& library = CULPRIT_TEST_SHAKY) {
  std::string out;
  for (const PluginCheckRow& row : rows_of(library, mode))
    if (row.outcome == PluginCheckRow::Outcome::kWrong) out += row.check + ": " + row.text + "; ";
  return out;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

BOOST_AUTO_TEST_CASE(a_sound_plugin_passes_every_check) {
  std::string checks;
  for (const PluginCheckRow& row : rows_of(CULPRIT_TEST_SHAKY, "")) {
    BOOST_TEST((row.outcome != PluginCheckRow::Outcome::kWrong), row.check + ": " + row.text);
    checks += row.check + " ";
  }
  BOOST_TEST(checks ==
             "symbols rights interface create events findings words repeat time memory state allocations ");
}

BOOST_AUTO_TEST_CASE(a_plugin_that_works_has_a_cost) {
  PluginCheckOptions options;
  options.library = CULPRIT_TEST_SHAKY;
  options.host_program = CULPRIT_TEST_PLUGIN_HOST;
  const auto cost = check_plugin(options, [](PluginCheckRow) {});
  BOOST_REQUIRE(cost);
  BOOST_TEST(cost->event_ns > 0);
  BOOST_TEST(cost->memory_bytes > 0u);
}

BOOST_AUTO_TEST_CASE(a_word_that_reports_do_not_know_is_wrong_and_the_nearest_is_named) {
  PluginFinding finding;
  finding.id = "fan.stopped";
  BOOST_TEST(faults_of_words(finding).empty());  // absent words are no mistake
  finding.category = "hardware", finding.component = "nvlink", finding.symptom = "hang",
  finding.action = "fix";
  BOOST_TEST(faults_of_words(finding).empty());
  finding.component = "nvlnk", finding.action = "reboot the host";
  const std::vector<std::string> wanted = {
      "finding fan.stopped: component 'nvlnk' is not defined in plugin.h; did you mean 'nvlink'?",
      "finding fan.stopped: action 'reboot the host' is not defined in plugin.h"};
  BOOST_TEST(faults_of_words(finding) == wanted, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_word_that_reports_do_not_know_fails_the_check) {
  BOOST_TEST(wrong("word") ==
             "words: finding shaky.finding: component 'gpux' is not defined in plugin.h; did you "
             "mean 'gpu'?; ");
}

BOOST_AUTO_TEST_CASE(an_exported_symbol_besides_the_entry_is_wrong) {
  BOOST_TEST(wrong("", CULPRIT_TEST_SHAKY_SYMBOL) ==
             "symbols: it exports 1 symbol besides culprit_plugin_entry_v1: shaky_helper; compile with "
             "-fvisibility=hidden; ");
}

BOOST_AUTO_TEST_CASE(findings_that_depend_on_a_clock_are_wrong) {
  BOOST_TEST(has(wrong("clock"), "repeat: two runs over the same events differ from finding 1 on"));
}

BOOST_AUTO_TEST_CASE(findings_over_the_limit_are_wrong) {
  BOOST_TEST(has(wrong("flood"), "findings of one minute were dropped"));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they bring a malloc of their own
BOOST_AUTO_TEST_CASE(memory_that_grows_with_the_same_events_is_wrong) {
  BOOST_TEST(wrong("leak").starts_with("memory: "));
}

BOOST_AUTO_TEST_CASE(a_crash_when_allocations_fail_is_wrong) {
  BOOST_TEST(wrong("unchecked") == "allocations: from its allocation 2 on none succeeds: SIGSEGV ended it; ");
}
#endif

BOOST_AUTO_TEST_CASE(a_state_over_the_limit_is_wrong) {
  BOOST_TEST(wrong("state") == "state: save_state returns 2097152: no state is kept; ");
}

BOOST_AUTO_TEST_CASE(a_crash_at_the_end_is_wrong) {
  BOOST_TEST(wrong("destroy") == "create: SIGABRT ended it; ");
}

BOOST_AUTO_TEST_CASE(a_file_that_is_no_library_is_wrong_and_a_missing_one_is_an_error) {
  const std::string path = std::filesystem::temp_directory_path() / "culprit-check.so";
  std::ofstream(path) << "no library";
  BOOST_TEST(has(wrong("", path), "symbols: it is no ELF file; "));
  std::filesystem::remove(path);
  PluginCheckOptions options;
  options.library = path;
  BOOST_TEST(!check_plugin(options, [](PluginCheckRow) {}));
}

BOOST_AUTO_TEST_CASE(symbols_of_any_damaged_file_are_read_or_refused) {
  std::ifstream file(CULPRIT_TEST_SHAKY, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const auto found = exported_symbols(bytes);
  BOOST_REQUIRE(found);
  BOOST_TEST(*found == std::vector<std::string>{"culprit_plugin_entry_v1"}, boost::test_tools::per_element());
  for (size_t size = 0; size < bytes.size(); size += 97)
    (void)exported_symbols(std::string_view(bytes).substr(0, size));
  for (size_t at = 0; at < bytes.size(); ++at) {
    const char before = std::exchange(bytes[at], static_cast<char>(~bytes[at]));
    if (at < 64 || at + 4096 > bytes.size()) (void)exported_symbols(bytes);
    bytes[at] = before;
  }
}

BOOST_AUTO_TEST_CASE(the_corpus_has_every_kind_and_is_the_same_each_time) {
  uint64_t kinds = 0;
  const std::vector<CorpusBatch> once = corpus(3, {"a line"}), again = corpus(3, {"a line"});
  BOOST_REQUIRE_EQUAL(once.size(), again.size());
  for (size_t i = 0; i < once.size(); ++i) {
    BOOST_TEST((once[i].records == again[i].records));
    plughost::EventReader reader;
    BOOST_REQUIRE(reader.read(once[i].records));
    BOOST_TEST(reader.count() == once[i].count);
    for (size_t e = 0; e < reader.count(); ++e) kinds |= CULPRIT_BIT(reader.events()[e]->kind);
  }
  BOOST_TEST(kinds == 0xfeu);
}

}  // namespace
}  // namespace culprit::app
