// Megatron-LM, Megatron-DeepSpeed and NeMo.
#include "sim/spell.h"

namespace culprit::sim {

namespace {

using namespace spell;

constexpr LineSpec kLaunch[] = {
    {kRank0, kRaw, I, 100,
     "using world size: <R>, data-parallel-size: <dp>, tensor-model-parallel size: <tp>, "
     "pipeline-model-parallel size: <pp> "},
    {kRank0, kRaw, I, 90, "using torch.bfloat16 for parameters ..."},
    {kRank0, kRaw, I, 100,
     "------------------------ arguments ------------------------\n"
     "  accumulate_allreduce_grads_in_fp32 .............. True\n  adam_beta1 "
     "...................................... 0.9\n"
     "  adam_beta2 ...................................... 0.95\n  bf16 "
     "............................................ True\n"
     "  check_for_nan_in_loss_and_grad .................. True\n  error_injection_rate "
     "............................ 0\n"
     "  error_injection_type ............................ transient_error\n"
     "  exit_on_missing_checkpoint ...................... False\n  exit_signal_handler "
     "............................. False\n"
     "  global_batch_size ............................... 512\n  hidden_size "
     "..................................... <i:2048:16384>\n"
     "  log_progress .................................... False\n  manual_gc "
     "....................................... True\n"
     "  num_layers ...................................... <layers>\n  seed "
     "............................................ 1234\n"
     "  straggler_ctrlr_port ............................ 65535\n  timing_log_level "
     "................................ 0\n"
     "  train_iters ..................................... <its>\n-------------------- end of arguments "
     "---------------------"},
    {kRank0, kRaw, I, 90, "setting number of micro-batches to constant <i:4:64>"},
    {kRank0, kRaw, I, 90,
     "> building GPT2BPETokenizer tokenizer ...\n > padded vocab (size: 50257) with <i:40:700> dummy "
     "tokens (new size: <i:50304:51200>)"},
    {kRank0, kRaw, I, 90, "> initializing torch distributed ..."},
};
constexpr LineSpec kInit[] = {
    {kRank0, kRaw, I, 100,
     "> initialized tensor model parallel with size <tp>\n> initialized pipeline model parallel with size "
     "<pp>"},
    {kRank0, kRaw, I, 90, "> setting random seeds to 1234 ..."},
    {kRank0, kRaw, I, 90,
     "> compiling dataset index builder ...\nmake: Entering directory "
     "'<root>/src/megatron/core/datasets'\nmake: Nothing to be done for 'default'.\nmake: Leaving directory "
     "'<root>/src/megatron/core/datasets'\n>>> done with dataset index builder. Compilation time: "
     "<f:0.03:0.09:3> seconds"},
    {kRank0, kRaw, W, 60,
     "WARNING: constraints for invoking optimized fused softmax kernel are not met. We default back to "
     "unfused kernel invocations."},
    {kRank0, kRaw, I, 90, "> compiling and loading fused kernels ..."},
    {kRank0, kRaw, I, 90,
     ">>> done with compiling and loading fused kernels. Compilation time: <f:1:9:3> seconds"},
    {kHost, kRaw, W, 50,
     "/workspace/megatron/core/tensor_parallel/layers.py:280: UserWarning: When using async grad "
     "allreduce it is recommended to set the environment variable CUDA_DEVICE_MAX_CONNECTIONS to 1 for "
     "maximum speedup"},
    {kRank0, kRaw, I, 90,
     "time to initialize megatron (seconds): <f:8:60:3>\n[after megatron is initialized] datetime: <now> "},
    {kRank0, kRaw, I, 90, "building GPT model ..."},
    {kRank, kRaw, I, 90,
     " > number of parameters on (tensor, pipeline) model parallel rank (<l>, <i:0:3>): "
     "<i:400000000:900000000>"},
    {kRank0, kRaw, I, 80,
     "INFO:megatron.core.distributed.param_and_grad_buffer:Number of buckets for gradient all-reduce / "
     "reduce-scatter: <i:1:9>"},
    {kRank, kRaw, I, 40,
     "Params for bucket <i:1:9> (<i:1000000:90000000> elements): "
     "module.decoder.layers.<i:0:40>.mlp.linear_fc2.weight"},
    {kRank0, kRaw, I, 90,
     "> learning rate decay style: cosine\nWARNING: could not find the metadata file "
     "<ckpt>/latest_checkpointed_iteration.txt \n    will not load any checkpoints and will start from "
     "random ||| "
     "> learning rate decay style: cosine\n loading release checkpoint from <ckpt>"},
    {kRank0, kRaw, I, 90,
     "> building train, validation, and test datasets ...\n > datasets target sizes (minimum size):\n    "
     "train:      <i:100000:9000000>\n    validation: <i:1000:90000>\n    test:       <i:100:9000>"},
    {kRank0, kRaw, I, 90,
     " > loading doc-idx mapping from "
     "<root>/data/text_document_train_indexmap_<i:1000:9000>ns_4096sl_1234s_doc_idx.npy\n"
     "    loaded indexed file in <f:0.001:0.02:3> seconds\n    total number of samples: <i:100000:9000000>\n "
     "   total number of epochs: 1"},
    {kRank0, kRaw, I, 90,
     "> finished creating GPT datasets ...\n[after dataloaders are built] datetime: <now> \ndone with setup "
     "..."},
    {kRank, kRaw, I, 30,
     "(min, max) time across ranks (ms):\n    model-and-optimizer-setup ......................: "
     "(<f:900:2000:2>, <f:2000:3000:2>)"},
    {kRank0, kRaw, I, 100, "training ...\n[before the start of training step] datetime: <now> "},
};
constexpr LineSpec kMegatronIteration[] = {
    {kRank, kPython, D, 22, "forward done micro-batches=<i:4:64> activations=<f:9:40:2>GiB"},
    {kHost, kPython, D, 70, "rank <r> backward-pipeline bubble <f:1:14:2> % wait_p2p <f:0.2:30:2> ms"},
    {kRank, kPython, D, 14, "grad reduce-scatter overlap <f:71:99:1> % buckets <i:2:9>"},
    {kRank0, kRaw, I, 20, "    params-all-gather-barrier ...: (<f:0.02:0.2:2>, <f:0.3:1.2:2>)"},
    {kLast, kRaw, I, kFixed,
     " [<now>] iteration <it>/ <its> | consumed samples: <samples> | elapsed time per iteration (ms): <ms> | "
     "throughput per GPU (TFLOP/s/GPU): <f:380:460:1> | learning rate: <lr> | global batch size:   512 | lm "
     "loss: <loss>E+00 | "
     "loss scale: 1.0 | grad norm: <gn> | number of skipped iterations:   0 | number of nan iterations:   0 "
     "|"},
};
constexpr LineSpec kDeepIteration[] = {
    {kRank, kDeep, I, 12,
     "[timer.py:197:stop] 0/<it>, RunningAvgSamplesPerSec=<f:90:130:3>, CurrSamplesPerSec=<f:90:130:3>, "
     "MemAllocated=<f:20:40:2>GB, MaxMemAllocated=<f:40:70:2>GB"},
    {kHost, kDeep, D, 60,
     "[engine.py:1190:_exec_forward_pass] stage step <it> send_activations <f:0.2:30:2> ms"},
    {kRank0, kRaw, I, 60,
     "time (ms) | forward-microstep: <f:100:900:2> | backward_inner_microstep: <f:200:900:2> | "
     "step_microstep: <f:1:90:2>"},
    {kRank0, kDeep, I, 90,
     "[logging.py:68:log_dist] [Rank 0] step=<it>, skipped=0, lr=[<lr>, <lr>], mom=[(0.9, 0.95), (0.9, "
     "0.95)]"},
    {kRank0, kRaw, I, 40, "steps: <it> loss: <loss> iter time (s): <s> samples/sec: <f:90:130:3>"},
    {kLast, kRaw, I, kFixed,
     " iteration <it>/ <its> | consumed samples: <samples> | consumed tokens: <tokens> | elapsed time per "
     "iteration (s): <s> | learning rate: <lr> | global batch size: 512 | lm loss: <loss>E+00 | loss scale: "
     "<scale> | grad norm: "
     "<gn> | num zeros: 0.0 | number of skipped iterations:   0 | number of nan iterations:   0 | samples "
     "per second: <f:90:130:3> | TFLOPs: <f:120:160:2> |"},
};
constexpr LineSpec kDeepInit[] = {
    {kRank, kDeep, I, 95,
     "[distributed.py:46:init_distributed] Initializing torch distributed with backend: nccl"},
    {kRank0, kRaw, I, 95,
     "--------------------------------------------------\nDeepSpeed C++/CUDA extension op report\n"
     "--------------------------------------------------\nninja .................. [OKAY]\n"
     "cpu_adam ............... [NO] ....... [OKAY]\nasync_io ............... [NO] ....... [NO]\n"
     "transformer_inference .. [NO] ....... [OKAY]"},
    {kRank0, kDeep, I, 90,
     "[logging.py:68:log_dist] [Rank 0] DeepSpeed info: version=0.14.2, git-hash=<rev>, git-branch=HEAD"},
    {kRank, kDeep, I, 90,
     "[engine.py:134:__init__] RANK=<r> STAGE=<i:0:3> LAYERS=<i:4:9> [<i:0:60>, <i:60:90>) "
     "STAGE_PARAMS=<i:700000000:900000000> (<f:700:900:3>M) TOTAL_PARAMS=<i:10000000000:99000000000> "
     "(52453.507M)"},
    {kRank0, kDeep, I, 90,
     "[config.py:752:print]   allreduce_always_fp32 ........ False\n"
     "[config.py:752:print]   dump_state ................... False\n[config.py:752:print]   "
     "elasticity_enabled ........... False\n"
     "[config.py:752:print]   gradient_clipping ............ 1.0\n[config.py:752:print]   "
     "load_universal_checkpoint .... False"},
    {kHost, kDeep, W, 60,
     "[engine.py:1502:_configure_optimizer] **** You are using ZeRO with an untested optimizer, proceed with "
     "caution *****"},
    {kRank, kDeep, I, 40,
     "[stage_1_and_2.py:149:__init__] Reduce bucket size 500000000 CPU Offload: False rank <r>"},
    {kRank0, kRaw, W, 60,
     "  > WARNING: could not find the metadata file <ckpt>/latest ; will not load any checkpoints"},
    {kRank, kDeep, I, 50,
     "[utils.py:828:see_memory_usage] After initializing ZeRO: MA <f:4:9:2> GB Max_MA <f:9:12:2> GB CA "
     "<f:9:12:2> GB"},
    {kRank0, kRaw, I, 100, "training ...\n[before the start of training step] datetime: <now> "},
};
constexpr LineSpec kCheckpoint[] = {
    {kRank0, kRaw, I, 100, "saving checkpoint at iteration <it> to <ckpt> in torch_dist format"},
    {kRank, kPython, D, 50,
     "rank <r> wrote shard mp_rank_<l>_<i:0:3>/distrib_optim.pt <f:1:9:2> GiB in <f:0.5:4:2> s"},
    {kHost, kPython, I, 60, "fsync of <i:8:32> files took <f:0.05:2:2> s on <h>"},
    {kRank0, kRaw, I, 100,
     "  successfully saved checkpoint from iteration <it> to <ckpt> [ t 1/<tp>, p 1/<pp> ]"},
    {kRank0, kRaw, I, 70,
     "(min, max) time across ranks (ms):\n    save-checkpoint ................................: "
     "(<f:2000:3000:2>, <f:3000:4000:2>)"},
};
constexpr LineSpec kDeepCheckpoint[] = {
    {kRank0, kDeep, I, 100,
     "[logging.py:68:log_dist] [Rank 0] Saving model checkpoint: "
     "<ckpt>/global_step<it>/mp_rank_00_model_states.pt"},
    {kRank, kDeep, I, 60,
     "[engine.py:3062:_save_zero_checkpoint] zero checkpoint saved "
     "<ckpt>/global_step<it>/zero_pp_rank_<r>_mp_rank_00_optim_states.pt"},
    {kRank0, kRaw, I, 100, "  successfully saved checkpoint at iteration <it> to <ckpt>"},
};
constexpr LineSpec kEvaluation[] = {
    {kRank0, kRaw, I, 90, "Evaluating on <i:1000:90000> samples\nEvaluating iter 1/20"},
    {kLast, kRaw, I, 100,
     "-----------------------------------------------------------------------------------------------\n"
     " validation loss at iteration <it> | lm loss value: <loss>E+00 | lm loss PPL: <f:7:19:6>E+00 | \n"
     "-----------------------------------------------------------------------------------------------"},
};
constexpr LineSpec kTeardown[] = {
    {kRank0, kRaw, I, 100,
     "[after training is done] datetime: <now> \nsaving checkpoint at iteration <its> to <ckpt>"},
    {kRank, Shape::kNccl, I, 70,
     "comm 0x<x:12> rank <r> nranks <R> cudaDev <l> busId <x:5> - Destroy COMPLETE"},
    {kRank, kTorchCpp, W, 50,
     "ProcessGroupNCCL.cpp:1250] Warning: WARNING: process group has NOT been destroyed before we destruct "
     "ProcessGroupNCCL. On normal program exit, the application should call destroy_process_group to ensure "
     "that any "
     "pending NCCL operations have finished in this process. (function operator())"},
    {kRank0, kPython, I, 90, "job finished, exit code 0"},
};
constexpr LineSpec kNemoLaunch[] = {
    {kRank0, kNemo, I, 100,
     "megatron_gpt_pretraining:13] \n    \n    ************** Experiment configuration ***********"},
    {kRank0, kNemo, I, 100,
     "megatron_gpt_pretraining:14] \n    name: <model>\n    trainer:\n      devices: 8\n      num_nodes: "
     "<H>\n"
     "      max_steps: <its>\n      enable_checkpointing: false\n    exp_manager:\n      "
     "resume_ignore_no_checkpoint: true\n"
     "      create_checkpoint_callback: true"},
    {kRank0, kRaw, I, 100,
     "GPU available: True (cuda), used: True\nTPU available: False, using: 0 TPU cores\nIPU available: "
     "False, using: 0 IPUs\nHPU available: False, using: 0 HPUs"},
    {kHost, kRaw, W, 90,
     "[NeMo W <now> nemo_logging:349] /usr/local/lib/python3.10/dist-packages/hydra/_internal/hydra.py:119: "
     "UserWarning: Future Hydra versions will no longer change working directory at job runtime by "
     "default.\n      ret = run_job("},
};
constexpr LineSpec kNemoInit[] = {
    {kRank, kRaw, I, 90, "Initializing distributed: GLOBAL_RANK: <r>, MEMBER: <i:1:64>/<R>"},
    {kRank0, kNemo, I, 90, "megatron_init:253] Rank <r> has data parallel group : [0, <i:8:16>, <i:17:40>]"},
    {kRank0, kNemo, I, 90,
     "megatron_init:314] All tensor model parallel group ranks: [[0, 1, 2, 3], [4, 5, 6, 7]]"},
    {kRank0, kNemo, I, 80, "tokenizer_utils:191] Getting SentencePiece with model: <root>/tokenizer.model"},
    {kHost, kNemo, W, 80,
     "megatron_base_model:556] The model: MegatronGPTModel() does not have field.name: "
     "moe_grouped_gemm in its cfg. Add this key to cfg or config_mapping to make to make it configurable."},
    {kRank, kRaw, I, 60,
     " > number of parameters on (tensor, pipeline) model parallel rank (<l>, <i:0:3>): "
     "<i:400000000:900000000>"},
    {kRank0, kRaw, I, 90,
     "  | Name  | Type          | Params | Mode\n-------------------------------------------------\n0 | "
     "model | Float16Module | <f:1:90:1> B  | train\n-------------------------------------------------"},
    {kRank0, kRaw, W, 60,
     "[NeMo W <now> nemo_logging:349] UserWarning: You called `self.log('consumed_samples', ...)` in your "
     "`training_step` but the value needs to be floating point. Converting it to torch.float32."},
    {kRank, kRaw, I, 80, "LOCAL_RANK: <l> - CUDA_VISIBLE_DEVICES: [0,1,2,3,4,5,6,7]"},
};
constexpr LineSpec kNemoIteration[] = {
    {kHost, kNemo, D, 50, "timers:88] h<l> train_step_timing <s> cuda_sync <f:0.1:9:3> ms"},
    {kRank, kNemo, D, 12, "nlp_overrides:402] rank <r> overlap_param_sync bucket <i:0:31> <f:0.1:9:2> ms"},
    {kRank0, kRaw, W, kFixed,
     "Epoch 0: : <pct>%|<bar>| <it>/<its> [<i:1:9>:<i:10:59><w:00,10>, v_num=<x:4>, "
     "reduced_train_loss=<loss>, "
     "global_step=<it>.0, consumed_samples=<samples>.0, train_step_timing in s=<s>]"},
};
constexpr LineSpec kNemoCheckpoint[] = {
    {kRank0, kRaw, I, 100,
     "Epoch 0, global step <it>: 'reduced_train_loss' reached <loss> (best <loss>), saving model to "
     "'<ckpt>/megatron_gpt--step=<it>.ckpt' as top 1"},
    {kHost, kNemo, I, 70,
     "dist_ckpt_io:95] Using TorchDistSaveShardedStrategy dist-ckpt save strategy, rank <r> <f:0.3:6:2> s"},
};
constexpr LineSpec kNemoEvaluation[] = {
    {kRank0, kRaw, W, 100,
     "Validation DataLoader 0: 100%|██████████| 20/20 [00:<i:10:59><w:00,20>, <f:1:3:2>it/s]"},
};

constexpr FrameworkLines kMegatronLines[] = {
    {"megatron", "Megatron-LM: the last pipeline rank prints iteration lines", kLaunch, kInit,
     kMegatronIteration, kCheckpoint, kEvaluation, kTeardown},
    {"megatron-deepspeed", "Megatron-DeepSpeed, with DeepSpeed's own log lines", kLaunch, kDeepInit,
     kDeepIteration, kDeepCheckpoint, kEvaluation, kTeardown},
    {"nemo", "NeMo over Lightning: tqdm bars on rank 0", kNemoLaunch, kNemoInit, kNemoIteration,
     kNemoCheckpoint, kNemoEvaluation, kTeardown},
};

}  // namespace

std::span<const FrameworkLines> frameworks_megatron() { return kMegatronLines; }

}  // namespace culprit::sim
