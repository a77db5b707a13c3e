"""Events for other programs: CloudEvents in a stream and in batches, none lost or doubled over reconnects."""
import datetime
import http.client
import json
import re
import time
from typing import Dict, List

from case import Context, case
from daemon import HOST, JOB, Daemon, UnixConnection, need, wait_until

STEP = "2026-11-21 02:{:02d}:{:02d} INFO step={} loss=2.1\n"
FAULT = ("Traceback (most recent call last):\n  File \"/app/train.py\", line 210, in <module>\n"
         "    loss.backward()\nRuntimeError: CUDA error: uncorrectable ECC error encountered\n")
TYPE = re.compile(r"io\.culprit\.[a-z_]+\Z")


def must_conform(event: dict) -> None:
    """CloudEvents 1.0, JSON format: required attributes, their types, no empty ones, no unknown ones."""
    for name in ("specversion", "id", "source", "type"):
        need(isinstance(event.get(name), str) and event[name], f"{name} is missing: {event}")
    known = {"specversion", "id", "source", "type", "subject", "time", "datacontenttype", "data"}
    need(set(event) <= known, f"unknown attributes: {set(event) - known}")
    need(event["specversion"] == "1.0" and TYPE.match(event["type"]), f"its type: {event}")
    need(event["source"] == f"//{HOST}/v1/events", event["source"])
    need(event.get("subject", "x"), "an empty subject")
    need(event["datacontenttype"] == "application/json", f"its form: {event}")
    need(isinstance(event["data"], dict), f"its data: {event}")
    moment = re.match(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d{9}Z\Z", event["time"])
    need(moment, f"no RFC 3339: {event['time']}")
    datetime.datetime.fromisoformat(event["time"][:19])


def batch(daemon: Daemon, after: str = "") -> List[dict]:
    answer = daemon.get("/v1/events?format=cloudevents-batch" + (f"&after={after}" if after else ""))
    kind = answer.headers.get("content-type", "")
    need(answer.status == 200 and kind.startswith("application/cloudevents-batch+json"),
         f"{answer.status} {kind}")
    return answer.json()


def stream(daemon: Daemon, target: str, last_id: str, count: int) -> List[Dict[str, str]]:
    """The next `count` server-sent events behind an id."""
    connection = UnixConnection(str(daemon.socket), 30)
    try:
        connection.request("GET", target, headers={"Last-Event-ID": last_id})
        answer = connection.getresponse()
        need(answer.status == 200, f"GET {target}: {answer.status}")
        out: List[Dict[str, str]] = []
        fields: Dict[str, str] = {}
        while len(out) < count:
            line = answer.readline().decode().rstrip("\n")
            if line and not line.startswith(":"):
                name, _, value = line.partition(": ")
                fields[name] = value
            elif not line:
                if "data" in fields:
                    out.append(fields)
                fields = {}
        return out
    finally:
        connection.close()


@case
def events_are_cloud_events(context: Context) -> str:
    """A job's events conform; a stream that reconnects has the ids of the batch; another run of the daemon
    has others; the form without `format` is as before."""
    daemon = context.daemon().start()
    log = daemon.logs / "train.log"
    log.write_text("".join(STEP.format(i // 60, i % 60, i) for i in range(120)) + FAULT)

    def kinds() -> set:
        return {event["type"].rpartition(".")[2] for event in batch(daemon)}
    wait_until(lambda: {"job_started", "finding", "diagnosis"} <= kinds(), 60,
               f"all kinds are there: {kinds()}")
    events, found = batch(daemon), len(kinds())
    for event in events:
        must_conform(event)
        need(event["subject"] == JOB, f"its subject: {event}")
    ids = [event["id"] for event in events]
    need(len(set(ids)) == len(ids), f"an id twice: {ids}")
    behind = [event["id"] for event in batch(daemon, ids[0])]
    need(behind[:len(ids) - 1] == ids[1:], f"behind the first of {ids}: {behind}")
    seen = stream(daemon, "/v1/events?format=cloudevents", ids[0], 1)
    again = stream(daemon, "/v1/events?format=cloudevents", seen[0]["id"], len(ids) - 2)
    for got, event in zip(seen + again, events[1:]):
        need(json.loads(got["data"]) == event and got["id"] == event["id"], f"{got} is not {event}")
    plain = stream(daemon, "/v1/events", ids[0], 1)[0]
    need(json.loads(plain["data"]) == events[1]["data"], f"the other form: {plain}")
    need("io.culprit." + plain["event"] == events[1]["type"], f"its kind: {plain}")
    daemon.kill()
    daemon.start()

    def later() -> List[dict]:
        with open(log, "a") as more:  # a finding that repeats within 10 s is counted alone
            more.write(FAULT.replace("210", "211"))
        time.sleep(1)
        try:
            return batch(daemon, ids[-1])
        except (OSError, http.client.HTTPException):
            return []
    wait_until(lambda: any(event["type"] == "io.culprit.finding" for event in later()), 60,
               "events after a kill")
    need(not {event["id"] for event in later()} & set(ids), "an id of before the kill")
    return f"{len(events)} events of {found} kinds"
