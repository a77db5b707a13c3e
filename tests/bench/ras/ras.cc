// Reads an answer of NCCL's RAS about a large job: bench_ras [RANKS]. Prints the bytes of the answer, the
// best time of five to read it, and to follow it with the answer before.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <string>

#include "core/detect/ras/follow.h"
#include "ingest/ras_reader.h"

namespace {

// As NCCL 2.28.9 lays it out.
std::string answer_of(unsigned ranks) {
  std::string out = fmt::format(
      "{{\n  \"nccl_version\": \"2.28.9\",\n  \"cuda_runtime_version\": 13000,\n"
      "  \"cuda_driver_version\": 13000,\n  \"timestamp\": \"2026-11-21 02:12:09\",\n"
      "  \"communicators_count\": 1,\n  \"communicators\": [\n    {{\n      \"hash\": "
      "\"0x27a079b828ff1a75\",\n"
      "      \"secondary_hash\": \"0x1:0x2\",\n      \"size\": {0},\n      \"ranks_count\": {0},\n"
      "      \"missing_ranks_count\": 0,\n      \"ranks\": [\n",
      ranks);
  for (unsigned rank = 0; rank < ranks; ++rank)
    out += fmt::format(
        "{}        {{\n          \"rank\": {},\n          \"host\": \"172.16.{}.{}\",\n          \"pid\": "
        "{},\n"
        "          \"cuda_dev\": {},\n          \"nvml_dev\": {},\n          \"status\": {{\n"
        "            \"init_state\": 0,\n            \"async_error\": 0,\n            \"finalize_called\": "
        "false,\n"
        "            \"destroy_flag\": false,\n            \"abort_flag\": false\n          }},\n"
        "          \"collective_counts\": {{\n            \"Broadcast\": 1,\n            \"Reduce\": 0,\n"
        "            \"AllGather\": 1200,\n            \"ReduceScatter\": 1200,\n            \"AllReduce\": "
        "{}\n"
        "          }}\n        }}",
        rank == 0 ? "" : ",\n", rank, rank / 8 / 250, rank / 8 % 250, 40'000 + rank % 8, rank % 8, rank % 8,
        rank == 11 ? 6649 : 6650);
  return out +
         "\n      ],\n      \"missing_ranks\": [\n\n      ]\n    }\n  ],\n  \"ras\": {\n"
         "    \"collection_time_sec\": 0.412,\n    \"timeouts_count\": 0\n  }\n}\n";
}

}  // namespace

int main(int count, char** arguments) {
  const auto ranks = static_cast<unsigned>(count > 1 ? std::atoi(arguments[1]) : 8192);
  const std::string text = answer_of(ranks);
  double read_ms = 1e9, follow_ms = 1e9;
  culprit::ras::Follower follower;
  for (int i = 0; i < 5; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const auto answer = culprit::ingest::parse_ras(text);
    const auto middle = std::chrono::steady_clock::now();
    if (!answer || answer->comms.size() != 1 || answer->comms[0].ranks.size() != ranks) return 1;
    const culprit::RasState state = follower.add(*answer, i + 1);
    const auto end = std::chrono::steady_clock::now();
    if (ranks > 11 && state.comms.size() != 1) return 1;
    const auto ms = [](auto span) { return std::chrono::duration<double, std::milli>(span).count(); };
    read_ms = std::min(read_ms, ms(middle - begin));
    follow_ms = std::min(follow_ms, ms(end - middle));
  }
  fmt::print("ranks {}, bytes {}, read {:.1f} ms, followed {:.1f} ms\n", ranks, text.size(), read_ms,
             follow_ms);
}
