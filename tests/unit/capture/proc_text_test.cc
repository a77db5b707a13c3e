#include "capture/proc_text.h"

#include <sys/syscall.h>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

using namespace culprit::capture;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(proc_text)

namespace {

// The fields of a stat behind the name, with this state and parent 7, started at tick 99.
std::string stat_text(const std::string& name, char state) {
  std::string out = "20 (" + name + ") " + state + " 7";
  for (int i = 2; i < 19; ++i) out += " 0";
  return out + " 99 0 0\n";
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_name_with_brackets_hides_no_state) {
  for (const std::string name : {"python3", "a) R 1", "x (y) D 1 1", ")", "", "a b\tc"}) {
    const auto stat = parse_stat(stat_text(name, 'T'));
    BOOST_REQUIRE_MESSAGE(stat, name);
    BOOST_TEST(stat->state == 'T');
    BOOST_TEST(stat->parent == 7u);
    BOOST_TEST(stat->start_ticks == 99u);
  }
  BOOST_TEST(parse_stat(stat_text("a) R 1", 'S'))->name == "a) R 1");
}

BOOST_AUTO_TEST_CASE(a_name_holds_no_control) {
  BOOST_TEST(parse_stat(stat_text("a\n20 (b) Z", 'S'))->name == "a?20 (b) Z");
}

BOOST_DATA_TEST_CASE(a_stat_that_is_cut_is_none,
                     data::make({"", "20", "20 (a", "20 (a)", "20 (a) S 7 0", ") S 7 ("})) {
  BOOST_TEST(!parse_stat(sample));
}

BOOST_AUTO_TEST_CASE(a_status_gives_the_effective_user_and_what_is_caught) {
  // The kernel escapes a newline in a name, so that a name is no line of its own.
  const auto status = parse_status(
      "Name:\tx\\nUid:\t0\nUmask:\t0022\nState:\tS (sleeping)\nTracerPid:\t12\n"
      "Uid:\t1000\t1001\t1002\t1003\nGid:\t5\t6\t7\t8\nSigCgt:\t0000020000000002\n");
  BOOST_REQUIRE(status);
  BOOST_TEST(status->uid == 1001u);
  BOOST_TEST(status->gid == 6u);
  BOOST_TEST(status->tracer == 12u);
  BOOST_TEST(status->caught == 0x20000000002u);
  BOOST_TEST(!parse_status("Name:\tx\n"));
}

BOOST_AUTO_TEST_CASE(a_call_has_its_number_and_arguments) {
  const auto call = parse_syscall("0 0x5 0x7f00 0x1000 0x0 0x0 0x0 0x7ffd 0x7f11\n");
  BOOST_REQUIRE(call);
  BOOST_TEST(call->number == 0);
  BOOST_TEST(call->arguments[0] == 5u);
  BOOST_TEST(call->arguments[2] == 0x1000u);
  BOOST_TEST(parse_syscall("running\n")->running);
  BOOST_TEST(parse_syscall("-1 0x7ffd 0x7f11\n")->number == -1);
  BOOST_TEST(!parse_syscall("0 0x5\n"));
  BOOST_TEST(!parse_syscall(""));
}

BOOST_AUTO_TEST_CASE(calls_name_their_file_by_descriptor_or_path) {
  BOOST_TEST((file_argument(SYS_read) == FileArgument::kDescriptor));
  BOOST_TEST((file_argument(SYS_openat) == FileArgument::kPathAt));
  BOOST_TEST((file_argument(SYS_futex) == FileArgument::kNone));
  BOOST_TEST((file_argument(-1) == FileArgument::kNone));
}

BOOST_AUTO_TEST_CASE(a_path_belongs_to_the_last_and_deepest_mount) {
  const auto mounts = parse_mounts(
      "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
      "30 21 0:40 / /data rw,nosuid shared:1 - nfs4 server:/x rw\n"
      "31 30 0:41 / /data/my\\040set rw - fuse.sshfs me@there: rw\n"
      "32 21 0:42 / /data rw - fuse.s3fs bucket rw\n"
      "broken line\n");
  BOOST_REQUIRE(mounts.size() == 4u);
  BOOST_TEST(mount_of(mounts, "/data/a")->type == "fuse.s3fs");
  BOOST_TEST(mount_of(mounts, "/data/my set/a")->type == "fuse.sshfs");
  BOOST_TEST(mount_of(mounts, "/database")->type == "ext4");
  BOOST_TEST(mount_of(mounts, uint64_t{30})->point == "/data");
  BOOST_TEST(mount_of(mounts, uint64_t{99}) == nullptr);
}

BOOST_AUTO_TEST_CASE(file_systems_with_a_server_are_known) {
  for (const char* type : {"fuse", "fuse.sshfs", "nfs4", "lustre", "cifs", "virtiofs"})
    BOOST_TEST(is_served(type));
  for (const char* type : {"ext4", "xfs", "tmpfs", "overlay", "fusectl"}) BOOST_TEST(!is_served(type));
  BOOST_TEST(waits_for_server("request_wait_answer"));
  BOOST_TEST(!waits_for_server("futex_wait_queue"));
}

BOOST_AUTO_TEST_CASE(the_innermost_launcher_says_the_rank) {
  using namespace std::string_literals;
  BOOST_TEST(*parse_environment("SLURM_PROCID=1\0RANK=5\0X=1"s).rank == 5u);
  BOOST_TEST(*parse_environment("RANK=5\0SLURM_PROCID=1\0"s).rank == 5u);
  BOOST_TEST(*parse_environment("OMPI_COMM_WORLD_RANK=3\0"s).rank == 3u);
  for (const auto& none : {""s, "RANK="s, "RANK=-1"s, "RANK=4294967295"s, "LOCAL_RANK=2"s, "MY_RANK=2"s})
    BOOST_TEST(!parse_environment(none).rank);
  BOOST_TEST(parse_environment("TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/tmp/p\0"s).recorder_pipe == "/tmp/p");
}

BOOST_AUTO_TEST_CASE(a_launcher_within_a_task_gives_ranks_and_a_rank_passes_its_own_on) {
  using namespace std::string_literals;
  struct {
    std::string parent, child;
    bool gave;
  } const cases[] = {
      {"SLURM_PROCID=0"s, "SLURM_PROCID=0\0RANK=0\0TORCHELASTIC_RUN_ID=x"s, true},
      {"SLURM_PROCID=1"s, "SLURM_PROCID=1\0RANK=9"s, true},
      {"X=1"s, "RANK=0"s, true},
      {"SLURM_PROCID=3"s, "SLURM_PROCID=3"s, false},
      {"SLURM_PROCID=3"s, "SLURM_PROCID=3\0RANK=3"s, false},  // the rank set it, and started a helper
      {"RANK=3\0TORCHELASTIC_RUN_ID=x"s, "RANK=3\0TORCHELASTIC_RUN_ID=x"s, false},
      {"RANK=3"s, "X=1"s, false},
  };
  for (const auto& one : cases)
    BOOST_TEST(gave_rank(parse_environment(one.parent), parse_environment(one.child)) == one.gave, one.child);
}

BOOST_AUTO_TEST_CASE(groups_of_both_versions_are_found) {
  const Cgroups groups = parse_cgroups("5:freezer,devices:/job_1\n0::/system.slice/x.scope\n2:cpu:/c\n");
  BOOST_TEST(groups.unified == "/system.slice/x.scope");
  BOOST_TEST(groups.freezer == "/job_1");
  BOOST_TEST(parse_cgroups("0::/../../etc\n").unified.empty());
}

BOOST_AUTO_TEST_CASE(a_kernel_stack_is_its_functions) {
  const auto frames =
      parse_kernel_stack("[<0>] folio_wait_bit_common+0x13d/0x350\n[<0>] filemap_read+0x1/0x2\nx\n");
  BOOST_TEST(frames == (std::vector<std::string>{"folio_wait_bit_common", "filemap_read"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
