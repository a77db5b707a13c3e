// `culpritd --check` of [act].
#include "app/daemon/recover/controller_check.h"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>
#include <utility>

#include "../fixtures.h"

using namespace culprit;
using namespace culprit::app;

BOOST_AUTO_TEST_SUITE(controller_check)

BOOST_AUTO_TEST_CASE(a_check_refuses_a_controller_that_can_never_work) {
  const app::test::Folder folder;
  const auto errors_of = [&](const std::string& text) {
    const LoadedConfig loaded = load_config(folder.write("a.toml", text));
    BOOST_TEST(loaded.errors.empty());
    std::string out;
    for (const ConfigError& error : check_controller(loaded).errors) out += format_error(error) + "\n";
    return out;
  };
  const std::string open = folder.write("open.headers", "Authorization: x\n");
  std::filesystem::permissions(open, std::filesystem::perms(0644));
  const std::string rubbish = folder.write("rubbish.headers", "no header\n");
  std::filesystem::permissions(rubbish, std::filesystem::perms::owner_read);
  const std::string webhook = "scheduler = \"webhook\"\nlauncher.url = \"https://x.example/\"\nlauncher.";
  const std::string kubernetes =
      "scheduler = \"kubernetes\"\nkubernetes.server = \"https://x.example\"\nkubernetes.";
  const std::string exec = "scheduler = \"exec\"\nlauncher.command = [\"/bin/true\", \"{";
  const std::pair<std::string, std::string> cases[] = {
      {exec + "job}\"]\n", ""},
      {exec + "jobs}\"]\n",
       ":4:10: error: 'act.launcher.command': the launcher's command: unknown placeholder {jobs}"},
      {webhook + "headers_file = \"/not/there\"\n",
       ":5:10: error: 'act.launcher.headers_file': /not/there: no such file"},
      {webhook + "headers_file = \"" + open + "\"\n", ":5:10: error: 'act.launcher.headers_file': "},
      {webhook + "headers_file = \"" + rubbish + "\"\n", ":5:10: error: 'act.launcher.headers_file': "},
      {webhook + "ca = \"/not/there\"\n", ":5:10: error: 'act.launcher.ca': /not/there: No such file"},
      {kubernetes + "token_file = \"/not/there\"\n",
       ":5:12: error: 'act.kubernetes.token_file': /not/there: no such file"},
      {kubernetes + "ca_file = \"/not/there\"\n", ":5:12: error: 'act.kubernetes.ca_file': /not/there: "},
      {"scheduler = \"kubernetes\"\n", ":3:1: error: 'act.scheduler': "},  // outside a pod
      {"scheduler = \"slurm\"\nslurm_conf = \"/not/there\"\n",
       ":4:1: error: 'act.slurm_conf': /not/there: No such file"},
      {exec + "job}\"]\n[forward]\nto = \"127.0.0.1:7421\"\n", ""},
  };
  for (const auto& [act, says] : cases) {
    const std::string errors = errors_of("rules = []\n[act]\n" + act);
    BOOST_TEST_CONTEXT(act << ": " << errors) {
      BOOST_TEST(errors.empty() == says.empty());
      BOOST_TEST(errors.find(says) != std::string::npos);
    }
  }
  const std::string agent = "role = \"agent\"\nforward.to = \"127.0.0.1:7421\"\n[act]\n" + exec + "job}\"]\n";
  const std::string errors = errors_of(agent);
  BOOST_TEST(errors.find(":4:1: error: 'act.scheduler': the controller runs in the collector, not with role "
                         "agent") != std::string::npos,
             errors);
}

BOOST_AUTO_TEST_SUITE_END()
