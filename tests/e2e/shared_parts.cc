// shared_parts CONNINFO CHECK: one promise of store/postgres against a real database, for tests/e2e. Prints a
// line; exit status 1 if it does not hold.
//
//   partition JOB  prints its partition, without a database
//   migrate N      N stores at once make the tables
//   take           of two members, each partition has one owner, and a new owner a higher epoch
//   fence          an action after the lease has passed to another affects no row
//   once           the same action of two owners, or of one that lost its ledger, is reserved once
//   adopt          a new process keeps what its name owned, and fences the one before
//   give_back      a lease that was given back ends early
//   ledger         of two rows the one with the higher stamp stays; rows of others, and of a job, are read
//   report         a report that its owner published is read; a late owner's affects nothing
//   objects        each object of an archive follows the one before, in the epoch of one process
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/cluster/partition.h"
#include "store/postgres/cluster_store.h"
#include "store/postgres/ledger_store.h"
#include "store/postgres/report_store.h"
#include "store/postgres/segment_store.h"

using namespace culprit;
using namespace culprit::store::postgres;

namespace {

constexpr TimeNs kLease = 1500 * kNsPerMs;
std::string conninfo;

void need(bool holds, const std::string& what) {
  if (holds) return;
  fmt::print("{}\n", what);
  std::exit(1);
}

struct Process {
  explicit Process(const std::string& name)
      : store({conninfo, name, name + ":1", kLease, 4 * kNsPerSecond, 3 * kNsPerSecond, 300 * kNsPerMs}) {}
  ClusterStore store;
  std::vector<PartHold> held;

