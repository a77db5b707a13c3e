// Evidence that a daemon keeps, as the logs of a job: whose lines they are, whatever their names look like.
#include "app/confirm/logs.h"

#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <map>

namespace culprit::app {
namespace {

namespace fs = std::filesystem;

class Retained final : public StoredJobs {
 public:
  std::map<std::pair<std::string, std::string>, std::string> texts;  // by host and path
  std::string kind = "file";

  std::string name() const override { return "here"; }
  Result<std::string> jobs() override { return R"({"items":[]})"; }
  Result<std::string> sources(const std::string&) override {
    nlohmann::ordered_json items = nlohmann::ordered_json::array();
    for (const auto& [source, text] : texts)
      items.push_back({{"host", source.first}, {"path", source.second}, {"kind", kind}});
    return nlohmann::ordered_json{{"items", items}}.dump();
  }
  Status read(const std::string&, const std::string& host, const std::string& path,
              const std::function<bool(std::string_view)>& take) override {
    for (const char c : texts.at({host, path}))
      if (!take({&c, 1})) break;
    return {};
  }
};

std::string line(const std::string& word) { return "2026-11-21 02:12:09,123 INFO unit " + word + " is up\n"; }

struct Fixture {
  Retained stored;
  fs::path folder = fs::temp_directory_path() / fmt::format("culprit-logs-{}", ::getpid());
  FetchOptions fetch{1 << 20, folder};
  Fixture() { fs::create_directories(folder); }
  ~Fixture() { fs::remove_all(folder); }
  std::vector<std::string> hosts() {
    const auto logs = JobLogs::fetch(stored, "j", {}, fetch);
    return logs ? (*logs)->facts().hosts : std::vector<std::string>{logs.error().text};
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(stored_logs, Fixture)

BOOST_AUTO_TEST_CASE(lines_belong_to_the_agent_that_sent_them) {
  stored.texts = {{{"a1", "/var/log/train.log"}, line("x")}, {{"b7", "/var/log/train.log"}, line("y")}};
  BOOST_TEST(hosts() == (std::vector<std::string>{"a1", "b7"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(of_one_host_that_reads_all_logs_their_names_tell) {
  stored.texts = {{{"head", "/share/logs/node-1.log"}, line("x")},
                  {{"head", "/share/logs/node-2.log"}, line("y")}};
  BOOST_TEST(hosts() == (std::vector<std::string>{"node-1", "node-2"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(no_name_leads_out_of_the_folder_or_hides_another) {
  stored.texts = {{{"..", "../../../x.log"}, line("a")},
                  {{"..", "/" + std::string(3000, 'x') + "/../y.log"}, line("b")},
                  {{"..", "/z"}, line("c")},
                  {{"..", "/z/in.log"}, line("d")},
                  {{"..", "/job.toml"}, line("e")},
                  {{"..", ""}, line("f")}};
  const auto logs = JobLogs::fetch(stored, "j", {}, fetch);
  BOOST_REQUIRE(logs.has_value());
  const auto seen = (*logs)->search({"unit <_> is up"});
  BOOST_TEST(seen[0].count == stored.texts.size());
  BOOST_TEST(std::distance(fs::directory_iterator(folder), fs::directory_iterator()) == 1);
}

BOOST_AUTO_TEST_CASE(it_reads_up_to_the_limit_and_leaves_nothing) {
  for (int i = 0; i < 3; ++i) stored.texts[{"a", fmt::format("/{}.log", i)}] = line("x");
  fetch.bytes = line("x").size() + 1;
  BOOST_TEST((*JobLogs::fetch(stored, "j", {}, fetch))->search({"unit <_> is up"})[0].count == 1u);
  BOOST_TEST(fs::is_empty(folder));
  stored.kind = "ring";
  BOOST_TEST(hosts()[0] == "here: no lines of job j are kept");
  BOOST_TEST(fs::is_empty(folder));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace culprit::app
