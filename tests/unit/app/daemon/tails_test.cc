#include "app/daemon/intake/tails.h"

#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <set>

#include "../../io/fake_env.h"

using namespace culprit;
using namespace culprit::app;

namespace fs = std::filesystem;

namespace {

// Workers that hang on request: they take work and never finish it, as on a dead mount.
struct HangingEnv : io::testing::FakeEnv {
  struct HungWorker : io::Worker {
    HungWorker(HangingEnv& env_in, std::unique_ptr<io::Worker> real_in)
        : env(env_in), real(std::move(real_in)) {}
    void submit(std::function<void()> work, std::function<void()> done) override {
      if (env.hangs)
        env.stuck.push_back(std::move(work));
      else
        real->submit(std::move(work), std::move(done));
    }
    size_t queued() const override { return 0; }
    void abandon() override { ++env.abandoned; }
    HangingEnv& env;
    std::unique_ptr<io::Worker> real;
  };
  Result<std::unique_ptr<io::Worker>> worker(const std::string& name) override {
    auto real = FakeEnv::worker(name);
    if (!real) return tl::unexpected(real.error());
    return std::make_unique<HungWorker>(*this, std::move(*real));
  }
  struct Watch : io::FolderWatch {
    Status add(const std::string&) override { return {}; }
    void remove(const std::string&) override {}
  };
  Result<std::unique_ptr<io::FolderWatch>> folder_watch(
      std::function<void(const std::string&)> call) override {
    if (!watches) return FakeEnv::folder_watch(std::move(call));
    changed = std::move(call);
    return std::make_unique<Watch>();
  }
  bool watches = false;
  std::function<void(const std::string&)> changed;
  bool hangs = false;
  int abandoned = 0;
  std::vector<std::function<void()>> stuck;
};

struct Bench {
  Bench() {
    fs::remove_all(root);
    for (const char* const folder : {"a", "b", "c"}) {
      fs::create_directories(root / folder);
      write(folder, "1 first\n");
    }
    TailsOptions options;
    options.allocate = [this] { return next++; };
    options.take = [this](PieceBatch&& batch) {
      for (const StreamInfo& info : batch.opened) states[info.id].info = info;
      for (const Piece& piece : batch.pieces) {
        BOOST_TEST(piece.offset == states[piece.stream].size, "nothing twice, nothing left out");
        advance(states[piece.stream], piece);
        evidence[states[piece.stream].info.path] += piece.bytes;
      }
    };
    options.report_error = [this](const std::string& what) { reported.push_back(what); };
    tails = std::make_unique<Tails>(env, std::move(options));
  }
  ~Bench() {
    env.stuck.clear();
    tails.reset();
    fs::remove_all(root);
  }

  void write(const std::string& folder, const std::string& text) const {
    std::ofstream(root / folder / "x.log", std::ios::app) << text;
  }
  LogWatch table(const std::string& folder) const {
    LogWatch out;
    out.path = (root / folder / "*.log").string();
    out.job = "j";
    return out;
  }
  void pass(TimeNs time) {
    for (TimeNs t = 0; t < time; t += kNsPerSecond / 10) {
      env.advance(kNsPerSecond / 10);
      env.run();
    }
  }
  void change(const std::vector<LogWatch>& logs) {
    tails->change(
        logs,
        [this](const std::function<void(std::vector<StreamState>)>& answer) {
          std::vector<StreamState> known;
          for (const auto& [id, state] : states) known.push_back(state);
          answer(std::move(known));
        },
        [this] { ++changes; });
  }
  std::string of(const std::string& folder) { return evidence[(root / folder / "x.log").string()]; }

