// Python frames of a simulated trainer: the code position of each rank's host thread.
#include "sim/hang_state.h"

namespace culprit::sim {
namespace {

constexpr std::string_view kSite = "/usr/lib/python3.11/site-packages/";

struct SourcePlace {
  std::string_view function, file;
  uint32_t line = 0;
};

// The part of a trainer's stack for one place, innermost frame first.
struct PlaceFrames {
  HangPlace place;
  std::vector<SourcePlace> frames;
};

const std::vector<PlaceFrames>& place_frames() {
  using P = HangPlace;
  static const std::vector<PlaceFrames> kFrames = {
      {P::kLoader,
       {{"poll", "/usr/lib/python3.11/selectors.py", 415},
        {"wait", "/usr/lib/python3.11/multiprocessing/connection.py", 947},
        {"get", "/usr/lib/python3.11/multiprocessing/queues.py", 113},
        {"_try_get_data", "torch/utils/data/dataloader.py", 1133},
        {"_next_data", "torch/utils/data/dataloader.py", 1448},
        {"__next__", "torch/utils/data/dataloader.py", 708},
        {"get_batch", "data.py", 88}}},
      {P::kForward,
       {{"forward", "torch/nn/modules/linear.py", 125},
        {"_call_impl", "torch/nn/modules/module.py", 1762},
        {"forward", "model/transformer.py", 611},
        {"forward_step", "schedules.py", 230}}},
      {P::kBackward,
       {{"_engine_run_backward", "torch/autograd/graph.py", 823},
        {"backward", "torch/autograd/__init__.py", 347},
        {"backward_step", "schedules.py", 291}}},
      {P::kSendForward,
       {{"isend", "torch/distributed/distributed_c10d.py", 2266},
        {"_communicate", "p2p.py", 312},
        {"send_forward", "p2p.py", 401}}},
      {P::kRecvForward, {{"_communicate", "p2p.py", 326}, {"recv_forward", "p2p.py", 377}}},
      {P::kSendBackward,
       {{"isend", "torch/distributed/distributed_c10d.py", 2266},
        {"_communicate", "p2p.py", 312},
        {"send_backward", "p2p.py", 430}}},
      {P::kRecvBackward, {{"_communicate", "p2p.py", 326}, {"recv_backward", "p2p.py", 389}}},
      {P::kGradReduce,
       {{"reduce_scatter_tensor", "torch/distributed/distributed_c10d.py", 4273},
        {"start_grad_sync", "optim/grad_buffer.py", 174},
        {"finalize_model_grads", "optim/finalize.py", 212}}},
      {P::kNorm, {{"get_grad_norm", "optim/clip_grads.py", 97}, {"step", "optim/optimizer.py", 517}}},
      {P::kParamGather,
       {{"all_gather_into_tensor", "torch/distributed/distributed_c10d.py", 3798},
        {"start_param_sync", "optim/grad_buffer.py", 241},
        {"step", "optim/optimizer.py", 533}}},
      {P::kSave,
       {{"write_record", "torch/serialization.py", 1021},
        {"_save", "torch/serialization.py", 1207},
        {"save", "torch/serialization.py", 943},
        {"save_checkpoint", "checkpointing.py", 449}}},
      {P::kBarrier,
       {{"barrier", "torch/distributed/distributed_c10d.py", 4551},
        {"wrapper", "torch/distributed/c10d_logger.py", 81},
        {"wait_for_everyone", "state.py", 367}}},
      {P::kEnd,
       {{"barrier", "torch/distributed/distributed_c10d.py", 4551},
        {"wrapper", "torch/distributed/c10d_logger.py", 81},
        {"finish", "run.py", 77}}},
      {P::kLock,
       {{"acquire", "/usr/lib/python3.11/logging/__init__.py", 918},
        {"handle", "/usr/lib/python3.11/logging/__init__.py", 976},
        {"report_metrics", "metrics.py", 141}}},
      {P::kGarbage, {{"collect_cycles", "gc_control.py", 29}, {"on_step_end", "callbacks.py", 203}}},
      {P::kTokenize,
       {{"_batch_encode_plus", "transformers/tokenization_utils_fast.py", 530},
        {"tokenize", "data.py", 143},
        {"map", "datasets/arrow_dataset.py", 3161},
        {"prepare_dataset", "data.py", 171}}},
      {P::kExit, {{"_shutdown", "/usr/lib/python3.11/threading.py", 1590}}},
  };
  return kFrames;
}

void append(const HangSite& s, std::vector<HangFrame>& out, HangPlace place) {
  for (const PlaceFrames& one : place_frames()) {
    if (one.place != place) continue;
    for (const SourcePlace& frame : one.frames) {
      const bool library = frame.file.starts_with("torch/") || frame.file.starts_with("transformers/") ||
                           frame.file.starts_with("datasets/");
      std::string path(frame.file);
      if (path[0] != '/') path = (library ? std::string(kSite) : "/workspace/" + s.user_package + "/") + path;
      out.push_back({frame.function, std::move(path), frame.line});
    }
  }
}

}  // namespace

std::vector<HangFrame> hang_frames(const HangSite& s, HangPlace place, bool waits) {
  std::vector<HangFrame> out;
  const std::string own = "/workspace/" + s.user_package + "/";
  const bool transfer = place == HangPlace::kRecvForward || place == HangPlace::kRecvBackward;
  if (waits && transfer) out.push_back({"synchronize", std::string(kSite) + "torch/cuda/__init__.py", 1040});
  append(s, out, place);
  const bool in_step = transfer || place == HangPlace::kForward || place == HangPlace::kBackward ||
                       place == HangPlace::kSendForward || place == HangPlace::kSendBackward ||
                       place == HangPlace::kGradReduce;
  if (in_step) out.push_back({"forward_backward_pipelining", own + "schedules.py", s.pp > 1 ? 1'470u : 612u});
  if (in_step || place == HangPlace::kNorm || place == HangPlace::kParamGather || place == HangPlace::kLoader)
    out.push_back({"train_step", own + "training.py", 771});
  if (place != HangPlace::kEnd && place != HangPlace::kExit) {
    out.push_back({"train", own + "training.py", 1'318});
    out.push_back({"main", own + "run.py", 64});
  }
  out.push_back({"<module>", own + "run.py", 91});
  return out;
}

std::vector<HangFrame> hang_call_site(const HangSite& s, const HangAct& act) {
  std::vector<HangFrame> out;
  const bool tensor = act.group == HangGroup::kTensor;
  if (tensor || act.place == HangPlace::kNorm)
    out.push_back({"all_reduce", std::string(kSite) + "torch/distributed/distributed_c10d.py", 2'810});
  if (tensor)
    out.push_back({"reduce_from_region", "/workspace/" + s.user_package + "/model/mappings.py", 24});
  append(s, out, act.place);
  return out;
}

}  // namespace culprit::sim
