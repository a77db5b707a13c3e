// Rules that the API makes: where they are written, and that one order at a time ends with one answer.
#include "app/daemon/api/rule_maker.h"

#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "../../serve/fake_source.h"
#include "io/uv/env.h"

namespace culprit::app {
namespace {

namespace fs = std::filesystem;

struct Folder {
  fs::path path = fs::temp_directory_path() / fmt::format("culprit-rule-maker-{}", ::getpid());
  Folder() {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
  size_t entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(path), fs::directory_iterator()));
  }
};

std::string text_in(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Maker : Folder {
  std::unique_ptr<io::Env> env = io::make_uv_env();
  serve::test::FakeSource source;
  RuleMaker maker{*env, source};

  RuleOrder order() const { return {.of = {"j/1", {}}, .id = "d9", .scratch = path / "scratch"}; }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(rule_maker)

BOOST_FIXTURE_TEST_CASE(a_rule_file_is_written_whole_and_never_over_another, Folder) {
  const std::string at = path / "site.a.lua";
  BOOST_TEST(write_new_file(at, "one").has_value());
  BOOST_TEST(text_in(at) == "one");
  BOOST_TEST((fs::status(at).permissions() == fs::perms(0644)));
  const Status second = write_new_file(at, "two");
  BOOST_TEST(second.error().text == at + ": there is such a file already; it was not touched");
  BOOST_TEST(text_in(at) == "one");
  fs::create_symlink(path / "elsewhere", path / "site.b.lua");
  BOOST_TEST(!write_new_file(path / "site.b.lua", "x").has_value());
  BOOST_TEST(!fs::exists(path / "elsewhere"));
  BOOST_TEST(!write_new_file(path / "none" / "site.c.lua", "x").has_value());
  BOOST_TEST(entries() == 2u);  // no part is left behind
}

BOOST_FIXTURE_TEST_CASE(the_last_folder_that_can_be_written_to_holds_the_rules, Folder) {
  const std::string a = path / "a", b = path / "b";
  BOOST_TEST(folder_for_rules({a, b, path / "one.lua"}) == b);
  std::ofstream(path / "file") << "x";
  BOOST_TEST(folder_for_rules({a, path / "file" / "below"}) == a);
  BOOST_TEST(folder_for_rules({}) == "");
}

BOOST_FIXTURE_TEST_CASE(a_second_order_is_refused_while_the_first_is_under_way, Maker) {
  std::vector<std::string> answers;
  const auto note = [&](const Result<MadeRule>& made) {
    answers.push_back(made ? "made" : made.error().text);
    if (answers.size() == 2) env->stop();
  };
  maker.make(order(), note);
  maker.make(order(), note);
  env->run();
  BOOST_REQUIRE(answers.size() == 2u);
  BOOST_TEST(answers[0] == "a rule is being made already");
  BOOST_TEST(answers[1] == "job j/1 has no diagnosis d9");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace culprit::app
