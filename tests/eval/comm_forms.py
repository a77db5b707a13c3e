"""The communication traces of the section comm, written as other tools write them: files of NCCL's
Inspector and traces of PyTorch's profiler. The same judge compares what is named with the answer to the
original. What a format cannot say is left out, as in a real file: the Inspector has no step, no kind of
group, no operation that did not end and by default none below 8 KiB; a profile has no kernel that did not
end. So hangs are a column of their own. Each job is also read with damaged files: each of them must be a row
of `problems`."""
import gzip
import json
import random
import shutil
import struct
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Sequence, Tuple

import comm
import culprit
from table import Rows, mean

FORMS = ("inspector", "inspector plain", "kineto", "kineto old")
WORLDS = (64, 128, 256)
RECORD = struct.Struct("<QQQQQIIIIHBBI")
HEADER_BYTES = 128
UNKNOWN = 0xFFFFFFFF
JOIN, SEND, RECV = 0, 7, 8
FUNCTIONS = ("", "AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce", "AlltoAll", "Send",
             "Recv", "AllReduce", "Gather", "Scatter")
TORCH_NAMES = ("", "allreduce", "_allgather_base", "_reduce_scatter_base", "broadcast", "reduce",
               "all_to_all", "send", "recv", "barrier", "gather", "scatter")
GROUPS = ("undefined", "default_pg", "DATA_PARALLEL_GROUP", "TENSOR_MODEL_PARALLEL_GROUP",
          "PIPELINE_MODEL_PARALLEL_GROUP", "EXPERT_MODEL_PARALLEL_GROUP", "CONTEXT_PARALLEL_GROUP",
          "EXPERT_DATA_PARALLEL_GROUP")
INSPECTOR_LEAST_BYTES = 8192
DAMAGED_SHARE = 0.25


class Record(NamedTuple):
    start: int
    end: int
    comm: int
    seq: int
    bytes: int
    rank: int
    step: int
    peer: int
    size: int
    op: int
    group: int
    flags: int
    device: int


class Job(NamedTuple):
    records: Dict[Tuple[str, int], List[Record]]  # by host and rank, in the order of their starts
    members: Dict[int, List[int]]  # by communicator


def read_job(folder: Path) -> Job:
    records: Dict[Tuple[str, int], List[Record]] = defaultdict(list)
    members: Dict[int, set] = defaultdict(set)
    for path in sorted(folder.glob("*.comm")):
        data = path.read_bytes()
        host = data[16:80].rstrip(b"\0").decode()
        for fields in RECORD.iter_unpack(data[HEADER_BYTES:]):
            one = Record(*fields)
            members[one.comm].update((one.rank,) if one.peer == UNKNOWN else (one.rank, one.peer))
            if one.op != JOIN:
                records[host, one.rank].append(one)
    for listed in records.values():
        listed.sort(key=lambda one: one.start)
    return Job(records, {comm_id: sorted(ranks) for comm_id, ranks in members.items()})


def numbers_by_function(job: Job) -> Dict[Tuple[int, str, int], int]:
    """NCCL counts the operations of a communicator by function."""
    seen = {(one.comm, FUNCTIONS[one.op], one.seq) for listed in job.records.values() for one in listed
            if one.op not in (SEND, RECV)}
    count: Dict[Tuple[int, str], int] = defaultdict(int)
    out = {}
    for comm_id, function, seq in sorted(seen):
        out[comm_id, function, seq] = count[comm_id, function]
        count[comm_id, function] += 1
    return out


