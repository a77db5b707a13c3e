// Who teaches what is normal, and for whom.
#include "app/jobs/normal_pools.h"

#include <boost/test/unit_test.hpp>

#include "app/jobs/pool_owner.h"
#include "live_feed.h"

using namespace culprit;
using namespace culprit::app;

namespace {

constexpr uint32_t kAlice = 12'003, kMallory = 12'002;
constexpr TimeNs kSecond = kNsPerSecond;
constexpr const char* kBenign = "cleanup.sh: line 8: nvtop: command not found";
constexpr const char* kLost = "kernel: NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus.";
constexpr const char* kGoodEnd = "INFO Training completed successfully";

// One job after the other, a thousand seconds each.
struct Host {
  LiveJobs jobs;
  Feed feed{jobs};
  TimeNs now = kStart;
  std::vector<LiveEvent> events;

  explicit Host(LiveOptions options = live_options()) : jobs(std::move(options)) {}

  StreamId log_of(const std::string& job, uint32_t uid) {
    return feed.open(OriginKind::kFile, job, "/logs/" + job + ".log", uid);
  }
  void write(StreamId log, const std::string& text) { feed.write(log, clock(now) + " " + text + "\n", now); }
  void tick(int64_t seconds) {
    for (int64_t i = 0; i < seconds; ++i) jobs.tick(now += kSecond);
    for (LiveEvent& e : jobs.poll_events()) events.push_back(std::move(e));
  }
  void train(StreamId log) {
    for (int64_t i = 0; i < 60; ++i) {
      write(log, fmt::format("INFO step={} loss=2.{}", i, i % 10));
      tick(1);
    }
  }
  // Returns the rule of the verdict; empty: none.
  std::string end(const std::string& job, uint32_t uid, int code) {
    const StreamId socket = feed.open(OriginKind::kSocket, job, "/run/culprit/trace.sock", uid);
    feed.write(socket, fmt::format("{{\"kind\":\"event\",\"name\":\"job_end\",\"exit_code\":{}}}\n", code),
               now);
    tick(20);
    const auto report = jobs.report(job, now);
    tick(900);
    BOOST_REQUIRE(report.has_value());
    return report->verdict ? report->diagnoses.at(0).rule.value_or("no rule") : "";
  }
  std::string run(const std::string& job, uint32_t uid, const std::vector<std::string>& last, int code) {
    const StreamId log = log_of(job, uid);
    train(log);
    for (const std::string& text : last) write(log, text);
    return end(job, uid, code);
  }
  std::string owners() const {
    std::string out;
    for (const LiveEvent& e : events)
      if (const auto* change = std::get_if<std::shared_ptr<const PoolChange>>(&e.content))
        out += (*change)->taught.job + "=" + (*change)->taught.owner + " ";
    return out;
  }
  bool has_word(const std::string& word) {
    const detect::Pool pool = jobs.pools().all();
    return std::ranges::any_of(
        pool.forms, [&](const detect::PoolForm& f) { return f.text.find(word) != std::string::npos; });
  }
};

TaughtJob taught(const std::string& job, const std::string& owner, uint64_t first_form, size_t text = 10) {
  TaughtJob out;
  out.job = job;
  out.owner = owner;
  out.pool.jobs = 1;
  for (uint64_t i = 0; i < 5; ++i)
    out.pool.forms.push_back({first_form + i, std::string(text, 'x'), 1, 1, 1, 0});
  return out;
}

StreamInfo stream(StreamId id, std::optional<uint32_t> uid) {
  StreamInfo info;
  info.id = id;
  info.uid = uid;
  return info;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(normal_pools)

BOOST_AUTO_TEST_CASE(a_job_of_one_user_excuses_no_fault_of_another) {
  Host host;
  BOOST_TEST(host.run("fake", kMallory, {kBenign, kLost, kGoodEnd}, 0) == "");
  BOOST_TEST(host.owners() == "fake=user 12002 ");
  BOOST_TEST(host.run("a", kAlice, {kBenign}, 1) == "process.limit.command");
  BOOST_TEST(host.run("b", kAlice, {kLost}, 1) == "nvidia.xid.79");
  BOOST_TEST(host.run("c", kMallory, {kLost}, 1) == "nvidia.xid.79", "a fatal line is normal for no one");
  BOOST_TEST(host.run("d", kMallory, {kBenign}, 1) == "");
}

BOOST_AUTO_TEST_CASE(a_line_of_healthy_jobs_of_root_is_normal_for_all) {
  Host host;
  host.run("r", 0, {kBenign, kGoodEnd}, 0);
  BOOST_TEST(host.owners() == "r=trusted ");
  BOOST_TEST(host.run("a", kAlice, {kBenign}, 1) == "");
  BOOST_TEST(host.run("b", 0, {kBenign}, 1) == "");
}

BOOST_AUTO_TEST_CASE(lines_of_the_kernel_and_of_fatal_rules_are_never_learned) {
  Host host;
  const StreamId kernel = host.feed.open(OriginKind::kKernel, "", "/dev/kmsg");
  const StreamId log = host.log_of("j", kAlice);
  host.write(log, kLost);
  host.train(log);
  host.feed.write(kernel, "4,7,1010000000,-;eth0: strange words of a driver\n", host.now);
  host.write(log, kGoodEnd);
  BOOST_TEST(host.end("j", kAlice, 0) == "");
  BOOST_TEST(host.owners() == "j=user 12003 ");
  BOOST_TEST(host.has_word("loss="));
  BOOST_TEST(!host.has_word("strange words"));
  BOOST_TEST(!host.has_word("fallen off"));
}

BOOST_AUTO_TEST_CASE(a_pool_that_has_a_fatal_line_excuses_none) {
  Host teacher;
  teacher.run("old", kAlice, {kGoodEnd}, 0);
  LiveOptions options = live_options();
  for (const LiveEvent& e : teacher.events)
    if (const auto* change = std::get_if<std::shared_ptr<const PoolChange>>(&e.content))
      options.taught.push_back((*change)->taught);
  BOOST_REQUIRE(options.taught.size() == 1u);
  // As an older version would have learned it.
  core::EngineOptions engine_options;
  core::Engine engine(std::move(engine_options));
  const std::string text = std::string(kLost) + "\n";
  logs::LineParser parser({}, nullptr);
  logs::LogBatch batch;
  core::Input opened = core::SourceOpened{}, lines = core::LogInput{&batch};
  engine.step({&opened, 1}, kNoTime);
  parser.parse({0, 0, 0, text, text.size(), true}, {}, batch);
  engine.step({&lines, 1}, kNoTime);
  detect::Pool old;
  engine.add_to(old);
  BOOST_REQUIRE(old.forms.size() == 1u);
  options.taught[0].pool.merge(old);
  Host host(std::move(options));
  BOOST_TEST(host.has_word("fallen off"));
  BOOST_TEST(host.run("a", kAlice, {kLost}, 1) == "nvidia.xid.79");
}

BOOST_AUTO_TEST_CASE(a_job_with_sources_of_two_users_teaches_no_one) {
  Host host;
  const StreamId log = host.log_of("j", kAlice);
  host.feed.write(host.feed.open(OriginKind::kSocket, "j", "/run/t.sock", kMallory),
                  "{\"kind\":\"log\",\"line\":\"hello\"}\n", host.now);
  host.train(log);
  host.write(log, kGoodEnd);
  host.end("j", kAlice, 0);
  BOOST_TEST(host.owners() == "");
  BOOST_TEST(host.jobs.pools().jobs() == 0u);
}

BOOST_AUTO_TEST_CASE(a_job_that_the_configuration_names_teaches_its_own_owner) {
  LiveOptions options = live_options();
  options.healthy = {"named"};
  Host host(std::move(options));
  BOOST_TEST(host.run("named", kMallory, {kBenign}, 1) == "process.limit.command");
  BOOST_TEST(host.owners() == "named=user 12002 ");
  BOOST_TEST(host.run("a", kAlice, {kBenign}, 1) == "process.limit.command");
}

BOOST_AUTO_TEST_CASE(what_a_job_taught_is_taken_back_from_running_jobs_too) {
  Host host;
  host.run("wrong", kAlice, {kBenign, kGoodEnd}, 0);
  const StreamId log = host.log_of("j", kAlice);
  host.train(log);
  BOOST_TEST(host.jobs.forget_taught("wrong") == 1u);
  BOOST_TEST(host.jobs.forget_taught("wrong") == 0u);
  host.write(log, kBenign);
  BOOST_TEST(host.end("j", kAlice, 1) == "process.limit.command");
}

BOOST_AUTO_TEST_CASE(the_owner_is_the_only_user_besides_root_and_the_daemon) {
  struct Case {
    std::vector<std::optional<uint32_t>> users;
    std::string expected;
  };
  const Case cases[] = {
      {{}, "none"},
      {{0}, "trusted"},
      {{0, 998}, "trusted"},
      {{1000}, "user 1000"},
      {{0, 1000, 998, 1000}, "user 1000"},
      {{1000, 1001}, "none"},
      {{1000, std::nullopt}, "none"},
      {{std::nullopt}, "none"},
  };
  for (const auto& [users, expected] : cases) {
    PoolOwner owner;
    for (size_t i = 0; i < users.size(); ++i) owner.add(stream(static_cast<StreamId>(i), users[i]), {}, 998);
    BOOST_TEST(owner.name().value_or("none") == expected);
  }
  PoolOwner remote;
  remote.add_remote(0);
  BOOST_TEST(remote.name().value_or("") == "user 0", "root of another host");
}

BOOST_AUTO_TEST_CASE(another_file_at_a_path_has_an_unknown_owner) {
  PoolOwner owner;
  Piece piece;
  piece.place = FilePlace{1, 7};
  owner.add(stream(1, 1000), piece, {});
  BOOST_TEST(owner.name().value_or("") == "user 1000");
  piece.place->inode = 8;
  owner.add(stream(1, 1000), piece, {});
  BOOST_TEST(!owner.name().has_value());
}

BOOST_AUTO_TEST_CASE(each_kind_of_job_of_an_owner_has_its_own_pool) {
  NormalPools pools;
  pools.add(taught("a", "user 1", 10));
  pools.add(taught("b", "user 1", 12));
  pools.add(taught("c", "user 1", 100));
  pools.add(taught("d", "user 2", 10));
  BOOST_TEST(pools.kinds("user 1").size() == 2u);
  BOOST_TEST(pools.kinds("user 2").size() == 1u);
  BOOST_TEST(pools.kinds("user 3").size() == 0u);
  BOOST_TEST(pools.merged({pools.kinds("user 1")[0]}).jobs == 2u);
  BOOST_TEST(pools.all().jobs == 4u);
  BOOST_TEST(pools.forget("b") == 1u);
  BOOST_TEST(pools.merged({pools.kinds("user 1")[0]}).forms.size() == 5u);
}

BOOST_AUTO_TEST_CASE(the_oldest_run_of_an_owner_gives_way_in_whatever_order_they_come) {
  NormalPools pools;
  const auto at = [](const std::string& job, TimeNs time_ns) {
    TaughtJob out = taught(job, "user 1", 10);
    out.time_ns = time_ns;
    return out;
  };
  for (size_t i = 0; i < NormalPools::kOfOwner; ++i)
    pools.add(at(fmt::format("a{}", i), 1000 - static_cast<TimeNs>(i)));
  auto removed = pools.add(at("later", 2000));
  BOOST_REQUIRE(removed.size() == 1u);
  BOOST_TEST(removed[0].job == fmt::format("a{}", NormalPools::kOfOwner - 1));
  removed = pools.add(at("long ago", 1));
  BOOST_REQUIRE(removed.size() == 1u);
  BOOST_TEST(removed[0].job == "long ago");
  BOOST_TEST(pools.taught().front().job == fmt::format("a{}", NormalPools::kOfOwner - 2));
}

BOOST_AUTO_TEST_CASE(one_run_of_a_job_is_taken_back) {
  NormalPools pools;
  TaughtJob again = taught("a", "user 1", 10);
  again.run = 1;
  pools.add(taught("a", "user 1", 10));
  pools.add(std::move(again));
  BOOST_TEST(pools.forget("a", 1) == 1u);
  BOOST_TEST(pools.jobs() == 1u);
  BOOST_TEST(pools.forget("a", 1) == 0u);
}

BOOST_AUTO_TEST_CASE(the_pools_are_bounded_and_the_trusted_one_stays) {
  NormalPools pools;
  pools.add(taught("r", std::string(kTrustedOwner), 1));
  for (size_t i = 0; i < NormalPools::kOfOwner; ++i)
    BOOST_TEST(pools.add(taught(fmt::format("a{}", i), "user 1", 10)).empty());
  const auto removed = pools.add(taught("more", "user 1", 10));
  BOOST_REQUIRE(removed.size() == 1u);
  BOOST_TEST(removed[0].job == "a0");
  BOOST_TEST(pools.add(taught("more", "user 1", 10)).empty(), "the same run again");
  BOOST_TEST(pools.jobs() == NormalPools::kOfOwner + 1);
  size_t lost = 0;
  for (size_t i = 0; i < NormalPools::kOwners; ++i)
    lost += pools.add(taught("m", fmt::format("user {}", 1000 + i), 10)).size();
  BOOST_TEST(lost == NormalPools::kOfOwner + 1, "user 1, and one of the many");
  BOOST_TEST(pools.kinds(std::string(kTrustedOwner)).size() == 1u);
  for (const char* job : {"big", "bigger"}) pools.add(taught(job, "user 7", 10, NormalPools::kBytes / 9));
  BOOST_TEST(pools.kinds("user 1002").size() == 2u, "the owner with the most bytes gives way");
  BOOST_TEST(pools.kinds(std::string(kTrustedOwner)).size() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
