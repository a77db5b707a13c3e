"""A log as another site writes it: one stream of many hosts and programs, with several styles of headers,
JSON, progress bars and Java's stacks. It owes nothing to `culprit simulate`, whose formats the program may
know too well. A seed gives the same bytes each time."""
import random
import time
from pathlib import Path
from typing import Callable, List

BEGAN_S = 1_773_480_413
HOSTS, RANKS = 64, 512
CLASSES = ("storage.block.BlockKeeper", "shuffle.FetchQueue", "rpc.netty.Dispatcher", "scheduler.TaskLedger",
           "metrics.sink.PushGateway", "memory.ArenaPool", "io.hdfs.QuorumReader", "deploy.worker.Heartbeat")
# The site's messages are made of these: a few hundred, as a job of several programs has.
SUBJECTS = ("block", "remote partition", "task", "heartbeat", "arena", "lease", "queue", "connection",
            "worker", "checkpoint", "gradient bucket", "data loader", "memory pool", "socket", "device",
            "token batch", "file handle", "rendezvous", "stream", "collective")
VERBS = ("dropped", "fetched", "finished", "sent", "grown", "renewed", "rebalanced", "retried", "closed",
         "timed", "evicted", "flushed", "opened", "scheduled", "skipped", "restored", "waiting",
         "failed over", "pinned")
TAILS = ("in {b} ms", "to {c} KiB", "on executor {a}", "at 10.{d}.{e}.7:7077", "after {d} attempts",
         "(TID {c})", "from /data/shard-{a}/part-{b}", "with {a} of {c} bytes free", "by host trn-{d:04}",
         "status={d} id={c:x}", "because the previous one was slow", "with default settings",
         "for user batch-{d}")
MESSAGES = 300
ERRORS = ("java.io.IOException: Stream closed by peer after {a} bytes",
          "java.util.concurrent.TimeoutException: Futures timed out after [{b} milliseconds]",
          "java.lang.IllegalStateException: Partition {a} has no owner",
          "java.net.ConnectException: Connection refused: node{d}/10.0.{e}.{d}:50010")
TOOLS = ("reader", "mixer", "tokens", "augment", "router", "kvcache", "prefetch", "sampler")
BAR = "█▉▊▋▌▍▎▏"