  fs::path root = fs::temp_directory_path() / ("tails_test." + std::to_string(::getpid()));
  HangingEnv env;
  StreamId next = 1;
  std::map<StreamId, StreamState> states;
  std::map<std::string, std::string> evidence;
  std::vector<std::string> reported;
  int changes = 0;
  std::unique_ptr<Tails> tails;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(tails)

BOOST_AUTO_TEST_CASE(tables_that_stay_go_on_and_others_begin_where_the_store_stands) {
  Bench bench;
  bench.tails->start({bench.table("a"), bench.table("b")}, {});
  bench.pass(2 * kNsPerSecond);
  LogWatch other = bench.table("b");
  other.job = "k";
  bench.change({bench.table("a"), other, bench.table("c")});
  BOOST_TEST(bench.changes == 1);
  bench.write("a", "2 more\n");
  bench.write("b", "2 more\n");
  bench.pass(3 * kNsPerSecond);
  BOOST_TEST(bench.of("a") == "1 first\n2 more\n");
  BOOST_TEST(bench.of("b") == "1 first\n2 more\n");
  BOOST_TEST(bench.of("c") == "1 first\n");
  bench.change({bench.table("c")});
  bench.write("a", "3 unseen\n");
  bench.pass(3 * kNsPerSecond);
  BOOST_TEST(bench.of("a") == "1 first\n2 more\n");
  BOOST_TEST(bench.tails->left_behind_total() == 0u);
}

BOOST_AUTO_TEST_CASE(a_tailer_that_hangs_is_left_behind_and_what_it_had_is_read_again) {
  Bench bench;
  bench.tails->start({bench.table("a"), bench.table("b")}, {});
  bench.pass(2 * kNsPerSecond);
  bench.write("a", "2 more\n");
  bench.env.hangs = true;
  bench.pass(2 * kNsPerSecond);  // both are in progress and never end
  bench.env.hangs = false;
  bench.change({bench.table("b")});
  BOOST_TEST(bench.changes == 0, "it is waited for");
  bench.pass(4 * kNsPerSecond);
  BOOST_TEST(bench.changes == 1);
  BOOST_TEST(bench.tails->left_behind() == 1u);
  BOOST_TEST(bench.env.abandoned == 1);
  BOOST_REQUIRE(bench.reported.size() >= 1u);
  BOOST_TEST(bench.reported.back().find("left to a thread that no one waits for") != std::string::npos);
  // The hanging worker returns; its result is ignored. A table of the same files reads them.
  bench.change({bench.table("a"), bench.table("b")});
  bench.pass(kNsPerSecond);
  for (const auto& work : std::exchange(bench.env.stuck, {})) work();
  BOOST_TEST(bench.tails->left_behind() == 0u);
  bench.pass(2 * kNsPerSecond);
  BOOST_TEST(bench.of("a") == "1 first\n2 more\n");
}

BOOST_AUTO_TEST_CASE(all_folders_of_a_notification_are_read_in_one_round) {
  Bench bench;
  bench.env.watches = true;
  LogWatch all = bench.table("*");
  bench.tails->start({all}, {});
  bench.pass(3500 * kNsPerMs);  // the pause since the last round is over
  for (const char* const folder : {"a", "b", "c"}) bench.write(folder, "2 second\n");
  for (const char* const folder : {"a", "b", "c"}) bench.env.changed((bench.root / folder).string());
  bench.env.advance(kNsPerMs);  // no second round is due by then
  bench.env.run();
  for (const char* const folder : {"a", "b", "c"}) BOOST_TEST(bench.of(folder) == "1 first\n2 second\n");
}

BOOST_AUTO_TEST_CASE(without_a_thread_it_is_reported_and_tried_again) {
  Bench bench;
  bench.env.has_threads = false;
  bench.tails->start({bench.table("a")}, {});
  bench.pass(kNsPerSecond);
  BOOST_REQUIRE(bench.reported.size() >= 1u);
  BOOST_TEST(bench.reported.back().find("a thread for tail-0") != std::string::npos);
  bench.env.has_threads = true;
  bench.pass(6 * kNsPerSecond);
  BOOST_TEST(bench.of("a") == "1 first\n");
}

BOOST_AUTO_TEST_SUITE_END()
