#include "app/offline/stages.h"

#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/rules/ruleset.h"

using namespace culprit;
using namespace culprit::app;

BOOST_AUTO_TEST_CASE(every_stage_is_measured_over_all_lines) {
  const auto path = std::filesystem::temp_directory_path() / ("stages_test." + std::to_string(getpid()));
  std::string text;
  for (int i = 0; i < 2000; ++i)
    text += "2026-03-14 09:26:53 INFO [rank" + std::to_string(i % 8) + "] step " + std::to_string(i) +
            " done\n10%|#   | 1/10\r20%|##  | 2/10 [00:01<00:04]\n\n  CUDA out of memory. Tried to allocate "
            "2 GiB\n";
  std::ofstream(path) << text;
  JobFiles files;
  files.logs.emplace_back();
  files.logs[0].file.path = path;
  files.logs[0].file.size = text.size();
  const StageCosts costs = measure_stages(files, {}, rules::Ruleset::shipped(), 3);
  std::filesystem::remove(path);
  BOOST_TEST(costs.bytes == text.size());
  BOOST_TEST(costs.lines == 8000u);
  std::set<std::string_view> names;
  for (const StageCost& stage : costs.stages) {
    names.insert(stage.name);
    BOOST_TEST(stage.ratio > 0, stage.name);
    BOOST_TEST((stage.least <= stage.ratio && stage.ratio <= stage.most), stage.name);
  }
  BOOST_TEST(names.size() == costs.stages.size());
  BOOST_TEST((names.contains("header") && names.contains("literals") && names.contains("step")));
}
