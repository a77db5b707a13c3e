"""Flight Recorder dumps that appear while a job runs: the stuck rank is reported, whatever is killed."""
import contextlib
import http.client
import json
import pickle
import subprocess
import time
from pathlib import Path
from typing import List, Set

from case import Context, case
from daemon import JOB, Daemon, need, wait_until

WORLD = 8
STUCK_S = 600  # since the last operation, as long as NCCL's own watchdog waits


def dump_of(rank: int, stuck: Set[int], first: int, protocol: str) -> bytes:
    """As PyTorch writes it: all have completed 40 operations, and all but the stuck wait in the next one."""
    now = time.time_ns() - STUCK_S * 1_000_000_000
    last = first + 40 + (rank not in stuck)
    entries = []
    for seq in range(first + 1, last + 1):
        done = seq <= first + 40
        entries.append({
            "record_id": seq, "pg_id": 0, "process_group": ("0", "default_pg"), "collective_seq_id": seq,
            "p2p_seq_id": 0, "op_id": seq, "profiling_name": "nccl:all_reduce",
            "time_created_ns": now - (last - seq) * 1_000_000, "input_sizes": ((1024, 512),),
            "input_dtypes": ["Float"], "output_sizes": ((1024, 512),), "output_dtypes": ["Float"],
            "state": "completed" if done else "scheduled", "retired": done, "is_p2p": False,
            "timeout_ms": 600000, "frames": [{"name": "step", "filename": "/train/train.py", "line": 12}]})
    counters = {"last_enqueued_collective": last, "last_started_collective": -1,
                "last_completed_collective": first + 40}
    value = {"version": "2.9", "entries": entries, "pg_status": {"0": counters},
             "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(WORLD)))}}}
    if protocol == "json":
        return json.dumps(value).encode()
    value["pg_status"] = {0: counters}
    return pickle.dumps(value, protocol=2)


def report(daemon: Daemon) -> dict:
    with contextlib.suppress(OSError, http.client.HTTPException):
        answer = daemon.get(f"/v1/jobs/{JOB}/report")
        if answer.status == 200:
            return answer.json()
    return {}


def stuck_of(daemon: Daemon) -> List[int]:
    hang = report(daemon).get("hang") or {}
    return sorted(place["rank"] for place in hang.get("suspects", []))


def leave(folder: Path, stuck: Set[int], first: int, protocol: str) -> None:
    for rank in range(WORLD):
        (folder / f"nccl_trace_rank_{rank}").write_bytes(dump_of(rank, stuck, first, protocol))


@case
def dumps_are_picked_up_where_they_appear(context: Context) -> str:
    """Each rank's dump appears; the stuck rank is reported, also after a kill -9 in between; rewritten dumps
    (another hang) count again; a file that is no dump, or cut, is a problem."""
    reported = []
    for protocol in ("pickle", "json"):
        daemon = context.daemon(protocol)
        dumps = daemon.folder / "dumps"
        dumps.mkdir()
        # Where no job is named they are of the only one that runs.
        named = f'job = "{JOB}"\n' if protocol == "json" else ""
        daemon.configure(more=f'[[dump]]\npath = "{dumps}/nccl_trace_rank_*"\n{named}')
        daemon.start()
        log = daemon.logs / "train.log"
        began = time.time() - STUCK_S - 60
        log.write_text("".join(time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(began + s)) +
                               f" INFO step={s} loss=2.1\n" for s in range(30)))
        wait_until(lambda: report(daemon), 20, "the job is known")
        # Half of the dumps, one of them in part; a kill; the rest.
        texts = [dump_of(rank, {3, 6}, 0, protocol) for rank in range(WORLD)]
        for rank in range(4):
            cut = len(texts[rank]) // 2 if rank == 3 else len(texts[rank])
            (dumps / f"nccl_trace_rank_{rank}").write_bytes(texts[rank][:cut])
        daemon.stores(str(dumps / "nccl_trace_rank_3"), len(texts[3]) // 2)
        daemon.kill()
        daemon.start()
        with open(dumps / "nccl_trace_rank_3", "ab") as rest:
            rest.write(texts[3][len(texts[3]) // 2:])
        for rank in range(4, WORLD):
            (dumps / f"nccl_trace_rank_{rank}").write_bytes(texts[rank])
        wait_until(lambda: stuck_of(daemon) == [3, 6], 30, f"3 and 6 are stuck: {stuck_of(daemon)}")
        evidence = daemon.evidence(str(dumps / "nccl_trace_rank_3"))
        need(evidence == texts[3], f"evidence of {len(evidence)} bytes is not the dump of {len(texts[3])}")
        daemon.kill()
        daemon.start()
        wait_until(lambda: stuck_of(daemon) == [3, 6], 30, f"after a kill too: {stuck_of(daemon)}")
        (dumps / "nccl_trace_rank_99").write_bytes(b"\x80\x02cos\nsystem\n(S'true'\ntR.")
        leave(dumps, {5}, 100, protocol)
        wait_until(lambda: stuck_of(daemon) == [5], 30, f"then 5 is stuck: {stuck_of(daemon)}")
        found = report(daemon)
        need(found["verdict"] and found["verdict"]["symptom"] == "hang", f"the verdict is {found['verdict']}")
        reported.append(f"{protocol}: {found['verdict']['title']}")
    return "; ".join(reported)


@case
def a_dump_is_given_by_the_host_that_read_it(context: Context) -> str:
    """Evidence names the host of the rank; the file was read by another one, which is asked then."""
    daemon = context.daemon()
    dumps = daemon.folder / "dumps"
    dumps.mkdir()
    daemon.configure(more=f'[[dump]]\npath = "{dumps}/nccl_trace_rank_*"\njob = "{JOB}"\n')
    daemon.start()
    dump = dump_of(3, {3}, 0, "json")
    path = dumps / "nccl_trace_rank_3"
    path.write_bytes(dump)
    daemon.stores(str(path), len(dump))

    def cat(*options: str) -> subprocess.CompletedProcess:
        return subprocess.run([str(daemon.bin_dir / "culprit"), "evidence", "cat", "--server",
                               f"unix:{daemon.socket}", "--job", JOB, *options],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=60)
    named = cat("--host", "node-9", "--path", str(path))
    need(named.returncode == 0 and named.stdout == dump, f"{named.returncode}: {named.stderr!r}")
    need(b"host node-9 has no such source; it was read by" in named.stderr, f"no note: {named.stderr!r}")
    unnamed = cat("--path", str(path))
    need(unnamed.stdout == dump and not unnamed.stderr, f"without a host: {unnamed.stderr!r}")
    missing = cat("--host", "node-9", "--path", "/none")
    need(missing.returncode == 2 and b"node-9" in missing.stderr, f"{missing.returncode}: {missing.stderr!r}")
    return f"{len(dump)} bytes; {named.stderr.decode().strip()}"
