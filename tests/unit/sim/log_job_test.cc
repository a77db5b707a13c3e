// Properties of the simulator. Each test writes into a folder of its own below the temporary folder.
#include "sim/log_job.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <unistd.h>
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "model/topology.h"
#include "sim/sink.h"

namespace {

using namespace culprit;
using namespace culprit::sim;
namespace fs = std::filesystem;

struct Folder {
  fs::path path;
  Folder() {
    static int count = 0;
    path = fs::temp_directory_path() /
           ("culprit-sim-" + std::to_string(::getpid()) + "-" + std::to_string(count++));
    fs::remove_all(path);
  }
  ~Folder() { fs::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
};

std::string slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

// Every file below a folder by its relative path.
std::map<std::string, std::string> tree(const fs::path& root) {
  std::map<std::string, std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(root))
    if (entry.is_regular_file()) out[fs::relative(entry.path(), root).string()] = slurp(entry.path());
  return out;
}

LogJobOptions small(std::string_view fault, std::string_view layout, uint64_t seed) {
  LogJobOptions o;
  o.hosts = 5, o.ranks_per_host = 4, o.iterations = 25, o.healthy = 0, o.seed = seed;
  o.fault = fault, o.layout = layout;
  return o;
}

void make(const LogJobOptions& options, const Folder& folder) {
  const Status status = simulate_logs(options, folder.path.string());
  BOOST_REQUIRE_MESSAGE(status.has_value(), (status ? std::string() : status.error().text));
}

const std::vector<std::string> kWordless = {"nfs-stall",
                                            "host-silent-no-echo",
                                            "nan-loss",
                                            "dataloader-stuck",
                                            "slow-host-no-words",
                                            "thermal-no-words",
                                            "link-flap-no-words",
                                            "pcie-degraded-no-words",
                                            "memory-leak-no-words",
                                            "temporal-change-no-words",
                                            "slow-checkpoint-no-words"};

}  // namespace

BOOST_AUTO_TEST_CASE(the_same_seed_gives_the_same_bytes_and_another_seed_others) {
  LogJobOptions options = small("gpu-lost", "files", 4);
  options.healthy = 1;
  Folder a, b, c;
  make(options, a);
  make(options, b);
  options.seed = 5;
  make(options, c);
  BOOST_TEST((tree(a.path) == tree(b.path)));
  BOOST_TEST((tree(a.path) != tree(c.path)));
}

BOOST_AUTO_TEST_CASE(the_generator_has_fixed_values) {
  Random random(1);
  BOOST_TEST(random.next() == 0x910a2dec89025cc1ull);
  BOOST_TEST(random.below(0) == 0u);
  for (int i = 0; i < 1000; ++i) {
    const int64_t n = random.range(-3, 3);
    BOOST_TEST((n >= -3 && n <= 3));
  }
}

BOOST_AUTO_TEST_CASE(every_hole_is_filled_and_what_is_none_stays) {
  LogJobOptions options = small("none", "files", 1);
  options.framework = "plain";
  const Site site = make_site(options);
  const Run run = make_run(site, 1, 0);
  Moment moment;
  moment.iteration = 7, moment.loss_e6 = 1, moment.iteration_us = 5'000'000;
  Random random(3);
  const Context context{site, run, moment, random, 1, 2, run.start_ns};
  for (const char* hole :
       {"r",    "l",   "R",      "H",    "h",     "ip",      "pid",    "tid",       "bus",   "p",    "ph",
        "pip",  "fr",  "fl",     "fh",   "fip",   "fpid",    "fbus",   "sig",       "exit",  "h0",   "ip0",
        "port", "job", "user",   "root", "model", "ckpt",    "rev",    "it",        "its",   "pct",  "loss",
        "gn",   "lr",  "ms",     "s",    "scale", "samples", "tokens", "seq",       "epoch", "bar",  "tp",
        "pp",   "dp",  "layers", "now",  "nowT",  "ago",     "i:1:9",  "f:0.5:2:3", "x:4",   "w:a,b"}) {
    std::string text;
    Template(std::string("<") + hole + ">").expand(context, text);
    BOOST_TEST_CONTEXT(hole) {
      BOOST_TEST(!text.empty());
      BOOST_TEST(text.find('<') == std::string::npos);
    }
  }
  std::string text;
  Template("in <module> of <r>, <0").expand(context, text);
  BOOST_TEST(text == "in <module> of 6, <0");
}

