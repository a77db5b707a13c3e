"""A training loop that goes well and pauses once.
usage: quiet_job.py STYLE PAUSE PROCESSES SECONDS
STYLE: how its lines look. PAUSE: what it announces before it pauses; `silent`: nothing."""
import json
import logging
import os
import subprocess
import sys
import time

STEPS, STEP_S = 45, 0.12
WORDS = {
    "evaluation": "Running eval on 500 samples", "validation": "Validating ...",
    "checkpoint": "Saving checkpoint to out/step-30", "compile": "Compiling model with torch.compile",
    "download": "Downloading shards of the data set", "tokenise": "Tokenizing 120000 documents",
    "none": "", "late": "Saving final model", "silent": "",
}


class Printer:
    def __init__(self, rank):
        self.rank = rank

    def step(self, i):
        print(f"step {i}/{STEPS} loss {3.0 / i:.3f}", flush=True)

    def say(self, text):
        print(text, flush=True)


class Tqdm(Printer):
    def step(self, i):
        done = i * 10 // STEPS
        sys.stderr.write(f"\r{100 * i // STEPS:3}%|{'█' * done}{' ' * (10 - done)}| {i}/{STEPS} "
                         f"[00:{i:02}<00:{STEPS - i:02}, 6.61it/s, loss={3.0 / i:.2f}]")
        sys.stderr.flush()
        if i == STEPS:
            sys.stderr.write("\n")

    def say(self, text):
        sys.stderr.write("\n" + text + "\n")
        sys.stderr.flush()


class Logging(Printer):
    def __init__(self, rank):
        super().__init__(rank)
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
        self.log = logging.getLogger("train")

    def step(self, i):
        self.log.info("step %d/%d loss %.3f lr 1e-4", i, STEPS, 3.0 / i)

    def say(self, text):
        self.log.info(text)


class Rich(Printer):
    def step(self, i):
        self.say(f"epoch 1 step {i}/{STEPS} loss {3.0 / i:.3f}     \x1b[2mtrain.py\x1b[0m:\x1b[2m42\x1b[0m")

    def say(self, text):
        print(f"\x1b[2m[{time.strftime('%H:%M:%S')}]\x1b[0m \x1b[34mINFO\x1b[0m     {text}", flush=True)


class Json(Printer):
    def step(self, i):
        print(json.dumps({"ts": time.time(), "level": "info", "msg": "train", "step": i, "loss": 3.0 / i}),
              flush=True)

    def say(self, text):
        print(json.dumps({"ts": time.time(), "level": "info", "msg": text}), flush=True)


STYLES = {"print": Printer, "tqdm": Tqdm, "logging": Logging, "rich": Rich, "json": Json}


def rank_of_job(style, pause, seconds):
    rank = int(os.environ.get("RANK", "0"))
    out = STYLES[style](rank)
    speaks = rank == 0 or style == "print"
    say = out.say if speaks else (lambda text: None)
    step = out.step if speaks else (lambda i: None)
    if pause in ("download", "tokenise"):
        say(WORDS[pause])
        time.sleep(seconds)
    for i in range(1, STEPS + 1):
        if pause in ("evaluation", "validation", "checkpoint", "silent") and i == STEPS * 2 // 3:
            if WORDS[pause]:
                say(WORDS[pause])
            time.sleep(seconds)
        if pause == "compile" and i == 2:
            say(WORDS[pause])
            time.sleep(seconds)
        time.sleep(STEP_S)
        step(i)
    if pause == "late":
        say(WORDS[pause])
        time.sleep(seconds)
    say("done")


def main():
    style, pause, processes, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    if processes == 1 or "RANK" in os.environ:
        return rank_of_job(style, pause, seconds)
    children = [subprocess.Popen([sys.executable, *sys.argv],
                                 env={**os.environ, "RANK": str(r), "LOCAL_RANK": str(r),
                                      "WORLD_SIZE": str(processes)}) for r in range(processes)]
    sys.exit(max(child.wait() for child in children))


main()