def p2p_numbers(listed: Sequence[Record]) -> Dict[Record, int]:
    """Numbers of the sends and receives of a rank, in the order of their calls. The simulator loses records:
    a step has the order of the one with the most, and what it lacks keeps its number."""
    steps: Dict[int, List[Record]] = defaultdict(list)
    for one in listed:
        if one.op in (SEND, RECV):
            steps[one.step].append(one)
    places: Dict[int, Dict[tuple, Record]] = {}
    longest: Dict[tuple, int] = defaultdict(int)  # operations of a pair in a step
    for found in steps.values():
        seqs: Dict[tuple, List[int]] = defaultdict(list)
        for one in found:
            seqs[one.comm, one.peer, one.op].append(one.seq)
        for pair, numbers in seqs.items():
            longest[pair] = max(longest[pair], max(numbers) - min(numbers) + 1)
    for number, step in enumerate(sorted(steps)):
        places[step] = {}
        for one in steps[step]:
            pair = (one.comm, one.peer, one.op)
            places[step][pair, one.seq - number * longest[pair]] = one
    if not places:
        return {}
    usual = list(max(places.values(), key=len))
    count: Dict[int, int] = defaultdict(int)
    out = {}
    for step in sorted(places):
        here = places[step]
        order = usual if here.keys() <= set(usual) else list(here)
        for place in order:
            count[place[0][0]] += 1
            if place in here:
                out[here[place]] = count[place[0][0]]
    return out


def inspector_lines(job: Job, host: str, rank: int, verbose: bool) -> Iterator[str]:
    functions = numbers_by_function(job) if not hasattr(inspector_lines, "cache") else inspector_lines.cache
    listed = job.records[host, rank]
    numbers = p2p_numbers(listed)
    for one in sorted(listed, key=lambda one: one.end):
        if one.end == 0 or 0 < one.bytes < INSPECTOR_LEAST_BYTES:
            continue
        ranks = job.members[one.comm]
        kind = "p2p" if one.op in (SEND, RECV) else "coll"
        number = numbers[one] if kind == "p2p" else functions[one.comm, FUNCTIONS[one.op], one.seq]
        start_us, end_us = one.start // 1000, one.end // 1000
        perf = {kind: FUNCTIONS[one.op], f"{kind}_sn": number, f"{kind}_msg_size_bytes": one.bytes,
                f"{kind}_exec_time_us": (one.end - one.start) // 1000, f"{kind}_timing_source": "kernel_gpu"}
        if kind == "p2p":
            perf["p2p_peer"] = ranks.index(one.peer)
        if verbose:
            perf["event_trace_ts"] = {
                f"{kind}_start_ts": start_us - 20, f"{kind}_stop_ts": start_us - 15,
                "kernel_events": [{"channel_id": 0, "kernel_start_ts": start_us, "kernel_stop_ts": end_us,
                                   "kernel_record_ts": end_us}]}
        # The thread that writes comes every 500 us.
        written = end_us if verbose else end_us // 500 * 500 + 500
        yield json.dumps({
            "header": {"id": f"{one.comm:#x}", "rank": ranks.index(rank), "n_ranks": one.size, "nnodes": 1},
            "metadata": {"inspector_output_format_version": "v4.0", "git_rev": "",
                         "rec_mechanism": "nccl_profiler_interface", "dump_timestamp_us": written,
                         "hostname": host, "pid": 1000 + rank},
            f"{kind}_perf": perf})


def write_inspector(job: Job, out: Path, verbose: bool) -> None:
    inspector_lines.cache = numbers_by_function(job)
    for host, rank in sorted(job.records):
        text = "".join(line + "\n" for line in inspector_lines(job, host, rank, verbose))
        (out / f"{host}-pid{1000 + rank}.log").write_text(text)
    del inspector_lines.cache


def host_steps(listed: Sequence[Record], base: int) -> Dict[int, Tuple[float, float]]:
    """Times of the host's loop: a step begins with its first operation."""
    first: Dict[int, int] = {}
    for one in listed:
        first.setdefault(one.step, one.start)
    order = sorted(first)
    begins = []
    for step in order:
        begins.append(max((first[step] - base) / 1000, begins[-1] + 1 if begins else 0))
    ends = begins[1:] + [(max(one.start for one in listed) - base) / 1000 + 1]
    return {step: (begin, max(end - begin, 1)) for step, begin, end in zip(order, begins, ends)}


def kineto_trace(job: Job, host: str, rank: int, world: int, seq: bool) -> dict:
    listed = job.records[host, rank]
    base = min(one.start for one in listed) - 1_000_000
    names = {comm_id: str(number) for number, comm_id in enumerate(sorted(job.members))}
    stepped = all(one.step != UNKNOWN for one in listed)
    steps = host_steps(listed, base) if stepped else {}
    events: List[dict] = [{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1,
                           "tid": 1, "ts": round(begin, 3), "dur": round(length - 0.002, 3)}
                          for step, (begin, length) in steps.items()]
    for number, one in enumerate(listed):
        begin, length = steps.get(one.step, ((one.start - base) / 1000, 1))
        ranks = job.members[one.comm]
        shown = str(ranks) if len(ranks) <= 30 else str(ranks[:30])[:-1] + ", ...]"
        args = {"External id": number + 1, "Collective name": TORCH_NAMES[one.op],
                "In msg nelems": one.bytes // 2, "Out msg nelems": one.bytes // 2,
                "Group size": one.size, "dtype": "BFloat16",
                "Process Group Name": names[one.comm], "Process Group Description": GROUPS[one.group],
                "Process Group Ranks": shown}
        if one.op == SEND:
            args["Dst Rank"] = one.peer
        if one.op == RECV:
            args["Src Rank"] = one.peer
        if seq and one.op not in (SEND, RECV):
            args["Seq"] = one.seq + 1
        events.append({"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 1, "tid": 1,
                       "ts": round(begin + length * 0.001, 3), "dur": 5.0, "args": args})
        if one.end == 0:
            continue
        events.append({"ph": "X", "cat": "kernel", "name": f"ncclDevKernel_{FUNCTIONS[one.op]}_RING_LL",
                       "pid": 0, "tid": 7, "ts": round((one.start - base) / 1000, 3),
                       "dur": round((one.end - one.start) / 1000, 3),
                       "args": {**args, "device": one.device, "stream": 7, "correlation": number + 1}})
    random.Random(rank).shuffle(events)
    groups = [{"pg_name": names[comm_id], "pg_desc": "", "backend_config": "cuda:nccl", "pg_size": len(ranks),
               "ranks": ranks} for comm_id, ranks in job.members.items() if rank in ranks]
    return {"schemaVersion": 1, "deviceProperties": [], "displayTimeUnit": "ms",
            "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world, "pg_count": len(groups),
                                "pg_config": groups},
            "baseTimeNanoseconds": base, "traceEvents": events, "traceName": "trace.json"}


