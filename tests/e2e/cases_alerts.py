"""Alerts that leave the daemon: to webhooks, Alertmanager, mail and OTLP, over kills and outages."""
from case import Context, case
from daemon import need, wait_until
from receivers import Receiver

XID = "{host}: kernel: NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus.\n"


def tables(context: Context, more: str) -> str:
    """Each job has a log of its own."""
    log = f'[[log]]\npath = "{context.folder}/jobs/*.log"\n'
    return log + "job_pattern = '/jobs/(?P<job>[^/]+)[.]log'\n" + more


def fails(context: Context, job: str, host: str = "node-3") -> None:
    folder = context.folder / "jobs"
    folder.mkdir(exist_ok=True)
    (folder / f"{job}.log").write_text(XID.format(host=host))


@case
def alert_webhook(context: Context) -> str:
    """A verdict is posted within seconds, with its key, its line and the command."""
    receiver, daemon = Receiver(), context.daemon()
    context.undo.append(receiver.down)
    daemon.configure(more=tables(context, f'''[[alert]]
name = "hook"
url = "{receiver.url}/x"
'''))
    daemon.start()
    fails(context, "llama")
    body = receiver.gets(1, 30, "the verdict")[0]
    need(body["state"] == "firing" and body["job"] == "llama" and body["hosts"] == ["node-3"], str(body))
    return f"{body['summary']}; {body['command']}"
