// Tests of a plugin through its border: the library is loaded as the daemon does, in a world of files and
// fake drivers. Time is the test's: a wait for a child process passes no time for the detector.
#pragma once

#include <culprit/plugin_test.h>

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/files.h"

namespace health {

// A folder that plays /, removed at the end.
class World {
 public:
  World() {
    char name[] = "/tmp/culprit-plugin-XXXXXX";
    if (!mkdtemp(name)) culprit_test_fail("no folder in /tmp");
    root_ = name;
  }
  ~World() {
    const std::string command = "rm -rf '" + root_ + "'";
    if (std::system(command.c_str()) != 0) std::perror("rm");
  }
  const std::string& root() const { return root_; }
  std::string path(const std::string& name) const { return root_ + "/" + name; }
  void write(const std::string& name, const std::string& text) {
    for (size_t at = 0; (at = name.find('/', at + 1)) != std::string::npos;) {
      mkdir(path(name.substr(0, at)).c_str(), 0755);
    }
    FILE* file = std::fopen(path(name).c_str(), "w");
    if (!file) culprit_test_fail("cannot write %s", path(name).c_str());
    std::fwrite(text.data(), 1, text.size(), file);
    std::fclose(file);
  }
  void write(const std::string& name, uint64_t value) { write(name, std::to_string(value) + "\n"); }
  void link(const std::string& name, const std::string& target) {
    write(name, "");
    unlink(path(name).c_str());
    if (symlink(target.c_str(), path(name).c_str()) != 0) culprit_test_fail("cannot link %s", name.c_str());
  }

 private:
  std::string root_;
};

// A running plugin.
class Run {
 public:
  Run(const char* library, const std::vector<std::string>& options) {
    std::vector<const char*> pointers;
    for (const std::string& option : options) pointers.push_back(option.c_str());
    pointers.push_back(nullptr);
    test_ = culprit_test_open(library, pointers.data());
  }
  ~Run() { culprit_test_close(test_); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  void tick(double seconds = 0) {
    now_ns_ += int64_t(seconds * 1e9);
    CULPRIT_TEST_CHECK(culprit_test_tick(test_, now_ns_) == CULPRIT_OK);
  }
  // Lets children answer: until all of them sleep, however busy the machine is.
  void settle() {
    int asleep = 0;
    for (int i = 0; i < 5000 && asleep < 5; ++i) {
      usleep(2000);
      tick();
      asleep = runs(getpid()) ? 0 : asleep + 1;
    }
  }
  void look(double seconds) {
    tick(seconds);
    settle();
  }
  uint64_t count(const char* id, uint32_t state) const { return culprit_test_count_of(test_, id, state); }
  uint64_t raised(const char* id) const { return count(id, CULPRIT_RAISED); }
  uint64_t cleared(const char* id) const { return count(id, CULPRIT_CLEARED); }
  uint64_t happened(const char* id) const { return count(id, CULPRIT_HAPPENED); }
  uint64_t all() const { return culprit_test_count(test_); }
  // The last finding with this id.
  const culprit_detector_finding& last(const char* id) const {
    const culprit_detector_finding* found = nullptr;
    for (uint64_t i = 0; i < all(); ++i) {
      if (std::string(culprit_test_finding(test_, i)->id) == id) found = culprit_test_finding(test_, i);
    }
    if (!found) culprit_test_fail("no finding %s", id);
    return *found;
  }
  void print() const {
    for (uint64_t i = 0; i < all(); ++i) {
      const auto* finding = culprit_test_finding(test_, i);
      std::printf("  %s %u device %lld part '%s': %s\n", finding->id, finding->state,
                  (long long)finding->device, finding->part, finding->text);
    }
  }
  culprit_test* raw() { return test_; }

 private:
  // Whether a descendant has work to do.
  static bool runs(pid_t pid) {
    const std::string folder = "/proc/" + std::to_string(pid);
    const auto children = read_text(folder + "/task/" + std::to_string(pid) + "/children").value_or("");
    for (const std::string_view child : words(children)) {
      const auto stat = read_text("/proc/" + std::string(child) + "/stat");
      const size_t at = stat ? stat->rfind(')') : std::string::npos;
      const char state = at == std::string::npos ? 'Z' : (*stat)[at + 2];
      if (state != 'S' && state != 'Z') return true;
      if (runs(pid_t(number(child).value_or(0)))) return true;
    }
    return false;
  }

  culprit_test* test_;
  int64_t now_ns_ = 1700000000000000000;
};

struct Case {
  const char* promise;
  std::function<void()> body;
};

// Runs all, or those whose promise contains the argument; a failure ends the program.
inline int run_cases(const std::vector<Case>& cases, const char* only) {
  size_t ran = 0;
  for (const Case& one : cases) {
    if (only && std::string(one.promise).find(only) == std::string::npos) continue;
    std::printf("%s\n", one.promise);
    std::fflush(stdout);
    one.body();
    ++ran;
  }
  std::printf("%zu passed\n", ran);
  return ran == 0;
}

}  // namespace health
