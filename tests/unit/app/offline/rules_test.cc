#include "app/config/rule_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>

#include "../fixtures.h"
#include "app/offline/diagnose.h"
#include "core/rules/library.h"

using namespace culprit;
using namespace culprit::app;
using culprit::app::test::Folder;

namespace fs = std::filesystem;

namespace {

std::string rule(const std::string& id, const std::string& text, const std::string& more = "") {
  return "rule { id = \"" + id +
         "\", engine = 1, title = \"t\", category = \"platform\", component = \"platform\", " +
         "severity = \"error\", remedy = \"r\", match = { template = \"" + text + "\" }, " + more +
         "examples = { hit = \"" + text + "\", miss = \"all is well\" } }\n";
}

RuleOptions only(std::vector<std::string> paths) { return {std::move(paths), false, false}; }

std::vector<std::string> names(const RuleFiles& files, const Folder& folder) {
  std::vector<std::string> out;
  for (const rules::RuleText& t : files.texts)
    out.push_back(fs::path(t.file).lexically_relative(folder.path));
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_shipped_library_is_proven) {
  std::vector<rules::RuleText> texts;
  for (const rules::LibraryFile& f : rules::library())
    texts.push_back({std::string(f.name), std::string(f.text)});
  BOOST_TEST(texts.size() > 0);
  const auto set = rules::Ruleset::load(texts);
  if (!set)
    for (const rules::RuleError& e : set.error()) BOOST_ERROR(rules::format_error(e));
}

BOOST_AUTO_TEST_CASE(the_shipped_library_is_what_stands_in_rules) {
  const fs::path root = fs::path(CULPRIT_SOURCE_DIR) / "rules";
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root))
    files += entry.path().extension() == ".lua" && entry.path().filename() != "culprit.lua";
  BOOST_TEST(rules::library().size() == files);
  for (const rules::LibraryFile& f : rules::library()) {
    std::ifstream in(root / f.name);
    BOOST_TEST_CONTEXT(f.name)
    BOOST_TEST((std::string(std::istreambuf_iterator<char>(in), {}) == f.text));
  }
}

BOOST_AUTO_TEST_CASE(rule_files_are_walked_in_order_without_hidden_ones_and_annotations) {
  const Folder folder;
  folder.write("b.lua", "1");
  folder.write("a/z.lua", "2");
  folder.write("a/.hidden.lua", "3");
  folder.write(".git/x.lua", "4");
  folder.write("a/notes.txt", "5");
  folder.write("culprit.lua", "---@meta\n");
  fs::create_symlink(folder.path / "b.lua", folder.path / "link.lua");  // the same text
  fs::create_symlink("/", folder.path / "everything");
  const RuleFiles files = read_rule_files(only({folder.path}));
  BOOST_TEST(names(files, folder) == std::vector<std::string>({"a/z.lua", "b.lua"}),
             boost::test_tools::per_element());
  BOOST_TEST(files.errors.empty());
}

BOOST_AUTO_TEST_CASE(a_copy_of_a_shipped_file_takes_its_place) {
  const Folder folder;
  const rules::LibraryFile& first = rules::library()[0];
  const std::string copy = folder.write("copy.lua", std::string(first.text));
  RuleOptions options = only({copy});
  options.library = true;
  const RuleFiles files = read_rule_files(options);
  BOOST_TEST(files.library == rules::library().size() - 1);
  BOOST_TEST(files.given == files.library);
  BOOST_TEST(files.texts.size() == rules::library().size());
  BOOST_TEST(files.texts.back().file == copy);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_read_is_reported_and_gives_no_rules) {
  const Folder folder;
  const std::string good = folder.write("good.lua", rule("a.b", "it broke"));
  const std::string fifo = (folder.path / "pipe.lua").string();
  mkfifo(fifo.c_str(), 0600);
  fs::create_directory(folder.path / "empty");
  for (const std::string& path : {(folder.path / "absent").string(), (folder.path / "empty").string(), fifo,
                                  std::string("/dev/null/x")}) {
    const LoadedRules loaded = load_rules(only({good, path}));
    BOOST_TEST_CONTEXT(path) {
      BOOST_TEST(!loaded.set);
      BOOST_REQUIRE(loaded.files.errors.size() == 1);
      BOOST_TEST(loaded.files.errors[0].text.find(path) != std::string::npos);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_rule_with_a_window_fires_in_order_of_time_over_files) {
  const Folder folder;
  const std::string window = "window = { by = \"job\", span = \"10s\", after = \"a.first\" }, ";
  const std::string text =
      rule("a.first", "one broke") +
      "rule { id = \"a.second\", engine = 1, title = \"t\", category = \"platform\", component = "
      "\"platform\", severity = \"error\", remedy = \"r\", match = { template = \"two broke\" }, " +
      window + "examples = { hit = \"one broke\\ntwo broke\", miss = \"two broke\" } }";
  const LoadedRules loaded = load_rules(only({folder.write("r.lua", text)}));
  BOOST_REQUIRE(loaded.set);
  // The file that is read first has the later lines.
  folder.write("job/a.log",
               "2026-11-21 02:00:05,000 INFO two broke\n2026-11-21 02:01:00,000 INFO two broke\n");
  folder.write("job/b.log", "\n2026-11-21 02:00:01,000 INFO one broke\n");
  for (unsigned threads : {1u, 4u}) {
    ReadProgress progress;
    auto files = collect_files({folder.path / "job"}, {}, progress);
    BOOST_REQUIRE(files.has_value());
    const RuleMatches matches = match_rules(*files, {{}, threads}, loaded.set, progress);
    BOOST_REQUIRE(matches.fired.size() == 2);
    BOOST_TEST(loaded.set->rules()[matches.fired[0].hit.rule].id == "a.second");
    BOOST_TEST((matches.fired[0].place.source == 0 && matches.fired[0].place.line == 1));
    BOOST_TEST((matches.fired[1].place.source == 1 && matches.fired[1].place.line == 2));
    BOOST_TEST(matches.lines == 4);
  }
}

BOOST_AUTO_TEST_CASE(a_line_of_a_file_is_read_by_its_number) {
  const Folder folder;
  std::string text;
  for (int i = 1; i <= 300'000; ++i)
    text += "line " + std::to_string(i) + " of some length\n";  // several chunks
  const std::string path = folder.write("a.log", text + "the last");
  const struct {
    const char* number;
    const char* line;
  } rows[] = {{"1", "line 1 of some length"},
              {"299999", "line 299999 of some length"},
              {"300001", "the last"},
              {"300002", nullptr},
              {"0", nullptr},
              {"x", nullptr},
              {"", nullptr}};
  for (const auto& row : rows) {
    const auto line = read_line(path + ":" + row.number);
    BOOST_TEST_CONTEXT(row.number) {
      BOOST_REQUIRE(line.has_value() == (row.line != nullptr));
      if (line) BOOST_TEST(line->text == row.line);
    }
  }
}
