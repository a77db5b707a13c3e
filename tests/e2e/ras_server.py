#!/usr/bin/env python3
"""A process of a job with NCCL's RAS service, as far as a client sees it.

  ras_server.py --port P --scenario FILE [--log FILE]

Listens as NCCL does, with SO_REUSEPORT: several processes share a port. The scenario is read for each answer:
a JSON object with
  form      json, text (2.28.3, refuses SET FORMAT) or old (2.24)
  ranks     of the world; rank 0 is this process, on 127.0.0.1, the others are on 10.9.0.x
  moves     true: all ranks launch operations with time, and the log gets steps
  behind    by rank: how many AllReduce it launched less; ahead is negative
  missing   by rank: dead, unresponsive or stranger
  phases    by rank: INIT, FINALIZE, ABORT
  hash      of the communicator
  pids      true: rank 0 has this pid (default), a number: that one
"""
import argparse
import json
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Dict, List, Tuple

RATE = 50  # operations a second of a job that moves
START = 1000
HASH = 0x27a079b828ff1a75


class Job:
    def __init__(self, scenario: Path):
        self.path = scenario
        self.began = time.monotonic()
        self.stood = 0.0
        self.stands_since = None

    def read(self) -> Dict:
        play = json.loads(self.path.read_text(encoding="utf-8"))
        now = time.monotonic()
        if play.get("moves") and self.stands_since is not None:
            self.stood += now - self.stands_since
            self.stands_since = None
        if not play.get("moves") and self.stands_since is None:
            self.stands_since = now
        return play

    def launched(self) -> int:
        until = self.stands_since or time.monotonic()
        return START + int((until - self.began - self.stood) * RATE)


def place(play: Dict, rank: int) -> Tuple[str, int]:
    if rank == 0:
        pid = play.get("pids", True)
        return "127.0.0.1", os.getpid() if pid is True else pid
    return f"10.9.0.{1 + rank // 4}", 4000 + rank


def missing_of(play: Dict) -> Dict[int, str]:
    return {int(rank): how for rank, how in play.get("missing", {}).items()}


def count_of(play: Dict, rank: int, launched: int) -> int:
    return launched - play.get("behind", {}).get(str(rank), 0)


def phase_of(play: Dict, rank: int) -> str:
    return play.get("phases", {}).get(str(rank), "RUNNING")


def json_rank(play: Dict, rank: int, launched: int) -> Dict:
    host, pid = place(play, rank)
    phase = phase_of(play, rank)
    return {"rank": rank, "host": host, "pid": pid, "cuda_dev": rank % 4, "nvml_dev": rank % 4,
            "status": {"init_state": 7 if phase == "INIT" else 0, "async_error": 0,
                       "finalize_called": phase == "FINALIZE", "destroy_flag": False,
                       "abort_flag": phase == "ABORT"},
            "collective_counts": {"Broadcast": 3, "Reduce": 0, "AllGather": 0, "ReduceScatter": 0,
                                  "AllReduce": count_of(play, rank, launched)}}


def json_missing(play: Dict, rank: int, how: str) -> Dict:
    host, pid = place(play, rank)
    return {"rank": rank, "host": host, "pid": pid, "cuda_dev": rank % 4, "nvml_dev": rank % 4,
            "status": {"unresponsive": how != "stranger", "considered_dead": how == "dead"}}


def json_answer(play: Dict, launched: int) -> str:
    absent = missing_of(play)
    there = [rank for rank in range(play["ranks"]) if rank not in absent]
    comm = {"hash": hex(play.get("hash", HASH)), "secondary_hash": "0x1:0x2", "size": play["ranks"],
            "ranks_count": len(there), "missing_ranks_count": len(absent),
            "ranks": [json_rank(play, rank, launched) for rank in there],
            "missing_ranks": [json_missing(play, rank, how) for rank, how in absent.items()]}
    return json.dumps({"nccl_version": "2.28.9", "cuda_runtime_version": 13000, "cuda_driver_version": 13000,
                       "timestamp": time.strftime("%F %T"), "communicators_count": 1, "communicators": [comm],
                       "ras": {"collection_time_sec": 0.003, "timeouts_count": 0}}, indent=2) + "\n"


def text_ranks(play: Dict, ranks: List[int]) -> str:
    out = ""
    for rank in ranks:
        host, pid = place(play, rank)
        out += f"  Rank {rank} -- GPU {rank % 4} managed by process {pid} on node {host}\n"
    return out


def text_answer(play: Dict, launched: int) -> str:
    ranks, hash_ = play["ranks"], play.get("hash", HASH)
    groups: Dict[int, List[int]] = {}
    for rank in range(ranks):
        groups.setdefault(count_of(play, rank, launched), []).append(rank)
    errors = "MISMATCH" if len(groups) > 1 else "OK"
    version = "2.24.3" if play["form"] == "old" else "2.28.3"
    out = f"""NCCL version {version}+cuda12.8 compiled with CUDA 12.8
CUDA runtime version 12080, driver version 12080

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
{max(1, ranks // 4):7d}  {4:9d}  {1:11d}  {ranks:9d}  {ranks:7d}

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1  {max(1, ranks // 4):8d}         4  {ranks:8d}  {ranks:8d}   RUNNING  {errors:>6s}

Errors
======

Warnings
========

"""
    if len(groups) > 1:
        function = "collective" if play["form"] == "old" else "AllReduce"
        out += f"#0-0 ({hash_:016x}) MISMATCH\n"
        out += f"  Communicator ranks have different {function} operation counts\n"
        for count, members in sorted(groups.items(), key=lambda item: -len(item[1])):
            if len(members) > 1:
                out += f"  {len(members)} ranks have launched up to operation {count}\n"
                out += text_ranks(play, members) if len(members) < ranks / 2 else ""
            else:
                host, pid = place(play, members[0])
                out += (f"  Rank {members[0]} has launched up to operation {count} -- GPU {members[0] % 4} "
                        f"managed by process {pid} on node {host}\n")
        out += "\n"
    return out


def serve(job: Job, peer: socket.socket) -> None:
    with peer, peer.makefile("rwb") as stream:
        for line in stream:
            words = line.decode(errors="replace").strip().upper().split()
            play = job.read()
            if words[:2] == ["SET", "FORMAT"]:
                known = play["form"] == "json"
                stream.write(b"OK\n" if known else b"ERROR: Unknown command SET FORMAT\n")
            elif words[:1] == ["TIMEOUT"]:
                stream.write(b"OK\n")
            elif words[-1:] == ["STATUS"]:
                answer = json_answer if play["form"] == "json" else text_answer
                stream.write(answer(play, job.launched()).encode())
                return
            else:
                stream.write(b"ERROR: Unknown command\n")
            stream.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--scenario", type=Path, required=True)
    parser.add_argument("--log", type=Path)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    job = Job(options.scenario)
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(("127.0.0.1", options.port))
        listener.listen(16)

        def answer() -> None:
            while True:
                peer, _ = listener.accept()
                threading.Thread(target=serve, args=(job, peer), daemon=True).start()

        threading.Thread(target=answer, daemon=True).start()
        log = open(options.log, "a", encoding="utf-8") if options.log else None
        print("ready", flush=True)
        step = 0
        while True:
            time.sleep(0.2)
            if log and job.read().get("moves"):
                step += 1
                log.write(f"iteration {step:8d}/ 500000 | loss: 2.{step % 10} | lr: 1.0E-04\n")
                log.flush()


if __name__ == "__main__":
    sys.exit(main())