BOOST_AUTO_TEST_CASE(every_line_of_the_truth_is_in_its_file_for_every_fault_and_layout) {
  uint64_t seed = 100;
  for (size_t f = 0; f < log_faults().size(); ++f) {
    for (size_t l = f % 5; l < log_layouts().size(); l += 5) {
      const LogJobOptions options = small(log_faults()[f].name, log_layouts()[l].name, ++seed);
      BOOST_TEST_CONTEXT(options.fault << " " << options.layout << " " << seed) {
        Folder folder;
        make(options, folder);
        const auto truth = nlohmann::json::parse(slurp(folder.path / "truth.json"), nullptr, false);
        BOOST_REQUIRE(truth.is_object());
        const auto files = tree(folder.path / "job");
        std::map<std::string, std::vector<std::string>> cache;
        bool word = false;
        for (const auto& mark : truth["indicating"]) {
          const std::string name = mark["file"];
          BOOST_REQUIRE(files.contains(name));
          if (!cache.contains(name)) cache[name] = lines_of(files.at(name));
          const uint64_t line = mark["line"];
          BOOST_REQUIRE(line >= 1);
          BOOST_REQUIRE(line <= cache[name].size());
          word = word || has_error_word(cache[name][line - 1]);
        }
        BOOST_TEST(truth["has_error_word"].get<bool>() == word);
        BOOST_TEST(truth["onset_ns"].is_number());
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(the_faulty_host_can_be_found_in_every_layout) {
  for (const NamedChoice& layout : log_layouts()) {
    BOOST_TEST_CONTEXT(layout.name) {
      Folder folder;
      make(small("ib-port-down", layout.name, 77), folder);
      const auto truth = nlohmann::json::parse(slurp(folder.path / "truth.json"), nullptr, false);
      BOOST_REQUIRE(truth["faulty_hosts"].size() == 1u);
      const std::string host = truth["faulty_hosts"][0];
      bool found = false;
      for (const auto& [name, text] : tree(folder.path / "job"))
        found = found || name.find(host) != name.npos || text.find(host) != text.npos;
      BOOST_TEST(found);
      const auto root = std::find_if(truth["indicating"].begin(), truth["indicating"].end(),
                                     [](const auto& mark) { return mark["role"] == "root"; });
      BOOST_TEST((root != truth["indicating"].end()));
    }
  }
}

BOOST_AUTO_TEST_CASE(where_lines_give_only_ranks_a_job_file_gives_the_hosts) {
  for (const char* layout : {"ranks", "srun-l", "rank-stream", "mpirun"}) {
    BOOST_TEST_CONTEXT(layout) {
      Folder folder;
      make(small("gpu-ecc", layout, 9), folder);
      const auto job = parse_job_file(slurp(folder.path / "job" / "job.toml"), "job.toml");
      BOOST_REQUIRE(job.has_value());
      BOOST_TEST(job->hosts.size() == 5u);
      const auto truth = nlohmann::json::parse(slurp(folder.path / "truth.json"), nullptr, false);
      const uint32_t rank = truth["faulty_ranks"][0];
      BOOST_TEST(host_of_rank(*job, rank).value_or("") == truth["faulty_hosts"][0].get<std::string>());
    }
  }
}

BOOST_AUTO_TEST_CASE(a_third_of_the_kinds_or_more_is_never_put_into_words) {
  BOOST_TEST(kWordless.size() * 3 >= log_faults().size());
  for (size_t i = 0; i < kWordless.size(); ++i) {
    for (size_t l = i % 3; l < log_layouts().size(); l += 3) {
      BOOST_TEST_CONTEXT(kWordless[i] << " " << log_layouts()[l].name) {
        Folder folder;
        make(small(kWordless[i], log_layouts()[l].name, 300 + i * 20 + l), folder);
        const auto truth = nlohmann::json::parse(slurp(folder.path / "truth.json"), nullptr, false);
        BOOST_TEST(!truth["has_error_word"].get<bool>());
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(healthy_jobs_are_full_of_harmless_alarms_and_end_well) {
  LogJobOptions options;
  options.fault = "none", options.layout = "host-dirs", options.framework = "megatron";
  options.healthy = 2, options.iterations = 60;
  Folder folder;
  make(options, folder);
  for (const char* job : {"job", "healthy/1", "healthy/2"}) {
    size_t alarms = 0;
    bool ended = false;
    for (const auto& [name, text] : tree(folder.path / job)) {
      for (const std::string& line : lines_of(text)) alarms += has_error_word(line);
      ended = ended || text.find("after training is done") != text.npos;
    }
    BOOST_TEST(alarms >= 20u);
    BOOST_TEST(ended);
  }
  const auto truth = nlohmann::json::parse(slurp(folder.path / "truth.json"), nullptr, false);
  BOOST_TEST(truth["category"].is_null());
  BOOST_TEST(truth["faulty_hosts"].empty());
  BOOST_TEST(truth["indicating"].empty());
}

BOOST_AUTO_TEST_CASE(a_silent_host_writes_nothing_while_the_others_still_do) {
  Folder folder;
  make(small("host-silent-no-echo", "journald", 12), folder);
  const auto truth = nlohmann::json::parse(slurp(folder.path / "truth.json"), nullptr, false);
  const std::string host = truth["faulty_hosts"][0];
  std::map<std::string, std::string> last;  // by host: its last time, which sorts as text
  for (const std::string& line : lines_of(slurp(folder.path / "job" / "journal.txt"))) {
    std::istringstream in(line);
    std::string time, name;
    in >> time >> name;
    last[name] = std::max(last[name], time);
  }
  BOOST_REQUIRE(last.contains(host));
  BOOST_TEST(last.size() == 5u);
  for (const auto& [name, time] : last)
    if (name != host) BOOST_TEST(time > last[host]);
}

BOOST_AUTO_TEST_CASE(padding_reaches_about_the_size_asked_for) {
  for (const char* layout : {"files", "srun-l"}) {
    LogJobOptions options = small("host-oom", layout, 6);
    options.bytes = 20'000'000;
    Folder folder;
    make(options, folder);
    uint64_t bytes = 0;
    for (const auto& [name, text] : tree(folder.path / "job")) bytes += text.size();
    BOOST_TEST(bytes > options.bytes * 8 / 10);
    BOOST_TEST(bytes < options.bytes * 12 / 10);
  }
}

BOOST_AUTO_TEST_CASE(what_cannot_be_simulated_is_refused_with_its_name) {
  const auto refused = [](auto change, std::string_view word) {
    LogJobOptions options = small("none", "files", 1);
    change(options);
    Folder folder;
    const Status status = simulate_logs(options, folder.path.string());
    BOOST_REQUIRE(!status.has_value());
    BOOST_TEST(status.error().text.find(word) != std::string::npos);
  };
  refused([](LogJobOptions& o) { o.fault = "gremlins"; }, "gremlins");
  refused([](LogJobOptions& o) { o.layout = "scroll"; }, "scroll");
  refused([](LogJobOptions& o) { o.framework = "abacus"; }, "abacus");
  refused([](LogJobOptions& o) { o.hosts = 1; }, "hosts");
  refused([](LogJobOptions& o) { o.ranks_per_host = 0; }, "ranks");
  refused([](LogJobOptions& o) { o.iterations = 1; }, "iterations");
  Folder folder;
  fs::create_directories(folder.path / "there");
  BOOST_TEST(!simulate_logs(small("none", "files", 1), folder.path.string()).has_value());
}
