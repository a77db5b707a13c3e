"""The runs of the zoo: which program, what goes wrong in it, and what an answer must say to be right."""
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple

CRASH, HANG, SLOW, NUMERIC, LAUNCH = "crash", "hang", "slowdown", "numeric", "launch_failure"


@dataclass(frozen=True)
class Truth:
    """`words`: a regular expression that the verdict's title, reasons or evidence must match;
    `rank`: the faulty one, None where all or none are; `categories`: the right ones, () for any."""
    symptoms: Tuple[str, ...]
    words: str
    rank: Optional[int] = None
    categories: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Run:
    name: str
    trainer: str
    launcher: str            # torchrun | ranks | slurm | alone | mpirun
    ranks: int
    options: Tuple[str, ...] = ()
    callback: str = ""       # see trainers/callbacks.py
    live: Optional[Truth] = None   # None: a healthy run
    logs: Optional[Truth] = None   # None: logs alone cannot show the fault, unless the run is healthy
    around: str = ""         # the fault that job.py injects from outside
    env: Dict[str, str] = field(default_factory=dict)
    again: Tuple[str, ...] = ()    # options of a second start

    @property
    def healthy(self) -> bool:
        return self.live is None


def _fault(name: str, launch: Tuple[str, str, int], truth: Truth, logs: object = True, **more) -> Run:
    """`logs`: True: the logs show the same; False: they cannot; a Truth: what they show instead."""
    trainer, launcher, ranks = launch
    seen = truth if logs is True else logs if isinstance(logs, Truth) else None
    return Run(name, trainer, launcher, ranks, live=truth, logs=seen, **more)


def _crash(words: str, rank: Optional[int] = None, *categories: str) -> Truth:
    return Truth((CRASH, LAUNCH), words, rank, categories)


GONE = (r"SIGKILL|[Ss]ignal 9|exitcode: -9|killed|died|disappeared|ended|closed its connection|silent|"
        "without a message")
# torch.save hides the reason.
UNWRITTEN = r"[Nn]o space left|[Ff]ile too large|could not be written|write failed"
AGAIN = r"^(?!.*\bonce\b)"
CNN, GPT, PIPE = ("cnn_ddp", "torchrun", 3), ("gpt_accum", "ranks", 3), ("pipeline", "ranks", 3)
SHARD, TUNE, PLAIN = ("sharded", "torchrun", 3), ("finetune", "torchrun", 2), ("script_print", "slurm", 2)
NUMPY, RL, SERVER = ("numpy_sgd", "alone", 3), ("rl_loop", "ranks", 3), ("param_server", "ranks", 3)
MPI = ("mpi_ring", "mpirun", 4)

