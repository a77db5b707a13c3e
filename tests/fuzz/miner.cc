// Lines of arbitrary bytes through mask and miner: equal hashes must mean equal forms, counts must add up,
// every id must resolve to a live cluster, and a form must find its cluster again after settling.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/logs/mask.h"
#include "core/logs/miner.h"

namespace {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace culprit::logs;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  Miner miner;
  std::map<uint64_t, std::string> forms;
  std::vector<std::pair<std::string, ClusterId>> added;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const std::string form = form_text(line);
    const auto [at, fresh] = forms.try_emplace(form_hash(line), form);
    require(at->second == form, "lines of one hash have one form");
    require(form_hash(form_text(line)) == form_hash(form), "a hash depends on the bytes alone");
    added.emplace_back(form, miner.add(form, 1));
    if (added.size() % 64 == 0) miner.settle();
  }
  miner.settle();
  uint64_t sum = 0;
  for (const ClusterId id : miner.clusters()) {
    require(miner.resolve(id) == id, "a listed cluster is live");
    sum += miner.count(id);
  }
  require(sum == added.size(), "counts add up");
  for (const auto& [form, id] : added) {
    require(id < miner.size(), "ids are dense");
    require(miner.resolve(miner.add(form, 0)) == miner.resolve(id), "a form finds its cluster again");
  }
  return 0;
}
