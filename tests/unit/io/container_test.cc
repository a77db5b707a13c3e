#include "io/container.h"

#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>

using namespace culprit;
using namespace culprit::io;

namespace {

const std::string kId = "3f2a51e8c9d0b7a6958473625140f1e2d3c4b5a6978869504132231405f6e7d8";
const std::string kPod = "0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d";

// A folder like /proc with this process, and our own as `self`.
class Proc {
 public:
  Proc() {
    char name[] = "/tmp/container-XXXXXX";
    BOOST_REQUIRE(::mkdtemp(name));
    folder_ = name;
    add("self", "0::/system.slice/culpritd.service\n", "NSpid:\t70\n", kAll);
  }
  ~Proc() { std::filesystem::remove_all(folder_); }
  void add(const std::string& pid, const std::string& groups, const std::string& status,
           const char* users) const {
    const std::string at = folder_ + "/" + pid;
    std::filesystem::create_directory(at);
    std::ofstream(at + "/cgroup") << groups;
    std::ofstream(at + "/status") << status;
    std::ofstream(at + "/uid_map") << users;
  }
  std::string path() const { return folder_; }
  static constexpr const char* kAll = "         0          0 4294967295\n";

 private:
  std::string folder_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(root_in_a_container_is_that_container) {
  const std::string slice =
      "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a1b2c3d_4e5f.slice/";
  const std::string groups[] = {
      slice + "cri-containerd-" + kId + ".scope\n",
      slice + "crio-" + kId + ".scope\n",
      slice + "docker-" + kId + ".scope\n",
      "12:memory:/kubepods/burstable/pod" + kPod + "/" + kId + "\n1:name=systemd:/kubepods/x/" + kId + "\n",
      "0::/system.slice/docker-" + kId + ".scope\n",
      "0::/machine.slice/libpod-" + kId + ".scope/container\n",
      "0::/docker/" + kId + "\n",
      "0::/k8s.io/" + kId + "\n",
      "0::/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:" + kId + "\n",
      "0::/../cri-containerd-" + kId + ".scope\n"};
  const Proc proc;
  for (const std::string& group : groups) {
    proc.add("77", group, "NSpid:\t77\n", Proc::kAll);
    const Principal who = principal_of(0, 77, -1, proc.path());
    BOOST_TEST(to_string(who) == "pod:3f2a51e8c9d0", group);
    BOOST_TEST(!who.is_uid(0));
    BOOST_TEST(!who.uid().has_value());
  }
  // A user is that user anywhere: the kernel says so.
  BOOST_TEST(to_string(principal_of(1000, 77, -1, proc.path())) == "uid 1000");
}

BOOST_AUTO_TEST_CASE(root_of_another_namespace_or_of_a_process_that_is_not_seen_is_no_root) {
  const Proc proc;
  const std::string host = "0::/user.slice/user-0.slice/session-1.scope\n";
  proc.add("77", host, "NSpid:\t77\n", Proc::kAll);
  BOOST_TEST(to_string(principal_of(0, 77, -1, proc.path())) == "uid 0");
  proc.add("78", host, "NSpid:\t78\t1\n", Proc::kAll);
  proc.add("79", host, "NSpid:\t79\n", "0 0 65536\n");
  for (const uint32_t pid : {0U, 78U, 79U, 80U})
    BOOST_TEST(to_string(principal_of(0, pid, -1, proc.path())) == "pod:unknown", pid);
}

BOOST_AUTO_TEST_CASE(root_of_the_daemons_own_container_is_root) {
  const Proc proc;
  const std::string own = "0::/kubepods/pod1/" + kId + "\n",
                    other = "0::/kubepods/pod1/" + std::string(64, 'a') + "\n";
  proc.add("self", own, "NSpid:\t1\n", Proc::kAll);
  proc.add("77", own, "NSpid:\t77\n", Proc::kAll);
  proc.add("78", other, "NSpid:\t78\n", Proc::kAll);
  BOOST_TEST(to_string(principal_of(0, 77, -1, proc.path())) == "uid 0");
  BOOST_TEST(to_string(principal_of(0, 78, -1, proc.path())) == "pod:aaaaaaaaaaaa");
}

BOOST_AUTO_TEST_CASE(the_path_of_a_log_names_its_container) {
  const std::pair<std::string, std::string> cases[] = {
      {"/var/log/pods/ml_train-0_" + kPod + "/trainer/0.log", "pod:0a1b2c3d4e5f"},
      {"/var/log/containers/train-0_ml_trainer-" + kId + ".log", "pod:3f2a51e8c9d0"},
      {"/var/lib/docker/containers/" + kId + "/" + kId + "-json.log", "pod:3f2a51e8c9d0"},
      {"/var/lib/containers/storage/overlay-containers/" + kId + "/userdata/ctr.log", "pod:3f2a51e8c9d0"},
      {"/var/log/pods/README", ""},
      {"/var/log/syslog", ""},
      {"/home/alice/containers/run.log", ""}};
  for (const auto& [path, expected] : cases) {
    const auto who = container_of_log(path);
    BOOST_TEST((who ? to_string(*who) : "") == expected, path);
  }
}
