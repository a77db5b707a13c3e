// Tables: MindSpore/MindFormers, MaxText, and a plain training loop where every rank writes lines.
#include "sim/spell.h"

namespace culprit::sim {

namespace {

using namespace spell;

constexpr LineSpec kMindLaunch[] = {
    {kHost, kRaw, I, 100,
     "Running Command: python run_mindformer.py --config configs/<model>.yaml --use_parallel True --run_mode "
     "train\n"
     "Please check log files in <root>/msrun_log"},
    {kRank, kMindPy, I, 90, "start create network, rank_id <r>, device_num <R>"},
    {kRank0, kMindPy, I, 100,
     "config: {'ignore_error': False, 'parallel_config': {'data_parallel': <dp>, 'model_parallel': <tp>, "
     "'pipeline_stage': <pp>}, 'max_failed_times': 3}"},
};
constexpr LineSpec kMindInit[] = {
    {kRank, kRaw, W, 70,
     "[WARNING] DISTRIBUTED(<pid>,ffff<x:8>,python):<now> "
     "[mindspore/ccsrc/distributed/collective/collective_manager.cc:283] "
     "CreateCommunicationGroup] Start to create communication group: hccl_world_group rank <r>"},
    {kRank, kRaw, W, 70,
     "[WARNING] PARALLEL(<pid>,ffff<x:8>,python):<now> "
     "[mindspore/ccsrc/frontend/parallel/step_parallel.cc:2984] "
     "StepParallel] There are <i:2:90> cells without strategy, they run replicated"},
    {kRank, kRaw, W, 50,
     "[WARNING] MD(<pid>,ffff<x:8>,python):<now> "
     "[mindspore/ccsrc/minddata/dataset/engine/datasetops/source/generator_op.cc:220] "
     "operator()] Bad performance attention, it takes more than 25 seconds to generator.__next__ new row"},
    {kRank, kMindPy, I, 80, "Network Parameters: <i:400:9000> M. rank <r>"},
    {kRank0, kMindPy, I, 90, ".........Build Optimizer From Config.........."},
    {kRank0, kMindPy, I, 90, ".........Build Callbacks For Train.........."},
    {kRank, kMindPy, I, 60, "graph compile done in <f:40:200:1> s, memory <i:30:60> GB"},
    {kRank0, kMindPy, I, 100, "Create train dataset finish, dataset size:<i:1000:90000>"},
};
constexpr LineSpec kMindIteration[] = {
    {kRank, kMindPy, D, 25, "sink data queue depth <i:1:16> device <l>"},
    {kLast, kMindPy, I, kFixed,
     "{ Epoch:[  1/  1], step:[<it>/<its>], loss: <loss>, per_step_time: <i:900:9000>ms, lr: <lr>, "
     "overflow cond: False, loss_scale: <scale>, global_norm: [<gn>] }"},
    {kLast, kMindPy, I, 60, "  <pct>% |<bar>| <f:0.2:9:5> samples/s/p  <i:1:9>:<i:10:59>:<i:10:59> }"},
};
constexpr LineSpec kMindCheckpoint[] = {
    {kRank, kMindPy, I, 70, "......Saving ckpt...... rank_<r>-<it>_1.ckpt"},
    {kRank, kMindPy, D, 50, "integrated save False, cost <f:0.5:9:2> s"},
};
constexpr LineSpec kMindEvaluation[] = {
    {kRank0, kMindPy, I, 100, "Eval result PerplexityMetric: {'loss': <loss>, 'PPL': <f:7:19:4>}"},
};
constexpr LineSpec kMindTeardown[] = {
    {kRank, kMind, I, 80,
     "HCCL|[op_base.cc:2211][<tid>]HcclCommDestroy success, take time [<i:1000:90000>]us"},
    {kRank0, kMindPy, I, 100, ".........Training Over!............."},
};

constexpr LineSpec kMaxLaunch[] = {
    {kHost, kRaw, I, 100, "Starting MaxText training, config file base.yml, run <model>-<job>"},
    {kHost, kGlog, I, 90, "max_utils.py:240] Attempting to initialize the jax distributed system..."},
    {kRank0, kRaw, I, 100,
     "Config param abort_on_inf_loss: True\nConfig param base_emb_dim: <i:2048:16384>\nConfig param "
     "checkpoint_is_quantized: False\nConfig param enable_checkpointing: True\nConfig param "
     "jax_distributed_initialization_timeout: "
     "300\nConfig param max_target_length: 4096\nConfig param profiler: \nConfig param steps: <its>"},
};
constexpr LineSpec kMaxInit[] = {
    {kHost, kGlog, I, 90, "checkpointing.py:60] Creating checkpoint manager..."},
    {kHost, kGlog, I, 80, "checkpoint_manager.py:700] [process=<r>] Found 0 checkpoint steps in <ckpt>"},
    {kHost, kRaw, I, 90, "Num_devices: <R>, shape (1, 1, <dp>, 1, <pp>, <tp>, 1)"},
    {kHost, kRaw, W, 60,
     "/usr/local/lib/python3.10/site-packages/jax/_src/cloud_tpu_init.py:82: UserWarning: Transparent "
     "hugepages "
     "are not enabled. TPU runtime startup and shutdown time should be significantly improved on TPU v5e and "
     "newer."},
    {kRank0, kRaw, I, 90, "number parameters: <f:8:340:3> billion"},
    {kHost, kGlog, I, 70, "grain_pool.py:366] Grain pool will use <i:4:32> processes."},
    {kHost, kRaw, I, 80, "Compiled with XLA flags: --xla_tpu_enable_async_collective_fusion=true"},
};
constexpr LineSpec kMaxIteration[] = {
    {kRank, kGlog, D, 12, "train.py:410] data fetch <f:0.1:4:3> ms dispatch <f:0.1:4:3> ms"},
    {kHost, kRaw, I, kFixed,
     "completed step: <it>, seconds: <s>, TFLOP/s/device: <f:180:260:3>, Tokens/s/device: <f:900:2400:3>, "
     "total_weights: <i:2000000:4000000>, loss: <loss>"},
    {kRank0, kGlog, I, 20, "metric_logger.py:88] step <it> grad_norm <gn> learning_rate <lr>"},
};
constexpr LineSpec kMaxCheckpoint[] = {
    {kHost, kGlog, I, 90, "checkpoint_manager.py:1001] [process=<r>] [step=<it>] Saving checkpoint"},
    {kHost, kGlog, I, 80,
     "async_checkpointer.py:150] [process=<r>] Background save thread finished in <f:0.5:9:2>s, step <it>"},
    {kRank0, kRaw, I, 80, "saved a checkpoint at step <it>"},
};
constexpr LineSpec kMaxEvaluation[] = {
    {kHost, kRaw, I, 100, "average loss after step <it>: eval_loss=<loss>, total_weights=<i:100000:900000>"},
};
constexpr LineSpec kMaxTeardown[] = {
    {kHost, kGlog, I, 90, "coordination_service_agent.cc:510] Coordination agent has initiated Shutdown()."},
    {kHost, kGlog, I, 80, "multihost.py:293] [process=<r>] All barriers passed, exiting cleanly"},
};

constexpr LineSpec kPlainLaunch[] = {
    {kRank, kPython, I, 95,
     "args: Namespace(lr=0.0003, steps=<its>, fail_fast=False, error_dir=None, resume='auto', seed=17)"},
    {kRank0, kPython, I, 90, "experiment <model> started by <user>, output <ckpt>"},
};
constexpr LineSpec kPlainInit[] = {
    {kRank, kPython, I, 95, "init_process_group backend=nccl world=<R> rank=<r> done in <f:1:9:2> s"},
    {kRank, kPython, I, 80, "model built: <i:100:9000> tensors, <f:1:90:2> B parameters, fsdp shard <r>/<R>"},
    {kRank, kPython, D, 50, "warmup all_reduce of 1 MiB took <f:0.3:90:2> ms"},
    {kHost, kPython, I, 80, "dataset ready: <i:10:900> files, epoch length <i:1000:90000>"},
    {kRank0, kPython, W, 60, "no checkpoint found at <ckpt>, starting from scratch (this is not an error)"},
};
constexpr LineSpec kPlainIteration[] = {
    {kRank, kPython, D, 18, "fetch=<f:0.5:9:2>ms h2d=<f:0.2:3:2>ms rank=<r>"},
    {kHost, kPython, D, 60, "grad sync <f:4:90:2> ms over <i:2:40> buckets"},
    {kRank, kPython, I, kFixed,
     "step=<it> loss=<loss> grad_norm=<gn> lr=<lr> iter_ms=<ms> tokens/s=<i:8000:20000>"},
};
constexpr LineSpec kPlainCheckpoint[] = {
    {kRank, kPython, I, 90,
     "checkpoint step=<it> shard=<r> bytes=<i:100000000:9000000000> seconds=<f:0.4:6:2>"},
    {kRank0, kPython, I, 95, "checkpoint step=<it> committed, keeping last 3"},
};
constexpr LineSpec kPlainEvaluation[] = {
    {kRank0, kPython, I, 100, "eval step=<it> loss=<loss> accuracy=<f:0.3:0.6:4> errors=<i:100:900>/1000"},
};
constexpr LineSpec kPlainTeardown[] = {
    {kRank, kPython, I, 90, "training finished, rank <r> leaving"},
    {kRank, Shape::kNccl, I, 70,
     "comm 0x<x:12> rank <r> nranks <R> cudaDev <l> busId <x:5> - Abort COMPLETE"},
};

constexpr FrameworkLines kOtherLines[] = {
    {"mindspore", "MindSpore with MindFormers on Ascend, with plog lines", kMindLaunch, kMindInit,
     kMindIteration, kMindCheckpoint, kMindEvaluation, kMindTeardown},
    {"maxtext", "MaxText (JAX) on TPU: every host prints its steps", kMaxLaunch, kMaxInit, kMaxIteration,
     kMaxCheckpoint, kMaxEvaluation, kMaxTeardown},
    {"plain", "a plain PyTorch loop: every rank prints step=", kPlainLaunch, kPlainInit, kPlainIteration,
     kPlainCheckpoint, kPlainEvaluation, kPlainTeardown},
};

}  // namespace

std::span<const FrameworkLines> frameworks_others() { return kOtherLines; }

}  // namespace culprit::sim
