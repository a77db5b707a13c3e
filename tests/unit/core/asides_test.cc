// A system's log next to the job's own: what services, disks and networks report there is no cause of the
// program's own mistake.
#include <fmt/format.h>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <ostream>

#include "core/engine.h"

using namespace culprit;
using namespace culprit::core;
namespace data = boost::unit_test::data;

namespace {

struct Case {
  const char *system, *exception;
  bool leads;  // the system's line, and not the program's exception
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.system; }

const Case kCases[] = {
    {"sshd[811]: Connection reset by peer", "KeyError: 'rate'", false},
    {"sshd[811]: error: kex_exchange_identification: Connection closed by remote host", "KeyError: 'rate'",
     false},
    {"dockerd[90]: container 3fa1 OOMKilled", "KeyError: 'rate'", false},
    {"rsyncd[77]: rsync: [sender] write error: Broken pipe (32)", "KeyError: 'rate'", false},
    {"rsync[77]: rsync: writefd_unbuffered failed: No space left on device (28)", "KeyError: 'rate'", false},
    {"slurmd[5]: error: *** JOB 99112 ON node-7 CANCELLED DUE TO NODE FAILURE ***", "KeyError: 'rate'",
     false},
    {"kernel: EXT4-fs error (device sdq1): ext4_find_entry:1455: inode #2: comm updatedb: reading directory "
     "lblock 0",
     "KeyError: 'rate'", false},
    {"kernel: nfs: server backup-nas not responding, timed out", "KeyError: 'rate'", false},
    {"kernel: igb 0000:05:00.0 eno3: igb: eno3 NIC Link is Down", "KeyError: 'rate'", false},
    // What the job's own trouble is of, and what broke hardware says, keeps its weight.
    {"kernel: NVRM: Xid (PCI:0000:1b:00): 79, pid=4211, GPU has fallen off the bus.", "KeyError: 'rate'",
     true},
};

Report report_of(const Case& c) {
  EngineOptions options;
  options.rules = rules::Ruleset::shipped();
  Engine engine(std::move(options));
  logs::LineParser parser{logs::ParseOptions{}, engine.make_scanner()};
  logs::LogBatch batch;
  std::string job;
  for (int s = 0; s < 40; ++s) job += fmt::format("2026-11-21 02:00:{:02},000 INFO step={} loss=2.1\n", s, s);
  job += fmt::format(
      "Traceback (most recent call last):\n  File \"/app/run.py\", line 5, in <module>\n    main()\n"
      "  File \"/app/run.py\", line 3, in main\n    rate = config[\"rate\"]\n{}\n",
      c.exception);
  const std::string texts[] = {
      job, fmt::format("2026-11-21T02:00:38.000000+00:00 node-7 systemd[1]: Started Session 4 of User root.\n"
                       "2026-11-21T02:00:39.100000+00:00 node-7 {}\n",
                       c.system)};
  const char* const names[] = {"train.log", "messages"};
  for (SourceId f = 0; f < 2; ++f) {
    SourceInfo info;
    info.file = names[f];
    info.host = "node-7";
    Input opened = SourceOpened{info};
    engine.step({&opened, 1}, kNoTime);
    parser.parse({f, 0, 0, texts[f], texts[f].size(), true}, info, batch);
    Input lines = LogInput{&batch};
    engine.step({&lines, 1}, kNoTime);
  }
  return engine.report();
}

}  // namespace

namespace {

constexpr const char *kReset = "ConnectionResetError: [Errno 104] Connection reset by peer",
                     *kDisk = "File system is full";

// No mistake of the program, whose own line is weaker than these.
const Case kFailures[] = {
    {"rsync[77]: rsync: write failed on \"/backup/a\": No space left on device (28)", kReset, false},
    {"postgres[5]: FATAL:  could not write to file \"pg_wal/x\": No space left on device", kReset, false},
    {"/usr/sbin/backupd[5]: write failed: No space left on device", kReset, false},
    {"sshd[811]: error: kex_exchange_identification: Connection closed by remote host", kReset, false},
    // A container engine's disk may be the job's, and so is what its own log names.
    {"dockerd[5]: failed to write: no space left on device", kReset, true},
};

}  // namespace

BOOST_DATA_TEST_CASE(what_another_service_does_explains_no_failure_of_the_job, data::make(kFailures)) {
  const Report r = report_of(sample);
  BOOST_REQUIRE(r.verdict.has_value());
  const std::string& title = r.diagnoses[*r.verdict].title;
  BOOST_TEST((title.find("reset by peer") == std::string::npos) == sample.leads, title);
  BOOST_TEST(title.starts_with(kDisk) == sample.leads, title);
}

BOOST_DATA_TEST_CASE(what_services_and_disks_report_leads_no_mistake_of_the_program, data::make(kCases)) {
  const Report r = report_of(sample);
  BOOST_REQUIRE(r.verdict.has_value());
  const Diagnosis& d = r.diagnoses[*r.verdict];
  BOOST_TEST((d.title.find("rate") == std::string::npos) == sample.leads, d.title);
}
