// Hugging Face Trainer and PyTorch Lightning.
#include "sim/spell.h"

namespace culprit::sim {

namespace {

using namespace spell;

constexpr LineSpec kHfLaunch[] = {
    {kRank, kRaw, W, 80,
     "<now> WARNING __main__ Process rank: <r>, device: cuda:<l>, n_gpu: 1distributed training: True, "
     "16-bits training: True"},
    {kRank0, kRaw, I, 100,
     "Training/evaluation parameters TrainingArguments(\n_n_gpu=1,\nadafactor=False,\nddp_timeout=1800,\n"
     "debug=[],\ndisable_tqdm=False,\nfp16_full_eval=False,\nignore_data_skip=False,\nlog_on_each_node=True,"
     "\n"
     "max_steps=<its>,\noutput_dir=<ckpt>,\noverwrite_output_dir=True,\nreport_to=['wandb'],\nskip_memory_"
     "metrics=True,\n)"},
};
constexpr LineSpec kHfInit[] = {
    {kHost, kHf, I, 90, "tokenization_utils_base.py:2289|loading file tokenizer.json"},
    {kHost, kHf, I, 90,
     "configuration_utils.py:731|loading configuration file <root>/models/<model>/config.json"},
    {kHost, kHf, I, 80,
     "modeling_utils.py:3641|loading weights file <root>/models/<model>/model.safetensors.index.json"},
    {kRank, kRaw, W, 60,
     "Loading checkpoint shards: 100%|██████████| 30/30 [00:<i:10:59><w:00,30>,  <f:1:3:2>it/s]"},
    {kHost, kHf, W, 60,
     "modeling_utils.py:4473|Some weights of LlamaForCausalLM were not initialized from the model checkpoint "
     "and "
     "are newly initialized: ['lm_head.bias']. You should probably TRAIN this model on a down-stream task."},
    {kHost, kRaw, W, 60,
     "WARNING:datasets.builder:Found cached dataset json (<root>/cache/json/default-<x:16>/0.0.0)"},
    {kRank0, kHf, I, 100, "trainer.py:2128|***** Running training *****"},
    {kRank0, kHf, I, 100, "trainer.py:2129|  Num examples = <i:10000:9000000>"},
    {kRank0, kHf, I, 90, "trainer.py:2131|  Instantaneous batch size per device = 4"},
    {kRank0, kHf, I, 90, "trainer.py:2135|  Gradient Accumulation steps = 8"},
    {kRank0, kHf, I, 100, "trainer.py:2136|  Total optimization steps = <its>"},
    {kHost, kRaw, W, 60,
     "/opt/conda/lib/python3.10/site-packages/torch/utils/checkpoint.py:460: UserWarning: "
     "torch.utils.checkpoint: please pass in use_reentrant=True or use_reentrant=False explicitly."},
    {kRank, kRaw, W, 30,
     "`use_cache=True` is incompatible with gradient checkpointing. Setting `use_cache=False`..."},
};
constexpr LineSpec kHfIteration[] = {
    {kHost, kPython, D, 60, "accelerate: gathered gradients for step <it> in <f:1:40:2> ms"},
    {kRank, kPython, D, 12, "dataloader worker <i:0:3> prefetched batch for rank <r> in <f:1:40:2> ms"},
    {kRank0, kRaw, W, 90, " <pct>%|<bar>| <it>/<its> [<i:1:9>:<i:10:59>:00,  <s>s/it]"},
    {kRank0, kRaw, I, kFixed, "{'loss': <loss>, 'grad_norm': <gn>, 'learning_rate': <lr>, 'epoch': <epoch>}"},
};
constexpr LineSpec kHfCheckpoint[] = {
    {kRank0, kHf, I, 100, "trainer.py:3478|Saving model checkpoint to <ckpt>/checkpoint-<it>"},
    {kRank0, kHf, I, 90,
     "configuration_utils.py:472|Configuration saved in <ckpt>/checkpoint-<it>/config.json"},
    {kRank0, kHf, I, 90,
     "tokenization_utils_base.py:2574|tokenizer config file saved in "
     "<ckpt>/checkpoint-<it>/tokenizer_config.json"},
    {kRank, kPython, D, 50, "rank <r> optimizer shard saved (<f:1:9:2> GiB, <f:0.4:5:2> s)"},
};
constexpr LineSpec kHfEvaluation[] = {
    {kRank0, kHf, I, 100, "trainer.py:3788|***** Running Evaluation *****"},
    {kRank0, kRaw, I, 100,
     "{'eval_loss': <loss>, 'eval_runtime': <f:3:12:4>, 'eval_samples_per_second': <f:30:90:3>, 'epoch': "
     "<epoch>}"},
};
constexpr LineSpec kHfTeardown[] = {
    {kRank0, kRaw, I, 100,
     "{'train_runtime': <f:1000:9000:4>, 'train_samples_per_second': <f:30:90:3>, 'train_loss': <loss>, "
     "'epoch': <epoch>}"},
    {kRank0, kHf, I, 90,
     "trainer.py:2383|\n\nTraining completed. Do not forget to share your model on huggingface.co/models "
     "=)\n\n"},
    {kRank0, kRaw, W, 60,
     "Dropping the following result as it does not have all the necessary fields:\n{'task': {'name': 'Causal "
     "Language Modeling', 'type': 'text-generation'}}"},
    {kHost, kPython, I, 80, "process group destroyed, rank <r> exit"},
};

constexpr LineSpec kLightningLaunch[] = {
    {kRank0, kRaw, I, 100,
     "GPU available: True (cuda), used: True\nTPU available: False, using: 0 TPU cores\nHPU available: "
     "False, using: 0 HPUs"},
    {kRank, kRaw, I, 100, "Initializing distributed: GLOBAL_RANK: <r>, MEMBER: <i:1:64>/<R>"},
    {kRank0, kRaw, I, 90,
     "----------------------------------------------------------------------------------------------------\n"
     "distributed_backend=nccl\nAll distributed processes registered. Starting with <R> processes\n"
     "----------------------------------------------------------------------------------------------------"},
};
constexpr LineSpec kLightningInit[] = {
    {kRank, kRaw, I, 100, "LOCAL_RANK: <l> - CUDA_VISIBLE_DEVICES: [0,1,2,3,4,5,6,7]"},
    {kRank0, kRaw, I, 100,
     "  | Name      | Type               | Params\n-------------------------------------------------\n0 | "
     "encoder   "
     "| TransformerEncoder | <i:100:900> M \n1 | head      | Linear             | <f:1:9:1> M \n2 | "
     "criterion | CrossEntropyError  | 0\n"
     "-------------------------------------------------\n<i:100:900> M     Trainable params\n0         "
     "Non-trainable params"},
    {kHost, kRaw, W, 70,
     "/opt/conda/lib/python3.10/site-packages/lightning/pytorch/trainer/connectors/data_connector.py:441: "
     "The "
     "'train_dataloader' does not have many workers which may be a bottleneck. Consider increasing the value "
     "of the "
     "`num_workers` argument` to `num_workers=95` in the `DataLoader` to improve performance."},
    {kRank0, kRaw, W, 60,
     "Sanity Checking DataLoader 0: 100%|██████████| 2/2 [00:0<i:1:9><w:00,10>,  <f:1:3:2>it/s]"},
    {kRank, kPython, D, 30, "ddp bucket cap 25 MB, find_unused_parameters=False, static_graph=True rank <r>"},
};
constexpr LineSpec kLightningIteration[] = {
    {kHost, kPython, D, 60, "optimizer_step closure <f:4:90:2> ms, zero_grad <f:0.1:2:2> ms"},
    {kRank, kPython, D, 10, "train_dataloader_next <f:0.1:9:3> ms rank <r>"},
    {kRank0, kRaw, W, kFixed,
     "Epoch <i:0:0>: <pct>%|<bar>| <it>/<its> [0<i:1:9>:<i:10:59>, <f:0.1:2:2>it/s, v_num=<x:2>, "
     "train_loss=<loss>, grad_norm=<gn>]"},
};
constexpr LineSpec kLightningCheckpoint[] = {
    {kRank0, kRaw, I, 100,
     "Epoch 0, global step <it>: 'val_loss' reached <loss> (best <loss>), saving model to "
     "'<ckpt>/epoch=0-step=<it>.ckpt' as top 3"},
    {kHost, kPython, D, 70, "async checkpoint io flushed <f:0.5:9:2> GiB in <f:0.4:5:2> s"},
};
constexpr LineSpec kLightningEvaluation[] = {
    {kRank0, kRaw, W, 100,
     "Validation DataLoader 0: 100%|██████████| 50/50 [00:<i:10:59><w:00,10>, <f:1:9:2>it/s]"},
    {kRank0, kPython, I, 90, "val_loss=<loss> val_error_rate=<f:0.1:0.4:4> at step <it>"},
};
constexpr LineSpec kLightningTeardown[] = {
    {kRank0, kRaw, I, 100, "`Trainer.fit` stopped: `max_steps=<its>` reached."},
    {kHost, kPython, I, 80, "teardown complete on <h>, failures=0"},
};

constexpr FrameworkLines kTrainerLines[] = {
    {"hf-trainer", "transformers Trainer: dicts of losses and tqdm bars on rank 0", kHfLaunch, kHfInit,
     kHfIteration, kHfCheckpoint, kHfEvaluation, kHfTeardown},
    {"lightning", "PyTorch Lightning: progress bars on rank 0", kLightningLaunch, kLightningInit,
     kLightningIteration, kLightningCheckpoint, kLightningEvaluation, kLightningTeardown},
};

}  // namespace

std::span<const FrameworkLines> frameworks_trainers() { return kTrainerLines; }

}  // namespace culprit::sim