  ClusterStore::Answer round(bool take, bool adopt = false) {
    auto answer = store.round({adopt, held, take});
    need(answer.has_value(), answer ? "" : answer.error().text);
    std::erase_if(held, [&](const PartHold& one) {
      return std::ranges::find(answer->renewed, one.part) == answer->renewed.end();
    });
    held.insert(held.end(), answer->adopted.begin(), answer->adopted.end());
    if (answer->taken) held.push_back(*answer->taken);
    return *answer;
  }
  ClusterStore::Reservation reserve(const std::string& what, const PartHold& with) {
    const auto done = store.reserve({what, what, "4711", "isolate", "n1", "d-0001", with, {}, false});
    need(done.has_value(), done ? "" : done.error().text);
    return *done;
  }
};

void wait(TimeNs ns) { std::this_thread::sleep_for(std::chrono::nanoseconds(ns)); }

void migrate(int n) {
  std::vector<std::thread> threads;
  for (int i = 0; i < n; ++i) threads.emplace_back([i] { Process(fmt::format("m{}", i)).round(false); });
  for (std::thread& thread : threads) thread.join();
  const auto seen = Process("m0").round(false);
  need(seen.view.parts.size() == 64, fmt::format("{} partitions", seen.view.parts.size()));
  need(seen.view.members.size() >= static_cast<size_t>(n),
       fmt::format("{} members", seen.view.members.size()));
}

void take() {
  Process a("a"), b("b");
  for (int i = 0; i < 20; ++i) a.round(true), b.round(true);
  need(a.held.size() == 20 && b.held.size() == 20, fmt::format("{} and {}", a.held.size(), b.held.size()));
  for (const PartHold& one : a.held)
    need(std::ranges::find(b.held, one.part, &PartHold::part) == b.held.end(), "two own one");
  std::map<uint32_t, uint64_t> before;
  for (const PartHold& one : a.held) before[one.part] = one.epoch;
  wait(kLease + 200 * kNsPerMs);
  for (int i = 0; i < 64; ++i) b.round(true);
  need(b.held.size() == 64, fmt::format("{} of 64 after the lease", b.held.size()));
  for (const PartHold& one : b.held)
    if (before.contains(one.part)) need(one.epoch == before[one.part] + 1, "an epoch did not grow");
  need(a.round(false).renewed.empty(), "a lost lease was renewed");
}

void fence() {
  Process a("a"), b("b");
  a.round(true), b.round(false);
  const PartHold mine = a.held.at(0);
  need(a.reserve("first", mine).reserved == ClusterStore::Reserved::kYes, "the owner may not act");
  need(a.reserve("first", mine).reserved == ClusterStore::Reserved::kYes, "the owner may not repeat it");
  need(b.reserve("other", mine).reserved == ClusterStore::Reserved::kFenced, "another acts in its epoch");
  wait(kLease + 200 * kNsPerMs);
  need(a.reserve("late", mine).reserved == ClusterStore::Reserved::kFenced, "acts after its lease");
  while (std::ranges::find(b.held, mine.part, &PartHold::part) == b.held.end()) b.round(true);
  need(a.reserve("later", mine).reserved == ClusterStore::Reserved::kFenced, "acts after another took it");
  need(b.reserve("later", {mine.part, mine.epoch}).reserved == ClusterStore::Reserved::kFenced,
       "an old epoch");
}

void once() {
  Process a("a"), b("b");
  a.round(true);
  const PartHold mine = a.held.at(0);
  need(a.reserve("drain n1", mine).reserved == ClusterStore::Reserved::kYes, "the owner may not act");
  wait(kLease + 200 * kNsPerMs);
  while (std::ranges::find(b.held, mine.part, &PartHold::part) == b.held.end()) b.round(true);
  const auto theirs = *std::ranges::find(b.held, mine.part, &PartHold::part);
  const auto again = b.reserve("drain n1", theirs);
  need(again.reserved == ClusterStore::Reserved::kByOther, "two owners drain one host");
  need(again.by == fmt::format("a (epoch {})", mine.epoch), again.by);
  const auto with_ledger = [&](const char* op, const char* ledger) {
    const auto done =
        b.store.reserve({"end 7", op, "7", "end_tasks", "7", "d-0003", theirs, "", false, ledger});
    return done ? done->reserved : ClusterStore::Reserved::kFenced;
  };
  need(with_ledger("e1", "first") == ClusterStore::Reserved::kYes, "the owner may not end it");
  need(with_ledger("e2", "first") == ClusterStore::Reserved::kYes, "it may not try again");
  need(with_ledger("e3", "second") == ClusterStore::Reserved::kByOther, "a lost ledger acts twice");
  const auto undo =
      b.store.reserve({"return n1", "r1", "", "return", "n1", "d-0002", theirs, "drain n1", false});
  need(undo && undo->reserved != ClusterStore::Reserved::kYes, "returns what another isolated");
  const auto own =
      a.store.reserve({"return n1", "r1", "", "return", "n1", "d-0002", {0, 0}, "drain n1", false});
  need(own && own->reserved == ClusterStore::Reserved::kYes, "may not return what it isolated itself");
}

void adopt() {
  Process before("a"), b("b");
  for (int i = 0; i < 5; ++i) before.round(true);
  Process after("a");
  const auto found = after.round(false, true);
  need(found.adopted.size() == 5, fmt::format("{} of 5 stay", found.adopted.size()));
  for (int i = 0; i < 64; ++i) b.round(true);
  need(b.held.size() == 59, fmt::format("{} of 59: a restart moved some", b.held.size()));
  need(before.reserve("old", before.held.at(0)).reserved == ClusterStore::Reserved::kFenced,
       "the process before still acts");
  need(after.reserve("new", after.held.at(0)).reserved == ClusterStore::Reserved::kYes,
       "the new one may not");
}

void give_back() {
  Process a("a"), b("b");
  for (int i = 0; i < 5; ++i) a.round(true);
  need(a.store.give_back(a.held).has_value(), "not given back");
  for (int i = 0; i < 64; ++i) b.round(true);
  need(b.held.size() == 59, "a lease that was given back must last for a restart");
  for (const MemberRow& one : b.round(false).view.members)
    need(one.takes == (one.name == "b"), "a member that ended still counts");
  wait(400 * kNsPerMs);
  for (int i = 0; i < 5; ++i) b.round(true);
  need(b.held.size() == 64, fmt::format("{} of 64 after it was given back", b.held.size()));
}

void ledger() {
  Process("a").round(false);  // makes the tables
  LedgerStore a(conninfo, "a"), b(conninfo, "b");
  const auto put = [](LedgerStore& store, std::vector<LedgerLine> lines) {
    const Status done = store.put(lines);
    need(done.has_value(), done ? "" : done.error().text);
  };
  const auto news = [](LedgerStore& store) {
    const auto lines = store.news();
    need(lines.has_value(), lines ? "" : lines.error().text);
    std::string out;
    for (const LedgerLine& one : *lines)
      out += fmt::format("{} {} {} {};", one.kind, one.key, one.line, one.member);
    return out;
  };
  const std::string odd = std::string("x\xff\0\"'\\{", 7);
  put(a, {{"attempt", "slurm/1 1", "slurm/1", 5, "{5}"}, {"isolate", odd, "slurm/1", 1, odd}});
  put(b, {{"attempt", "slurm/1 1", "slurm/1", 4, "late"}, {"machine", "n1/", "", 2, "{n1}"}});
  put(b, {{"attempt", "slurm/2 1", "slurm/2", 6, "{6}"}});
  const auto rows = b.of_jobs({"slurm/1", "slurm/3"});
  need(rows && rows->size() == 2, rows ? fmt::format("{} rows of the job", rows->size()) : rows.error().text);
  for (const LedgerLine& one : *rows)
    need(one.kind != "attempt" || (one.line == "{5}" && one.member == "a" && one.stamp == 5),
         "a late row stays");
  need(news(a) == "machine n1/ {n1} b;", news(a));
  need(news(b).starts_with("isolate x") && news(b).ends_with(" a;"), news(b));
  put(a, {{"isolate", odd, "slurm/1", 2, "undone"}});
  need(news(b).find("undone") != std::string::npos, news(b));
  LedgerLine again{"isolate", odd, "slurm/1", 3, "of before", {}, true};
  put(b, {again});
  need(news(b).find("undone") != std::string::npos, "a start replaced another member's row");
  put(a, {again});
  need(news(b).find("of before") != std::string::npos, "a start did not replace its own row");
  need(a.prune().has_value() && a.of_jobs({"slurm/1"})->size() == 2, "young rows are removed");
  // More rows than one answer has.
  const size_t many = LedgerStore::kReadLines + 100;
  std::vector<LedgerLine> lines{{"action", "of 10", "slurm/10", 1, "{10}"}};
  for (size_t i = 0; i < many; ++i) lines.push_back({"action", fmt::format("a{}", i), "slurm/9", 1, "{9}"});
  for (size_t i = 0; i < many; ++i) lines.push_back({"machine", fmt::format("m{}", i), "", 3, "{m}"});
  put(b, lines);
  const auto of_both = b.of_jobs({"slurm/9", "slurm/10"});
  need(of_both && std::ranges::count(*of_both, "slurm/10", &LedgerLine::job) == 1,
       "a job with many rows hides those of another");
  std::set<std::string> seen;
  for (int i = 0; i < 5; ++i) {
    const auto more = a.news();
    need(more.has_value(), "no news");
    for (const LedgerLine& one : *more)
      if (one.key.starts_with("m")) seen.insert(one.key);
  }
  need(seen.size() == many, fmt::format("{} of {} rows of others came", seen.size(), many));
}

void report() {
  Process a("a"), b("b");
  a.round(true), b.round(false);
  const PartHold mine = a.held.at(0);
  ReportStore of_a(conninfo, "a"), of_b(conninfo, "b");
  ReportRow row;
  row.job = "ml/\"llama\", {1\\2}";
  row.run = 3;
  row.uid = 4'000'000'000;
  row.listed = "{\"id\":\"ml/llama\"}";
  row.packed = pack_report(std::string(1000, 'x'));
  const auto written = [](const Result<bool>& done) {
    need(done.has_value(), done ? "" : done.error().text);
    return *done;
  };
  const auto read = [&] {
    const auto rows = of_b.rows({row.job});
    need(rows && rows->size() == 1, rows ? fmt::format("{} rows", rows->size()) : rows.error().text);
    return rows->front();
  };
  need(written(of_a.put(row, mine)), "the owner may not publish");
  const ReportRow got = read();
  need(got.run == 3 && got.member == "a" && got.uid == row.uid && got.listed == row.listed &&
           unpack_report(got.packed) == std::string(1000, 'x') && got.as_of_ns > 0,
       "another report is read");
  const auto keys = of_b.keys();
  need(keys && keys->size() == 1 && keys->front().job == row.job, "it is not listed");
  row.run = 4;
  need(!written(of_b.put(row, mine)), "another member publishes in its epoch");
  wait(kLease + 200 * kNsPerMs);
  need(!written(of_a.put(row, mine)), "published after the lease");
  while (std::ranges::find(b.held, mine.part, &PartHold::part) == b.held.end()) b.round(true);
  need(!written(of_a.put(row, mine)), "published after another took it");
  need(read().run == 3 && read().as_of_ns == got.as_of_ns, "a late owner's write had an effect");
  need(written(of_b.put(row, *std::ranges::find(b.held, mine.part, &PartHold::part))),
       "the new owner may not");
  need(read().run == 4 && read().member == "b", "the new owner's is not there");
  need(of_b.prune().has_value() && read().run == 4, "a new report was pruned");
  // Each process that uploads an archive has an epoch, and each object follows the one before.
}

void objects() {
  Process("a").round(false);
  SegmentStore old(conninfo), young(conninfo);
  const auto begun = old.take("00ab", "a");
  need(begun && begun->epoch == 1 && begun->number == 0 && begun->last_key.empty(), "the first process");
  ObjectRow row{"00ab", 1, 1, "a", "v1/1", 10, 5, "00", "11", uint64_t{1} << 63, 2, 1, 64, 1, 900};
  need(old.add(row).value_or(false), "the owner may not add");
  need(old.add(row).value_or(false), "an answer that was lost");
  const auto next = young.take("00ab", "a");
  need(next && next->epoch == 2 && next->number == 1 && next->at == 900 && next->last_key == "v1/1",
       "the next process does not go on where the last row ends");
  row.number = 2;
  row.key = "v1/2";
  need(!old.add(row).value_or(true), "the process before still adds");
  row.epoch = 2;
  row.number = 3;
  need(!young.add(row).value_or(true), "an object is left out");
  row.number = 2;
  need(young.add(row).value_or(false), "the next process may not add");
  const auto found = young.find(uint64_t{1} << 63, 6, 10);
  need(found && found->size() == 2 && found->front().key == "v1/2" &&
           found->front().hosts == uint64_t{1} << 63,
       "both are found, the newest first");
  need(young.find(1, 2, 10)->empty() && young.find(uint64_t{1} << 63, 1, 10)->empty(), "other bits");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  conninfo = argv[1];
  const std::string check = argv[2];
  if (check == "partition" && argc > 3) return fmt::print("{}\n", cluster::partition_of(argv[3])), 0;
  if (check == "migrate") migrate(argc > 3 ? std::atoi(argv[3]) : 8);
  const std::map<std::string, std::function<void()>> checks{
      {"take", take},           {"fence", fence},   {"once", once},     {"adopt", adopt},
      {"give_back", give_back}, {"ledger", ledger}, {"report", report}, {"objects", objects}};
  if (const auto at = checks.find(check); at != checks.end()) at->second();
  fmt::print("{}: ok\n", check);
}
