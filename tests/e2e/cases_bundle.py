"""`culprit bundle`: nothing private of a job's logs is in the archive."""
import os
import re
import subprocess
import tarfile
from typing import Dict

from case import Context, case
from daemon import JOB, need, wait_until

# What a person or a site must not find in an archive, in a line as programs write it.
PRIVATE = {
    "host below .internal": ("connecting to store-7.prod.internal:29500", r"store-7|prod\.internal"),
    "user of Slurm": ("JobId=4711 UserId=alicia(1001) GroupId=alicia(1001)", r"alicia"),
    "who submitted": ("Submitted by Bartholomew at 09:12", r"Bartholomew"),
    "folder of Windows": (r"loading C:\Users\Konstantin\data\train.bin", r"Konstantin"),
    "password in a sentence": ("note: the password is hunter2swordfish", r"hunter2swordfish"),
    "key in a sentence": ("note: WANDB KEY is 5f3ab0aa19ce", r"5f3ab0aa19ce"),
    "serial of a GPU": ("GPU serial 1320422071337 is to be replaced", r"1320422071337"),
    "phone number": ("on call: +49 171 5558231", r"\+49 171|5558231"),
    "phone number in words": ("phone: (212) 555-0187", r"555-0187"),
}
# Codes that a reader does not see and an assistant reads: tags, zero width, a change of direction.
HIDDEN = "\U000e0049\U000e0067\u200b\u2060\u200d\u202e\u2066\ufeff\u00ad"
LOG = """2026-11-21 09:12:04 INFO starting rank 0
{private}
2026-11-21 09:12:06 INFO ship it{hidden}ped
2026-11-21 09:12:07 ERROR alicia at store-7.prod.internal: see {hidden}+49 171 5558231
Traceback (most recent call last):
  File "/home/alicia/train.py", line 7, in <module>
    main()
RuntimeError: no such shard{hidden} at C:\\Users\\Konstantin, the password is hunter2swordfish
"""


def files_of(archive: str) -> Dict[str, str]:
    with tarfile.open(archive) as tar:
        opened = ((member.name, tar.extractfile(member)) for member in tar.getmembers())
        return {name: file.read().decode("utf-8", "surrogateescape") for name, file in opened if file}


@case
def bundle_of_a_job_contains_nothing_private_of_its_logs(context: Context) -> str:
    """The report, its page, the lists and the evidence, of what is quoted and with --all."""
    daemon = context.daemon()
    daemon.start()
    private = "\n".join(f"2026-11-21 09:12:05 INFO {line}" for line, _ in PRIVATE.values())
    (daemon.logs / "rank_0.log").write_text(LOG.format(private=private, hidden=HIDDEN))
    wait_until(lambda: daemon.items(f"/v1/diagnoses?job={JOB}"), 60, "a diagnosis")
    rows = []
    for words in ([], ["--all"]):
        out = str(context.folder / f"case{len(words)}.tar.gz")
        done = subprocess.run([str(context.bin_dir / "culprit"), "bundle", JOB, "--out", out, *words,
                               "--server", f"unix:{daemon.socket}"], capture_output=True, text=True,
                              timeout=60, check=False, env={"PATH": os.environ["PATH"]})
        need(done.returncode == 0, f"exit {done.returncode}: {done.stderr}")
        files = files_of(out)
        need({"report.json", "report.html", "manifest.json"} < set(files), f"{sorted(files)}")
        need(any("no such shard" in text for name, text in files.items() if name.startswith("evidence/")),
             f"the evidence is missing: {sorted(files)}")
        for name, text in files.items():
            for kind, (_, pattern) in PRIVATE.items():
                found = re.search(f".{{0,60}}(?:{pattern}).{{0,20}}", text)
                need(not found, f"{kind} is in {name}: {found and found.group()!r}")
            escaped = "".join(f"\\u{ord(c):04x}" for c in HIDDEN if ord(c) < 0x10000)
            hidden = sorted({f"U+{ord(c):04X}" for c in text if c in HIDDEN})
            need(not hidden and escaped not in text, f"{name} has {hidden}")
        rows.append(f"{len(files)} files")
    return f"{len(PRIVATE)} kinds, {len(HIDDEN)} hidden codes: " + ", ".join(rows)
