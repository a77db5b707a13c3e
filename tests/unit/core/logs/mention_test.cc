// Each line has the part that a rule matched between « and ».
#include "core/logs/mention.h"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <ostream>
#include <string>

using namespace culprit;
using namespace culprit::logs;
namespace data = boost::unit_test::data;

namespace {

constexpr TimeNs kNow = days_from_civil(2026, 11, 21) * 86'400 * kNsPerSecond;

struct Line {
  const char* text;
};
std::ostream& operator<<(std::ostream& out, const Line& line) { return out << line.text; }

bool mentioned(std::string text, TimeNs time = kNow) {
  const size_t begin = text.find("«");
  text.erase(begin, 2);
  const size_t end = text.find("»");
  text.erase(end, 2);
  return frame_of({text, begin, end}, time).any();
}

const Line kMentions[] = {
    {"no «uncorrectable ECC error encountered», no Xid 79 since boot"},
    {"preflight: no uncorrectable ECC error encountered, no «Xid 79» since boot"},
    {"finished without «NCCL timeout» on all ranks"},
    {"retry policy: max 3, on «CUDA error: out of memory»"},
    {"retry_on=[\"«NVRM: Xid (PCI:0000:1b:00): 79»\", \"exit code 75\"]"},
    {"retry_on: [exit code 75, «CUDA error: out of memory»]"},
    {"sample 1731: {\"text\": \"Traceback (most recent call last): «RuntimeError: CUDA error»\", \"label\": "
     "3}"},
    {"{\"prompt\": \"why \\\"now\\\" «NCCL WARN Call to connect failed»?\"}"},
    {"last failure of this node (2026-10-01): «NVRM: Xid (PCI:0000:1b:00): 79»"},
    {"+ grep -q '«NVRM: Xid (PCI:0000:1b:00): 79»' /var/log/messages"},
    {"++ echo «CUDA error: out of memory»"},
    {"+    \"«CUDA error: out of memory»\","},
    {"-    \"«CUDA error: out of memory»\","},
    {"-\"«CUDA error: out of memory»\""},
    {"# «NVRM: Xid (PCI:0000:1b:00): 79»: take the node out"},
    {"    // «CUDA error: out of memory»"},
    {"\"«CUDA error: out of memory»\","},
    {"raise RuntimeError(\"«CUDA error: out of memory»\")"},
    {"logger.error(\"«CUDA error: out of memory»\")"},
    {"if \"«CUDA error: out of memory»\" in line:"},
    {"preflight: no NCCL WARN of a peer: «Connection refused» since boot"},
    {"{\"text\": \"why? «Permission denied: '/out/x'\", \"label\": 3}»"},
    {"dmesg | grep «NVRM: Xid»"},
};

const Line kReported[] = {
    {"«NVRM: Xid (PCI:0000:1b:00): 79»"},
    {"«NCCL WARN Call to connect to 'node-3' failed»"},
    {"RuntimeError: «CUDA error: out of memory»"},
    {"what():  «CUDA error: an illegal memory access was encountered»"},
    {"RuntimeError('«CUDA error: out of memory»')"},
    {"step failed: RuntimeError(\"«CUDA error: out of memory»\")"},
    {"('Connection aborted.', «ConnectionResetError(104, 'Connection reset by peer')»)"},
    {"ConnectionError: ('Connection aborted.', OSError(104, '«Connection reset by peer»'))"},
    {"worker 3 failed with '«CUDA error: out of memory»'"},
    {"error_message=\"«CUDA error: out of memory»\""},
    {"stderr: b'«nvidia-smi: command not found»'"},
    {"{'rank': 3, 'error': '«CUDA error: out of memory»'}"},
    {"KeyError: '«lr_decay_iters»'"},
    {"[rank3]: the workers' «NCCL timeout» can't be handled"},
    {"[Rank 3] «Watchdog caught collective operation timeout»"},
    {"\x1b[36m(RayTrainWorker pid=17)\x1b[0m «CUDA error: out of memory»"},
    {"could not connect, no route: «NCCL WARN Call to connect failed»"},
    {"the peer did not answer; «NCCL timeout»"},
    {
        "2026-10-01T08:00:00 node-3 «CUDA error: out of memory»",
    },
    {"shard of 2026-11-20 is broken: «Input/output error»"},
    {"-bash: fork: «Cannot allocate memory»"},
    {"- ranks [3, 4]: «did not join the barrier»"},
    {"`SW Power Cap: Active`, and `«SW Thermal Slowdown: Active»`."},
    {"-Mar-10 18:51 «Unexpected number of CC notifications»"},
    {"GPU 3 is lost («Xid 79»)"},
};

}  // namespace

BOOST_DATA_TEST_CASE(a_line_that_quotes_denies_or_looks_for_a_fault_mentions_it, data::make(kMentions)) {
  BOOST_TEST(mentioned(std::string(sample.text).substr(std::string(sample.text).find_first_not_of(' '))));
}

BOOST_DATA_TEST_CASE(a_line_that_reports_a_fault_does_not_only_mention_it, data::make(kReported)) {
  BOOST_TEST(!mentioned(sample.text));
}

BOOST_AUTO_TEST_CASE(a_date_before_a_fault_is_past_only_if_the_line_is_later) {
  const char* const line = "last failure (2026-11-20): «NVRM: Xid (PCI:0000:1b:00): 79»";
  BOOST_TEST(!mentioned(line));
  BOOST_TEST(mentioned(line, kNow + 30 * 86'400 * kNsPerSecond));
  BOOST_TEST(mentioned(line, kNoTime));
}

BOOST_AUTO_TEST_CASE(a_message_of_an_exception_is_found_behind_its_name) {
  const auto in_exception = [](std::string_view text) {
    return is_in_exception({text, text.size(), text.size()});
  };
  BOOST_TEST(in_exception("RuntimeError: the node's log says NVRM: Xid"));
  BOOST_TEST(in_exception("app.errors.CheckException: NVRM: Xid"));
  BOOST_TEST(!in_exception("NVRM: Xid"));
  BOOST_TEST(!in_exception("the check ended in RuntimeError: NVRM: Xid"));
}

BOOST_AUTO_TEST_CASE(more_around_a_wording_than_usual_makes_it_a_mention) {
  const auto frame = [](std::string text) {
    const size_t at = text.find("attribute");
    return frame_of({text, at, at + 9}, kNow);
  };
  const MentionFrame usual = frame("set 'cpuset.attribute' of the group");
  BOOST_TEST(usual.any());
  BOOST_TEST(!frame("node-3: set 'cpuset.attribute' of the group").exceeds(usual));
  BOOST_TEST(frame("retry_on=[\"set 'cpuset.attribute' of the group\"]").exceeds(usual));
  BOOST_TEST(frame("no set 'cpuset.attribute' of the group").exceeds(usual));
}
