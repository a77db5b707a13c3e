"""A stub of the Kubernetes API server, with the rules that a writer can break: a merge patch replaces lists,
a stale version is a conflict, a list of taints has no key with an effect twice, conditions are of the status.
tests/e2e/cases_act_kubernetes.py holds the stub and the real server to the same cases."""
import copy
import json
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Dict, List, Optional, Tuple
from urllib.parse import parse_qs, urlsplit

from case import Context
from kubernetes import MERGE, STRATEGIC, Cluster, granted

PAGE = 2  # pods on a page, whatever limit is asked for


class Refusal(Exception):
    def __init__(self, status: int, message: str, **headers: str):
        super().__init__(message)
        self.status, self.message, self.headers = status, message, headers


def merged(old: Any, patch: Any, merge_lists: bool) -> Any:
    """RFC 7386; with `merge_lists` a list of conditions is merged by type, as a strategic patch does."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    out = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        elif merge_lists and key == "conditions":
            by_type = {one["type"]: one for one in out.get(key) or []}
            for one in value:
                by_type[one["type"]] = merged(by_type.get(one["type"], {}), one, True)
            out[key] = list(by_type.values())
        else:
            out[key] = merged(out.get(key), value, merge_lists)
    return out


class Stub(Cluster):
    def __init__(self, context: Context):
        self.folder = context.folder / "stub"
        self.folder.mkdir()
        self.lock = threading.Lock()
        self.objects: Dict[Tuple[str, str, str], Dict] = {}  # resource, namespace, name
        self.version = 100
        # Called before each request with method and path; raises a Refusal, or does something in between.
        self.before: Callable[[str, str], None] = lambda method, path: None
        self.after: Callable[[str, str], None] = lambda method, path: None
        self.requests: List[str] = []
        self.used: List[Tuple[str, str, str, str]] = []  # token, verb, resource, request
        self.granted = granted()
        self.groups: Dict[str, Dict] = {}  # discovery of a group's resources, by path
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def handle_one(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(size) if size else b""
                token = (self.headers.get("Authorization") or "").partition(" ")[2]
                headers: Dict[str, str] = {}
                try:
                    status, answer = stub.handle(self.command, self.path, body,
                                                 (self.headers.get("Content-Type") or "", token))
                except Refusal as refusal:
                    status = refusal.status
                    headers = {name.replace("_", "-"): value for name, value in refusal.headers.items()}
                    answer = {"kind": "Status", "status": "Failure", "message": refusal.message,
                              "code": status}
                except ConnectionAbortedError:
                    self.close_connection = True
                    return
                data = json.dumps(answer).encode()
                self.send_response(status)
                for name, value in {**headers, "Content-Type": "application/json",
                                    "Content-Length": str(len(data))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_one  # noqa: N815

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        context.undo.append(self.server.shutdown)

    def handle(self, method: str, target: str, body: bytes, how: Tuple[str, str]) -> Tuple[int, Dict]:
        self.requests.append(f"{method} {target}")
        self.before(method, target)
        with self.lock:
            answer = self.answer(method, target, json.loads(body) if body else None, how)
        self.after(method, target)
        return answer

    def answer(self, method: str, target: str, body: Optional[Dict],
               how: Tuple[str, str]) -> Tuple[int, Dict]:
        url = urlsplit(target)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        if url.path in self.groups:
            return 200, self.groups[url.path]
        words = url.path.strip("/").split("/")
        words = words[2:] if words[0] == "api" else words[3:]  # behind the group's version
        if not words:
            raise Refusal(404, "the server could not find the requested resource")
        space = words[1] if words[0] == "namespaces" and len(words) > 2 else ""
        resource, *rest = words[2:] if space else words
        name, part = (rest + ["", ""])[:2]
        kind = resource + ("/" + part if part else "")
        verb = {"GET": "get" if name else "list", "POST": "create", "PUT": "update", "PATCH": "patch",
                "DELETE": "delete"}[method]
        self.used.append((how[1], verb, kind, f"{method} {target}"))
        if how[1] != "admin" and (verb, kind) not in self.granted:
            raise Refusal(403, f'{kind} is forbidden: User cannot {verb} resource "{kind}"')
        if verb == "list":
            return 200, self.list(resource, space, query)
        dry = query.get("dryRun") == "All"
        if verb == "create":
            return 201, self.create(resource, space, body or {}, dry)
        known = self.objects.get((resource, space, name))
        if known is None:
            raise Refusal(404, f'{resource} "{name}" not found')
        if verb == "get":
            return 200, known
        if verb == "delete":  # options in a body replace those of the query
            dry = (body or {}).get("dryRun") == ["All"] if body else dry
            return 200, self.delete((resource, space, name), body or {}, dry)
        if verb == "patch":
            if how[0] not in (MERGE, STRATEGIC):
                raise Refusal(415, f"the body of the request was in an unknown format: {how[0]}")
            new = merged(known, body, how[0] == STRATEGIC)
        else:
            new = body or {}
        return 200, self.store((resource, space, name), known, new, (part, dry))

    def requests_of(self, token: str) -> List[str]:
        return [one[3] for one in self.used if one[0] == token]

    @staticmethod
    def selects(term: str, labels: Dict[str, str]) -> bool:
        """`a=b`, `a` or `!a`."""
        key, equals, value = term.partition("=")
        if term.startswith("!"):
            return term[1:] not in labels
        return labels.get(key) == value if equals else key in labels

    def list(self, resource: str, space: str, query: Dict[str, str]) -> Dict:
        wanted = [term for term in query.get("labelSelector", "").split(",") if term]
        found = [one for key, one in sorted(self.objects.items()) if key[0] == resource
                 and space in ("", key[1])
                 and all(self.selects(term, one["metadata"].get("labels", {})) for term in wanted)]
        first = int(query.get("continue", "0"))
        more = {"continue": str(first + PAGE)} if first + PAGE < len(found) and "limit" in query else {}
        return {"kind": "List", "items": found[first:first + PAGE] if "limit" in query else found,
                "metadata": {"resourceVersion": str(self.version), **more}}

    def create(self, resource: str, space: str, body: Dict, dry: bool) -> Dict:
        name = body["metadata"]["name"]
        if (resource, space, name) in self.objects:
            raise Refusal(409, f'{resource} "{name}" already exists')
        body["metadata"].update({"uid": str(uuid.uuid4()), "namespace": space})
        body.setdefault("spec" if resource == "nodes" else "kind", {})
        return self.store((resource, space, name), {}, body, ("new", dry))

    def delete(self, key: Tuple[str, str, str], body: Dict, dry: bool) -> Dict:
        known = self.objects[key]
        wanted = (body.get("preconditions") or {}).get("uid")
        if wanted and wanted != known["metadata"]["uid"]:
            raise Refusal(409, f"Precondition failed: UID in precondition: {wanted}, UID in object meta: "
                               f"{known['metadata']['uid']}")
        if not dry:
            del self.objects[key]
        return known

    def store(self, key: Tuple[str, str, str], old: Dict, new: Dict, how: Tuple[str, bool]) -> Dict:
        part, dry = how
        version = new["metadata"].get("resourceVersion")
        if part != "new" and version and version != old["metadata"]["resourceVersion"]:
            raise Refusal(409, f'Operation cannot be fulfilled on {key[0]} "{key[2]}": the object has been '
                               "modified; please apply your changes to the latest version and try again")
        if part == "status":
            new = {**old, "status": new.get("status", {})}
        elif part == "" and key[0] in ("nodes", "pods"):
            new = {**new, "status": old.get("status", {})}  # by the main path it is ignored
        taints = [(one.get("key"), one.get("effect")) for one in new.get("spec", {}).get("taints") or []]
        if len(set(taints)) < len(taints):
            raise Refusal(422, f'Node "{key[2]}" is invalid: metadata.taints: Duplicate value')
        if any(effect not in ("NoSchedule", "PreferNoSchedule", "NoExecute") for _, effect in taints):
            raise Refusal(422, f'Node "{key[2]}" is invalid: taint effect')
        new = copy.deepcopy(new)
        if not dry:
            self.version += 1
            new["metadata"]["resourceVersion"] = str(self.version)
            self.objects[key] = new
        return new
