// Debug lines assembled from parts, so that each site has a few hundred templates of its own.
#include <array>

#include "sim/tables.h"

namespace culprit::sim {

namespace {

constexpr std::array<const char*, 24> kModules = {
    "optim.bucket", "autograd.engine", "pipeline.schedule", "dataloader.worker", "ckpt.async",  "moe.router",
    "amp.scaler",   "zero.partition",  "prefetch",          "cuda.graph",        "alloc.cache", "rng.tracker",
    "ring.attn",    "tp.linear",       "grad.clip",         "telemetry",         "kv.store",    "sampler",
    "profiler",     "loss.head",       "embed.shard",       "act.ckpt",          "stream.pool", "comm.group"};
constexpr std::array<const char*, 20> kActions = {
    "launch",  "done",    "flush", "enqueue", "wait",   "reuse",  "rotate", "sync",      "pack",    "unpack",
    "publish", "acquire", "drain", "advance", "commit", "resize", "hit",    "scheduled", "release", "fused"};
constexpr std::array<const char*, 18> kFields = {"bucket <i:0:63>",
                                                 "<i:1024:999999999> bytes",
                                                 "layer <i:0:96>",
                                                 "micro <i:0:31>",
                                                 "took <f:0.01:90:3> ms",
                                                 "stream 0x<x:12>",
                                                 "queue depth <i:0:64>",
                                                 "slot=<i:0:15>",
                                                 "ratio=<f:0:1:4>",
                                                 "seq <seq>",
                                                 "peer=<p>",
                                                 "chunk <i:0:511>/512",
                                                 "<i:1:4000> us",
                                                 "device <l>",
                                                 "tag <x:8>",
                                                 "alloc=<f:10:79:2>GiB",
                                                 "count=<i:1:99999>",
                                                 "token_drop=<f:0:0.2:4>"};
constexpr std::array<const char*, 6> kTails = {"",          " (async)",   " on side stream",
                                               " rank <r>", " step <it>", " ok"};

}  // namespace

std::vector<std::string> compose_chatter(Random& random, size_t count) {
  std::vector<std::string> out;
  while (out.size() < count) {
    const uint64_t style = random.below(4);
    const std::string module = kModules[random.below(kModules.size())];
    const std::string action = kActions[random.below(kActions.size())];
    std::string text = style == 0   ? module + ": " + action
                       : style == 1 ? "[" + module + "] " + action
                       : style == 2 ? module + "." + action + "()"
                                    : module + " " + action + ":";
    const uint64_t fields = 4 + random.below(5);
    for (uint64_t i = 0; i < fields; ++i) {
      text += i > 0 && random.chance(60) ? ", " : " ";
      text += kFields[random.below(kFields.size())];
    }
    out.push_back(text + kTails[random.below(kTails.size())]);
  }
  return out;
}

}  // namespace culprit::sim