def write_kineto(job: Job, out: Path, world: int, seq: bool) -> None:
    for host, rank in sorted(job.records):
        text = json.dumps(kineto_trace(job, host, rank, world, seq)).replace(', {"ph"', ',\n  {\n    "ph"')
        name = f"{host}_{1000 + rank}.1763690000000.pt.trace.json"
        if rank % 2:
            (out / f"{name}.gz").write_bytes(gzip.compress(text.encode(), 1))
        else:
            (out / name).write_text(text)


def convert(one: comm.Case, source: Path, out: Path, form: str) -> None:
    out.mkdir()
    shutil.copyfile(source / "job.toml", out / "job.toml")
    job = read_job(source)
    if form.startswith("inspector"):
        write_inspector(job, out, form == "inspector")
    else:
        write_kineto(job, out, one.world, form == "kineto")


def damage(folder: Path, rng: random.Random) -> List[str]:
    """Cuts some files off and overwrites some bytes in others; the names of the damaged files."""
    files = sorted(path for path in folder.iterdir() if path.name != "job.toml")
    chosen = rng.sample(files, max(1, round(DAMAGED_SHARE * len(files))))
    for number, path in enumerate(chosen):
        data = bytearray(path.read_bytes())
        at = rng.randrange(len(data) // 4, 3 * len(data) // 4)
        if number % 2:
            del data[at:]
        else:
            data[at:at + 100] = bytes(100)
        path.write_bytes(data)
    return [path.name for path in chosen]


def run_case(one: comm.Case, folder: Path, forms: Sequence[str], keep: bool) -> Dict[str, object]:
    out = folder / f"form-{one.seed}"
    result: Dict[str, object] = asdict(one)
    try:
        culprit.call(one.arguments(out))
        truth = json.loads((out / "truth.json").read_text())
        result["original"] = comm.judge(culprit.diagnose(["job"], cwd=out), truth, True)
        for form in forms:
            # The name of the folder must not help.
            place = out / f"form{FORMS.index(form)}"
            convert(one, out / "job", place, form)
            report = culprit.diagnose([place.name], cwd=out)
            result[form] = {**comm.judge(report, truth, True), "problems": len(report["problems"])}
            names = damage(place, random.Random(one.seed))
            report = culprit.diagnose([place.name], cwd=out)
            said = {Path(problem["file"]).name for problem in report["problems"] if problem["file"]}
            result[form].update(damaged=len(names), said=sum(name in said for name in names),
                                damaged_top1=comm.judge(report, truth, True).get("top1"))
            if not keep:
                shutil.rmtree(place)
        return result
    except culprit.Crash as crash:
        return {**result, "crash": str(crash)}
    finally:
        if not keep:
            shutil.rmtree(out, ignore_errors=True)


def row_of(form: str, results: Sequence[dict]) -> Dict[str, object]:
    def counts(form: str, key: str, hangs: bool) -> str:
        return comm.counts([one[form] for one in results if truth_hangs(one) == hangs], key)

    ended = [one for one in results if not truth_hangs(one)]
    row = {"row": form, "cases": len(results), "right": counts(form, "top1", False),
           "top1": comm.share([one[form] for one in ended], "top1"),
           "original": comm.share([one["original"] for one in ended], "top1"),
           "false": counts(form, "named", False), "original false": counts("original", "named", False),
           "hangs": counts(form, "top1", True), "damaged said": "-", "damaged top1": None}
    if form != "original":
        row["damaged said"] = f"{sum(one[form]['said'] for one in results)}" \
                              f"/{sum(one[form]['damaged'] for one in results)}"
        row["damaged top1"] = mean([float(one[form]["damaged_top1"]) for one in ended
                                    if one[form]["damaged_top1"] is not None])
    return row


def truth_hangs(one: dict) -> bool:
    return "hang" in one["fault"]


def run(rows: Rows, seed: int, folder: Path, options) -> None:
    forms = options.comm_form or FORMS
    cases = comm.plan(seed, options.comm_form_cases, options.comm_worlds or WORLDS)
    cases.sort(key=lambda one: -one.world)
    results = []
    with ProcessPoolExecutor(options.processes) as pool:
        for done in as_completed([pool.submit(run_case, one, folder, forms, options.keep) for one in cases]):
            one = done.result()
            results.append(one)
            rows.write("comm form case", {"row": f"{one['fault']} {one['seed']}", **one})
            if "crash" in one:
                rows.crash(one["crash"])
    results = [one for one in results if "crash" not in one]
    if not results:
        return
    rows.table("comm forms", "Communication traces as other tools write them",
               [row_of(form, results) for form in ("original", *forms)])
    for form in forms:
        row = row_of(form, results)
        if row["top1"] is not None:
            rows.goal(f"Top-1 as {form}, and of the original", row["top1"], (row["original"] or 0) - 0.01)
        damaged = sum(one[form]["damaged"] for one in results)
        said = sum(one[form]["said"] for one in results) / max(1, damaged)
        rows.goal(f"damaged files that are reported, {form}", said, 1)