FAULTS: List[Run] = [
    _fault("kill9", CNN, _crash(GONE, 1), callback="kind=kill rank=1 first=40"),
    _fault("kill9_without_a_launcher", GPT, _crash(GONE, 2), callback="kind=kill rank=2 first=30"),
    _fault("exit_3", SHARD, _crash(r"exit ?code:? 3|ended with 3|\(3\)", 1),
           callback="kind=exit rank=1 first=40 code=3"),
    _fault("segfault", NUMPY, _crash(r"SIGSEGV|-11|[Ss]egmentation|signal 11", 1),
           callback="kind=segv rank=1 first=50"),
    _fault("kill9_worker", SERVER, _crash(GONE, 2), callback="kind=kill rank=2 first=30"),
    _fault("value_error", PLAIN, _crash(r"ValueError|invalid literal", 1, "user"),
           callback="kind=raise rank=1 first=45 error=value"),
    _fault("key_error", TUNE, _crash(r"KeyError|attention_mask", 1, "user"),
           callback="kind=raise rank=1 first=40 error=key"),
    _fault("missing_file", GPT, _crash(r"train-00031|No such file", 0, "user", "platform"),
           callback="kind=raise rank=0 first=35 error=file"),
    _fault("missing_module", CNN, _crash("flash_attn", None, "user"), callback="kind=start error=module"),
    _fault("host_memory", SHARD, _crash(r"MemoryError|allocate memory", 1),
           callback="kind=raise rank=1 first=40 error=memory"),
    _fault("cuda_memory", GPT, _crash(r"out of memory", 1, "user"),
           callback="kind=raise rank=1 first=30 error=cuda"),
    _fault("disk_full", SHARD, _crash(UNWRITTEN), around="tmpfs",
           options=("--save", "{folder}/full/shard_{{rank}}.pt", "--save-interval", "30")),
    _fault("file_size_limit", TUNE, _crash(UNWRITTEN, 0), around="fsize",
           options=("--output", "{folder}")),
    _fault("permission_denied", CNN, _crash(r"[Pp]ermission denied|cannot be opened", 0, "user", "platform"),
           around="unprivileged",
           options=("--checkpoint", "{folder}/locked/model.pt")),
    _fault("nan_by_learning_rate", SHARD, Truth((NUMERIC,), r"lr\b|learning rate"),
           callback="kind=lr first=50 last=50"),
    _fault("nan_by_sample", CNN, Truth((NUMERIC,), r"(?i)nan|not finite|infinit", 1, ("user", "unknown")),
           logs=Truth((NUMERIC,), r"(?i)nan|not finite|infinit"),
           callback="kind=sample rank=1 first=40 last=40"),
    _fault("slow_rank", GPT, Truth((SLOW,), "", 1), logs=False, callback="kind=spin rank=1 first=20 ms=200"),
    _fault("slow_one_of_seven", SHARD, Truth((SLOW,), AGAIN, 2), logs=False,
           callback="kind=spin rank=2 first=14 every=7 ms=700"),
    _fault("four_stalls", TUNE, Truth((SLOW,), AGAIN, 1), logs=False,
           callback="kind=sleep rank=1 first=20 every=20 last=80 ms=2500"),
    _fault("starved", GPT, Truth((SLOW,), r"(?i)core", 1), logs=False, around="starve_rank_1",
           options=("--iters", "400")),
    _fault("loader_stuck", CNN, Truth((HANG,), "", 1), logs=False, callback="kind=loader rank=1 first=440"),
    _fault("deadlock", RL, Truth((HANG,), "", 1), logs=False, callback="kind=lock rank=1 first=30"),
    _fault("stopped", PIPE, Truth((HANG,), "", 1), logs=False, callback="kind=stop rank=1 first=40"),
    _fault("other_collective", GPT,
           Truth((HANG, CRASH), r"(?i)mismatch|broadcast|other operation|different", 1, ("user",)),
           logs=False, callback="kind=other rank=1 first=30 last=30"),
    _fault("other_size", SHARD,
           Truth((HANG, CRASH), r"(?i)mismatch|size|bytes|length|preamble", None, ("user",)),
           callback="kind=resize rank=1 first=40 last=40"),
    _fault("skipped_collective", GPT, Truth((HANG, CRASH, "other"), "", 1), logs=False,
           callback="kind=skip rank=1 first=30 last=30", options=("--iters", "50", "--timeout", "15")),
    _fault("world_size", GPT, Truth((LAUNCH, CRASH, HANG), r"(?i)time|join|clients|rendezvous|store"),
           options=("--timeout", "10"), around="one_missing"),
    _fault("port_in_use", NUMPY, _crash(r"(?i)address already in use|EADDRINUSE|port"), around="port",
           options=("--port", "{port}")),
    _fault("master_missing", GPT, Truth((LAUNCH, CRASH, HANG), r"(?i)connect|refused|rank 0|store|master"),
           options=("--timeout", "10"), around="first_missing"),
    _fault("truncated_checkpoint", PLAIN,
           _crash(r"(?i)central directory|zip archive|checkpoint|corrupt|truncated"),
           around="truncated", options=("{folder}/model.pt",)),
    _fault("bad_config", CNN, _crash(r"betas", None, "user"), callback="kind=start error=config"),
    _fault("slow_tokenizer", TUNE, Truth((HANG, CRASH, LAUNCH), r"(?i)tokeniz|rank 0|time"),
           options=("--sentences", "20000", "--timeout", "10")),
    _fault("recursion", RL, _crash(r"RecursionError|recursion", 1, "user"),
           callback="kind=raise rank=1 first=30 error=recursion"),
    _fault("assertion", GPT, _crash(r"AssertionError|50257", 0, "user"),
           callback="kind=raise rank=0 first=30 error=assertion"),
    _fault("interrupted", SHARD,
           Truth((CRASH, "other"), r"(?i)KeyboardInterrupt|SIGINT|interrupt", None, ("user",)),
           callback="kind=raise first=40 error=interrupt"),
    _fault("terminated", CNN,
           _crash(r"(?i)SIGTERM|terminat|cancel|signal:? 15|15 death signal", None, "user", "platform"),
           around="sigterm"),
    _fault("mpi_kill9", MPI, _crash(GONE, 1), around="kill_rank_1", options=("120", "60000")),
    _fault("mpi_slow", MPI, Truth((SLOW,), "", 2), logs=False, options=("120", "40000", "2", "4")),
    _fault("mpi_stopped", MPI, Truth((HANG,), "", 1), logs=False, around="stop_rank_1",
           options=("300", "60000")),
]


def _healthy(name: str, launch: Tuple[str, str, int], *options: str, **more) -> Run:
    trainer, launcher, ranks = launch
    return Run(name, trainer, launcher, ranks, options, **more)


HEALTHY: List[Run] = [
    _healthy("evaluates_and_saves", CNN, "--checkpoint", "{folder}/model.pt"),
    _healthy("compiles_first", GPT, "--warmup-compile", "6", "--iters", "50"),
    _healthy("collects_garbage", GPT, "--gc-every", "9"),
    _healthy("pipeline_evaluates", PIPE, "--eval-every", "40"),
    _healthy("saves_shards", SHARD, "--save", "{folder}/shard_{{rank}}.pt"),
    _healthy("asynchronous", SERVER),
    _healthy("uneven_batches", NUMPY, "--uneven"),
    _healthy("progress_bars", TUNE, "--output", "{folder}"),
    _healthy("plain_script", PLAIN),
    _healthy("uneven_episodes", RL),
    _healthy("stops_early", CNN, "--patience", "2", "--epochs", "8"),
    _healthy("starts_again", SHARD, "--save", "{folder}/shard_{{rank}}.pt", "--stop-at", "40",
             again=("--load", "{folder}/shard_{{rank}}.pt")),
    _healthy("mpi", MPI, "160", "50000"),
]

RUNS = FAULTS + HEALTHY
# For tests/run: crashes of torchrun and of bare ranks, one at the start, a hang, and two healthy runs.
SUBSET = ("kill9", "cuda_memory", "missing_module", "stopped", "uneven_episodes", "plain_script")
