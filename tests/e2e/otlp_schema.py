"""What OTLP over HTTP with JSON promises, as opentelemetry-proto and its JSON mapping publish it: names in
camelCase, 64-bit integers as decimal strings, enums as numbers, ids in hex. Unknown members are offences."""
import re
from typing import Callable, Dict, List, Union

Check = Union[str, "Message", List[object]]
Message = Dict[str, object]
UINT64 = re.compile(r"^\d{1,20}$")
INT64 = re.compile(r"^-?\d{1,19}$")

ANY: Message = {"stringValue": "string", "boolValue": "bool", "intValue": "int64", "doubleValue": "number",
                "bytesValue": "string"}
KEY_VALUE: Message = {"key": "string!", "value": ANY}
SCOPE: Message = {"name": "string", "version": "string", "attributes": [KEY_VALUE],
                  "droppedAttributesCount": "uint32"}
RESOURCE: Message = {"attributes": [KEY_VALUE], "droppedAttributesCount": "uint32"}
LOG: Message = {"timeUnixNano": "uint64", "observedTimeUnixNano": "uint64!", "severityNumber": "severity",
                "severityText": "string", "body": ANY, "attributes": [KEY_VALUE],
                "droppedAttributesCount": "uint32", "flags": "uint32", "traceId": "hex32", "spanId": "hex16",
                "eventName": "string"}
LOGS: Message = {"resourceLogs": [{"resource": RESOURCE, "schemaUrl": "string", "scopeLogs": [
    {"scope": SCOPE, "schemaUrl": "string", "logRecords": [LOG]}]}]}
POINT: Message = {"attributes": [KEY_VALUE], "startTimeUnixNano": "uint64", "timeUnixNano": "uint64!",
                  "asDouble": "number", "asInt": "int64", "flags": "uint32"}
BUCKETS: Message = {"attributes": [KEY_VALUE], "startTimeUnixNano": "uint64", "timeUnixNano": "uint64!",
                    "count": "uint64!", "sum": "number", "bucketCounts": ["uint64"],
                    "explicitBounds": ["number"], "min": "number", "max": "number"}
METRIC: Message = {"name": "string!", "description": "string", "unit": "string",
                   "gauge": {"dataPoints": [POINT]},
                   "sum": {"dataPoints": [POINT], "aggregationTemporality": "temporality!",
                           "isMonotonic": "bool"},
                   "histogram": {"dataPoints": [BUCKETS], "aggregationTemporality": "temporality!"}}
METRICS: Message = {"resourceMetrics": [{"resource": RESOURCE, "schemaUrl": "string", "scopeMetrics": [
    {"scope": SCOPE, "schemaUrl": "string", "metrics": [METRIC]}]}]}

TYPES: Dict[str, Callable[[object], bool]] = {
    "string": lambda v: isinstance(v, str),
    "bool": lambda v: isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "uint64": lambda v: isinstance(v, str) and UINT64.match(v) is not None and int(v) < 2 ** 64,
    "int64": lambda v: isinstance(v, str) and INT64.match(v) is not None and abs(int(v)) < 2 ** 63,
    "uint32": lambda v: isinstance(v, int) and 0 <= v < 2 ** 32,
    "severity": lambda v: isinstance(v, int) and 1 <= v <= 24,
    "temporality": lambda v: v in (1, 2),
    "hex32": lambda v: isinstance(v, str) and re.fullmatch(r"[0-9a-f]{32}", v) is not None,
    "hex16": lambda v: isinstance(v, str) and re.fullmatch(r"[0-9a-f]{16}", v) is not None,
}


def offences(value: object, check: object, where: str = "") -> List[str]:
    if isinstance(check, str):
        kind = check.rstrip("!")
        return [] if TYPES[kind](value) else [f"{where}: {value!r:.60} is no {kind}"]
    if isinstance(check, list):
        if not isinstance(value, list):
            return [f"{where}: no array"]
        return [o for i, one in enumerate(value) for o in offences(one, check[0], f"{where}[{i}]")]
    assert isinstance(check, dict)
    if not isinstance(value, dict):
        return [f"{where}: no object"]
    out = [f"{where}.{name}: unknown member" for name in value if name not in check]
    out += [f"{where}.{name}: missing" for name, of in check.items()
            if isinstance(of, str) and of.endswith("!") and name not in value]
    if check is ANY and len(value) != 1:
        out.append(f"{where}: {len(value)} values in one")
    for name, one in value.items():
        if name in check:
            out += offences(one, check[name], f"{where}.{name}")
    return out
