// Properties of simulated jobs with every input, read from their files without the product's readers. Each
// test writes into a folder of its own below the temporary one.
#include "sim/mixed_job.h"

#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

namespace {

using namespace culprit;
using namespace culprit::sim;
namespace fs = std::filesystem;
using MixedJson = nlohmann::json;

std::string bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

struct MadeMixed {
  fs::path path;
  std::map<std::string, std::string> files;  // of the job, by path
  MixedJson truth;

  explicit MadeMixed(const MixedJobOptions& options) {
    static int count = 0;
    path = fs::temp_directory_path() /
           ("culprit-mixed-" + std::to_string(::getpid()) + "-" + std::to_string(count++));
    fs::remove_all(path);
    const Status status = simulate_mixed(options, path.string());
    BOOST_REQUIRE_MESSAGE(status, (status ? "" : status.error().text));
    for (const auto& entry : fs::recursive_directory_iterator(path / "job"))
      if (entry.is_regular_file())
        files[fs::relative(entry.path(), path / "job").string()] = bytes_of(entry.path());
    truth = MixedJson::parse(bytes_of(path / "truth.json"));
  }
  ~MadeMixed() { fs::remove_all(path); }
  MadeMixed(const MadeMixed&) = delete;
  MadeMixed& operator=(const MadeMixed&) = delete;

  bool has(std::string_view part) const {
    for (const auto& [name, text] : files)
      if (name.find(part) != std::string::npos) return true;
    return false;
  }
};

MixedJobOptions mixed(std::string fault, uint64_t seed, std::vector<std::string> without = {}) {
  MixedJobOptions options;
  options.ranks = 32;
  options.fault = std::move(fault);
  options.seed = seed;
  options.without = std::move(without);
  return options;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(mixed_job)

BOOST_AUTO_TEST_CASE(equal_options_give_equal_bytes) {
  for (const char* fault : {"thermal", "storage"}) {
    const MadeMixed one(mixed(fault, 5)), same(mixed(fault, 5)), other(mixed(fault, 6));
    BOOST_TEST((one.files == same.files));
    BOOST_TEST((one.files != other.files));
  }
}

BOOST_AUTO_TEST_CASE(every_kind_has_its_truth_and_its_inputs) {
  for (const NamedChoice& kind : mixed_faults()) {
    const MadeMixed made(mixed(std::string(kind.name), 3));
    BOOST_TEST_CONTEXT(kind.name) {
      const bool healthy = made.truth["category"].is_null();
      BOOST_TEST(made.truth["failed"].get<bool>() == !healthy);
      BOOST_TEST(made.has(".comm"));
      BOOST_TEST(made.has("metrics.ndjson"));
      BOOST_TEST(made.has("job.toml"));
      for (const MixedJson& host : made.truth["hosts"])
        BOOST_TEST(made.files.at("job.toml").find(host.get<std::string>()) != std::string::npos);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_is_left_out_is_not_there_and_the_rest_is_the_same) {
  const MadeMixed whole(mixed("oom", 4));
  const MadeMixed part(mixed("oom", 4, {"comm", "counters", "ras"}));
  for (const char* name : {".comm", "plugins/", "ras_"}) {
    BOOST_TEST(whole.has(name));
    BOOST_TEST(!part.has(name));
  }
  for (const auto& [name, text] : part.files) BOOST_TEST((whole.files.at(name) == text), name);
  BOOST_TEST(part.truth["hosts"] == whole.truth["hosts"]);
}

BOOST_AUTO_TEST_CASE(machines_speak_in_several_wordings) {
  std::set<std::string> titles;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const MadeMixed made(mixed("cable-down", seed));
    for (const auto& [name, text] : made.files)
      if (name.starts_with("plugins/"))
        titles.insert(MixedJson::parse(text.substr(0, text.find('\n')))["title"]);
  }
  BOOST_TEST(titles.size() >= 2u);
}

BOOST_AUTO_TEST_CASE(an_unknown_kind_or_input_is_refused) {
  BOOST_TEST(!simulate_mixed(mixed("nothing", 1), "/nonexistent/never"));
  BOOST_TEST(!simulate_mixed(mixed("thermal", 1, {"smoke"}), "/nonexistent/never"));
}

BOOST_AUTO_TEST_SUITE_END()
