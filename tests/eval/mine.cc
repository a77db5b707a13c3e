// Mines the templates of one file with given thresholds. tests/eval/loghub.py runs it to leave out sets and
// to vary thresholds.
// Usage: eval_mine FILE < CONFIGURATIONS, one per line: "name=value ..." of MinerThresholds; an empty line:
// the defaults. For each it prints a line with the group of each line of FILE, separated by blanks.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "core/logs/header.h"
#include "core/logs/mask.h"
#include "core/logs/miner.h"

using namespace culprit::logs;

namespace {

size_t* threshold(MinerThresholds& t, const std::string& name) {
  const std::map<std::string, size_t*> all = {{"values_of_three", &t.values_of_three},
                                              {"values_of_two", &t.values_of_two},
                                              {"values_of_one", &t.values_of_one},
                                              {"values_first", &t.values_first},
                                              {"values_typed", &t.values_typed},
                                              {"values_qualified", &t.values_qualified},
                                              {"values_assigned", &t.values_assigned},
                                              {"values_assigned_one", &t.values_assigned_one},
                                              {"values_mixed", &t.values_mixed},
                                              {"vocabulary", &t.vocabulary},
                                              {"words_equal", &t.words_equal},
                                              {"words_gap", &t.words_gap},
                                              {"words_hole", &t.words_hole}};
  const auto found = all.find(name);
  return found == all.end() ? nullptr : found->second;
}

bool configure(const std::string& line, MinerThresholds& thresholds) {
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    const size_t mark = word.find('=');
    size_t* const value = threshold(thresholds, word.substr(0, mark));
    if (!value || mark == std::string::npos) return false;
    *value = std::stoul(word.substr(mark + 1));
  }
  return true;
}

std::vector<std::string> forms_of(const char* path) {
  std::ifstream in(path);
  HeaderParser headers({});
  std::vector<std::string> forms;
  for (std::string line; std::getline(in, line);) {
    while (!line.empty() && line.back() == '\r') line.pop_back();
    const std::string message = line.substr(headers.parse(line).message);
    const size_t begin = message.find_first_not_of(" \t");
    forms.push_back(begin == std::string::npos ? std::string() : form_text(message.substr(begin)));
  }
  return forms;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: eval_mine FILE < CONFIGURATIONS\n");
    return 2;
  }
  const std::vector<std::string> forms = forms_of(argv[1]);
  for (std::string line; std::getline(std::cin, line);) {
    MinerThresholds thresholds;
    if (!configure(line, thresholds)) {
      std::fprintf(stderr, "eval_mine: %s: no thresholds\n", line.c_str());
      return 2;
    }
    Miner miner(thresholds);
    std::vector<ClusterId> ids;
    for (const std::string& form : forms) ids.push_back(miner.add(form, 1));
    miner.settle();
    for (const ClusterId id : ids) std::cout << miner.resolve(id) << ' ';
    std::cout << '\n';
  }
  return 0;
}