class Site:
    def __init__(self, seed: int):
        self.rng = random.Random(seed)
        self.ms = BEGAN_S * 1000
        self.step = 0
        self.deeds = [f"{self.one_of(SUBJECTS)} {{a}} {self.one_of(VERBS)} {self.one_of(TAILS)} "
                      f"{self.one_of(TAILS)}" for _ in range(MESSAGES)]

    def below(self, most: int) -> int:
        return int(self.rng.random() * most)

    def one_of(self, texts) -> str:
        return texts[self.below(len(texts))]

    def stamp(self, form: str) -> str:
        return time.strftime(form, time.gmtime(self.ms // 1000))

    def iso(self) -> str:
        return f"{self.stamp('%Y-%m-%dT%H:%M:%S')}.{self.ms % 1000:03}"

    def host(self) -> str:
        return f"trn-{self.below(HOSTS):04}"

    def deed(self, texts) -> str:
        return self.one_of(texts).format(a=self.below(4000), b=self.below(900), c=self.below(10**7),
                                         d=self.below(64), e=self.below(250))

    # ---- lines

    def log4j(self) -> str:
        level = "WARN " if self.below(30) == 0 else "INFO "
        return (f"{self.stamp('%Y-%m-%d %H:%M:%S')},{self.ms % 1000:03} {level}[exec-{self.below(32)}] "
                f"org.example.{self.one_of(CLASSES)}: {self.deed(self.deeds)}\n")

    def glog(self) -> str:
        return (f"{'IIIIIIIW'[self.below(8)]}{self.stamp('%m%d %H:%M:%S')}."
                f"{self.ms % 1000:03}{self.below(1000):03} {2000 + self.below(RANKS)} "
                f"{self.one_of(TOOLS)}.cc:{100 + self.below(300)}] "
                f"dev{self.below(8)}: {self.deed(self.deeds)}\n")

    def json(self) -> str:
        self.step += self.below(2)
        return (f'{{"ts":"{self.iso()}Z","level":"info","host":"{self.host()}","rank":{self.below(RANKS)},'
                f'"msg":"step done","step":{self.step},"loss":{1 + self.rng.random():.4f},'
                f'"tokens_per_s":{9000 + self.below(900)}.{self.below(10)},'
                f'"grad_norm":{self.rng.random():.6f}}}\n')

    def syslog(self) -> str:
        return (f"{self.stamp('%b %e %H:%M:%S')} {self.host()} kernel: [{self.ms / 1000 % 1e6:.6f}] nvme "
                f"nvme{self.below(4)}: I/O {self.below(900)} QID {self.below(32)} completed after retry\n")

    def syslog_new(self) -> str:
        return (f"<134>1 {self.iso()}Z {self.host()} slurmd {self.below(30000)} - - "
                f"launched task {self.below(64)} of job {400000 + self.below(999)}\n")

    def logfmt(self) -> str:
        return (f'time={self.stamp("%Y-%m-%dT%H:%M:%SZ")} level=info '
                f'caller={self.one_of(TOOLS)}.go:{self.below(400)} msg="shard moved" '
                f'shard={self.below(4096)} dur={self.rng.random():.3f}s '
                f'path=/ckpt/run7/step-{self.step}/part-{self.below(512):05}\n')

    def container(self) -> str:
        return (f"{self.iso()}{self.below(10**6):06}Z stdout F "
                f"[{self.one_of(TOOLS)}] batch {self.step}: {self.deed(self.deeds)}\n")

    def python(self) -> str:
        return (f"INFO:site.{self.one_of(TOOLS)}:rank {self.below(RANKS)} refilled shard {self.below(4096)} "
                f"in {self.rng.random():.2f} s\n")

    def bars(self) -> str:
        """A progress bar that overwrote itself a few times."""
        at, out = self.below(990), ""
        for _ in range(1 + self.below(4)):
            at += 1 + self.below(3)
            full, part = divmod(at * 80 // 1000, 8)
            shown = BAR[0] * full + BAR[7 - part]
            out += (f"\rEpoch {self.step // 1000}: {at // 10:3}%|{shown:<11}| {at}/1000 "
                    f"[{at // 300:02}:{at // 5 % 60:02}<{(1000 - at) // 300:02}:{at % 60:02}, "
                    f"{2 + self.rng.random():.2f}it/s]")
        return out + "\n"

    def stack(self) -> str:
        lines = [self.log4j().replace("INFO ", "ERROR", 1).rstrip("\n"), self.deed(ERRORS)]
        for cause in range(1 + self.below(2)):
            if cause:
                lines.append("Caused by: " + self.deed(ERRORS))
            for _ in range(4 + self.below(12)):
                name = self.one_of(CLASSES)
                lines.append(f"\tat org.example.{name}.run{self.below(9)}({name.rpartition('.')[2]}.java:"
                             f"{self.below(900)})")
            lines.append(f"\t... {1 + self.below(30)} more")
        return "\n".join(lines) + "\n"


def write(path: Path, size: int, seed: int) -> None:
    """Lines up to `size` bytes, in shares that are usual for their kinds."""
    site = Site(seed)
    kinds: List[Callable[[], str]] = (
        [site.log4j] * 26 + [site.glog] * 14 + [site.json] * 18 + [site.syslog] * 6 + [site.syslog_new] * 4 +
        [site.logfmt] * 10 + [site.container] * 10 + [site.python] * 6 + [site.bars] * 5 + [site.stack])
    written = 0
    with open(path, "wb") as out:
        while written < size:
            block = ""
            for _ in range(1000):
                site.ms += site.below(5)
                block += kinds[site.below(len(kinds))]()
            written += out.write(block.encode())
