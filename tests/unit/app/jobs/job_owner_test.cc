#include "app/jobs/job_owner.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::app;

namespace {

constexpr uint32_t kAlice = 12'003, kMallory = 12'002, kDaemon = 500;

StreamInfo source(OriginKind kind, std::optional<uint32_t> uid) {
  StreamInfo out;
  out.kind = kind;
  out.uid = uid;
  return out;
}

void ingest(JobOwner& owner, OriginKind kind, uint32_t uid) {
  const StreamInfo info = source(kind, uid);
  owner.ingested(info, user_behind(info, kDaemon));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(job_owner)

constexpr OriginKind kLines = OriginKind::kSocket, kLog = OriginKind::kFile, kDump = OriginKind::kDump;

BOOST_AUTO_TEST_CASE(only_unprivileged_writers_are_users) {
  BOOST_TEST(user_behind(source(OriginKind::kSocket, kAlice), kDaemon).value() == kAlice);
  BOOST_TEST(user_behind(source(OriginKind::kFile, kAlice), kDaemon).value() == kAlice);
  BOOST_TEST(!user_behind(source(OriginKind::kSocket, 0), kDaemon));
  BOOST_TEST(!user_behind(source(OriginKind::kSocket, kDaemon), kDaemon));
  BOOST_TEST(!user_behind(source(OriginKind::kFile, std::nullopt), kDaemon));
  BOOST_TEST(!user_behind(source(OriginKind::kKernel, kAlice), kDaemon));
}

BOOST_AUTO_TEST_CASE(a_job_that_only_lines_name_is_of_its_first_user) {
  JobOwner owner;
  BOOST_TEST(owner.admits(kAlice, kLines, {}));
  ingest(owner, OriginKind::kRing, kAlice);
  ingest(owner, kLines, 0);
  BOOST_TEST(owner.admits(kAlice, kLines, {}));
  BOOST_TEST(!owner.admits(kMallory, kLines, {}));
  BOOST_TEST(!owner.admits(kMallory, kDump, {}));
}

BOOST_AUTO_TEST_CASE(the_owner_of_a_watched_file_precedes_the_first_user) {
  JobOwner owner;
  ingest(owner, kLines, kMallory);
  BOOST_TEST(owner.admits(kAlice, kLog, {}));
  ingest(owner, kLog, kAlice);
  BOOST_TEST(owner.admits(kAlice, kLines, {}));
  BOOST_TEST(!owner.admits(kMallory, kLines, {}));
}

BOOST_AUTO_TEST_CASE(a_later_file_of_another_user_makes_no_owner) {
  JobOwner owner;
  ingest(owner, kLog, kAlice);
  for (const OriginKind kind : {kLog, kDump, kLines, OriginKind::kRing})
    BOOST_TEST(!owner.admits(kMallory, kind, {}), to_string(kind));
  BOOST_TEST(owner.admits(kAlice, kLog, {}));
  BOOST_TEST(owner.admits(kMallory, kLog, {kAlice, kMallory}));  // a job of two users, by their processes
}

BOOST_AUTO_TEST_CASE(files_of_nobody_say_nothing_about_the_owner) {
  JobOwner owner;
  ingest(owner, kLog, 65'534);
  BOOST_TEST(owner.admits(kAlice, kLines, {}));
  BOOST_TEST(owner.admits(kAlice, kLog, {}));
}

BOOST_AUTO_TEST_CASE(a_job_that_root_or_the_daemon_feeds_first_admits_no_stranger) {
  for (const uint32_t feeder : {0u, kDaemon})
    for (const OriginKind first : {kLog, kLines, OriginKind::kRing}) {
      JobOwner owner;
      ingest(owner, first, feeder);
      for (const OriginKind kind : {kLines, OriginKind::kRing, kLog, kDump})
        BOOST_TEST(!owner.admits(kMallory, kind, {}), feeder << " " << to_string(first));
      BOOST_TEST(owner.admits(104, kLog, {}), "a log collector's copy");
      // A batch system's log: the user of the job's processes sends its steps.
      BOOST_TEST(owner.admits(kAlice, kLines, {0, kAlice}));
      owner.saw({kAlice});
      BOOST_TEST(owner.admits(kAlice, kLines, {}), "and after they ended");
    }
}

BOOST_AUTO_TEST_CASE(a_dump_or_host_data_of_root_makes_no_owner) {
  for (const OriginKind kind : {kDump, OriginKind::kKernel, OriginKind::kPlugin}) {
    JobOwner owner;
    ingest(owner, kind, 0);
    BOOST_TEST(owner.admits(kAlice, kLines, {}), to_string(kind));
  }
}

BOOST_AUTO_TEST_CASE(root_after_the_first_user_changes_no_owner) {
  for (const OriginKind kind : {kLog, kLines}) {
    JobOwner owner;
    ingest(owner, kind, kAlice);
    ingest(owner, kLog, 0);
    BOOST_TEST(owner.admits(kAlice, kLines, {}));
    BOOST_TEST(!owner.admits(kMallory, kLines, {}));
  }
}

BOOST_AUTO_TEST_CASE(users_of_services_own_no_job_and_copy_logs_of_all) {
  for (const uint32_t service : {104u, 999u, 65'534u, 65'535u}) {
    JobOwner owner;
    ingest(owner, kLog, service);                                  // a log collector's copy
    BOOST_TEST(owner.admits(kAlice, kLines, {service}), service);  // a sidecar, or the pause of a pod
    BOOST_TEST(owner.admits(service, kLines, {service}), service);
    ingest(owner, kLog, kAlice);
    BOOST_TEST(owner.admits(service, kLog, {kAlice}), service);
    BOOST_TEST(!owner.admits(service, kLines, {kAlice}), service);
  }
}

BOOST_AUTO_TEST_CASE(processes_in_the_control_group_precede_everything) {
  JobOwner owner;
  ingest(owner, kLines, kMallory);
  ingest(owner, kLog, kMallory);
  for (const OriginKind kind : {kLog, kDump, kLines}) {
    BOOST_TEST(owner.admits(kAlice, kind, {0, kAlice}));
    BOOST_TEST(!owner.admits(kMallory, kind, {0, kAlice}));
  }
}

BOOST_AUTO_TEST_CASE(users_whose_processes_were_seen_own_the_job_to_its_end) {
  JobOwner owner;
  ingest(owner, kLog, kMallory);
  owner.saw({0, kAlice});
  for (const ShownUsers& now : {ShownUsers{}, ShownUsers{0}, ShownUsers{kAlice + 1}}) {
    BOOST_TEST(owner.admits(kAlice, kLog, now));
    BOOST_TEST(!owner.admits(kMallory, kLog, now));
  }
}

BOOST_AUTO_TEST_CASE(a_job_of_root_that_writes_is_no_users) {
  JobOwner owner;
  BOOST_TEST(owner.admits(kAlice, kLines, {0}));  // a launcher, before the job's processes are seen
  ingest(owner, OriginKind::kRing, 0);
  BOOST_TEST(!owner.admits(kMallory, kLines, {0}));
  BOOST_TEST(!owner.admits(kMallory, kLog, {0}));
}

BOOST_AUTO_TEST_CASE(what_is_kept_out_is_counted_by_user) {
  JobOwner owner;
  Piece lines;
  lines.bytes = "a\nb\n";
  owner.refused(kMallory, lines, OriginKind::kSocket);
  BOOST_TEST(owner.sentence(kMallory) ==
             "2 lines of uid 12002 for this job were kept as evidence only: the job is another user's");
  Piece records;
  records.bytes.assign(64, '\0');
  owner.refused(kMallory, records, OriginKind::kRing);
  BOOST_TEST(owner.sentence(kMallory).starts_with("2 lines and 1 communication record of uid 12002"));
}

BOOST_AUTO_TEST_CASE(a_crowd_of_users_is_counted_within_a_limit) {
  JobOwner owner;
  Piece line;
  line.bytes = "a\n";
  for (uint32_t uid = 1; uid <= 1000; ++uid) owner.refused(uid, line, OriginKind::kSocket);
  BOOST_TEST(owner.all_refused().size() == 64u);
  uint64_t lines = 0;
  for (const auto& [uid, retained] : owner.all_refused()) lines += retained.lines;
  BOOST_TEST(lines == 1000u);
}

BOOST_AUTO_TEST_SUITE_END()
