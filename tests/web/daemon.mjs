// A culpritd of its own in a folder of its own, with jobs that are played into it.
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";

export const TOKEN = "page-tests-0123456789abcdef", READ = "page-reads-0123456789abcdef";
// Markup, an end of a line, and marks that turn the text around.
export const EVIL = "<img src=x onerror=\"document.title='owned'\">\u202egnp.\u0007exe";

function freePort() {
  return new Promise((resolve) => {
    const server = net.createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

export async function until(done, seconds, what) {
  const end = Date.now() + 1000 * seconds;
  for (;;) {
    const got = await done().catch(() => null);
    if (got) return got;
    if (Date.now() > end) throw new Error(`not within ${seconds} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

export class Daemon {
  constructor(bin) {
    this.bin = bin;
    this.token = TOKEN;
    this.folder = fs.mkdtempSync(path.join(os.tmpdir(), "culprit-web-"));
    for (const made of ["state", "run", "rings"]) fs.mkdirSync(this.in(made));
    fs.chmodSync(this.in("rings"), 0o1777);
  }

  in(...parts) {
    return path.join(this.folder, ...parts);
  }

  culprit(...options) {
    return execFileSync(path.join(this.bin, "culprit"), options, { stdio: ["ignore", "pipe", "pipe"] }).toString();
  }

  async configure() {
    this.http = await freePort();
    this.collector = await freePort();
    fs.writeFileSync(this.in("token"), `${TOKEN} operate alice\n${READ} read board\n`, { mode: 0o600 });
    for (const name of ["hang-64", "hang-8192"])
      for (const folder of ["logs", "flight"]) fs.mkdirSync(this.in(name, "job", folder), { recursive: true });
    const hang = (name) => `[[log]]\npath = "${this.in(name)}/job/logs/**/*"\njob = "${name}"\n` +
      `[[dump]]\npath = "${this.in(name)}/job/flight/nccl_trace_rank_*"\njob = "${name}"\n`;
    fs.writeFileSync(this.in("culpritd.toml"), `role = "both"
state_dir = "${this.in("state")}"
runtime_dir = "${this.in("run")}"
rules = []
[host]
name = "head-1"
${hang("hang-64")}${hang("hang-8192")}[kernel]
enabled = false
[trace]
socket = "trace.sock"
rings = "${this.in("rings")}"
[collector]
listen = "127.0.0.1:${this.collector}"
[http]
listen = "127.0.0.1:${this.http}"
token_file = "${this.in("token")}"
`);
  }

  async start() {
    const out = fs.openSync(this.in("err"), "a");
    this.process = spawn(path.join(this.bin, "culpritd"), ["--config", this.in("culpritd.toml")],
                         { stdio: ["ignore", out, out] });
    await until(async () => (await fetch(this.url("/healthz"))).ok, 60, "GET /healthz is 200");
  }

  stop() {
    return new Promise((resolve) => {
      if (!this.process || this.process.exitCode !== null) return resolve();
      this.process.once("exit", resolve);
      this.process.kill("SIGTERM");
    });
  }

  async close() {
    await this.stop();
    fs.rmSync(this.folder, { recursive: true, force: true });
  }

  url(path) {
    return `http://127.0.0.1:${this.http}${path}`;
  }

  async get(path) {
    const answer = await fetch(this.url(path), { headers: { Authorization: "Bearer " + TOKEN } });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  }

  // Milliseconds of the processor since its start.
  used() {
    const stat = fs.readFileSync(`/proc/${this.process.pid}/stat`, "utf8").split(") ")[1].split(" ");
    return 10 * (Number(stat[11]) + Number(stat[12]));
  }

  // After a start it reads what is stored.
  idles() {
    return until(async () => {
      const before = this.used();
      await new Promise((resolve) => setTimeout(resolve, 1000));
      return this.used() - before < 100;
    }, 120, "the daemon has nothing to do");
  }

  // A job's verdict, once the daemon has one.
  verdict(job, seconds = 120) {
    return until(async () => (await this.get(`/v1/jobs/${encodeURIComponent(job)}/report`)).verdict, seconds,
                 `a verdict of ${job}`);
  }

  // Its logs and dumps appear where the daemon looks for them.
  hang(name, ranks) {
    this.culprit("simulate", "hang", this.in(name + "-made"), "--ranks", String(ranks), "--kind", "loader", "--sources",
                 "watchdog,flight");
    for (const folder of ["logs", "flight"])
      for (const file of fs.readdirSync(this.in(name + "-made", "job", folder)))
        fs.renameSync(this.in(name + "-made", "job", folder, file), this.in(name, "job", folder, file));
  }

  play(job, hosts, ...more) {
    return this.culprit("simulate", "play", "--hosts", String(hosts), "--to", `127.0.0.1:${this.collector}`, "--job", job,
                        "--speed", "0", "--evidence", "--quiet", ...more);
  }

  // Lines of the trace socket.
  tell(records) {
    return new Promise((resolve, reject) => {
      const socket = net.connect(this.in("run", "trace.sock"), () => {
        socket.end(records.map((record) => JSON.stringify(record) + "\n").join(""), resolve);
      });
      socket.on("error", reject);
    });
  }

  // A training loop: rank 2 has other parameters from step 80 on, and a loss that is no number at step 100.
  async numbers(job) {
    let seed = 1;
    const chance = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
    const began = Date.now() * 1e6 - 90e9, records = [];
    for (let step = 0; step < 120; ++step) {
      const shared = step.toString(16).padStart(8, "0");
      const norm = 20 + step * 0.01 + chance() * 0.001;
      for (let rank = 0; rank < 4; ++rank) {
        const wrong = rank === 2 && step >= 80;
        records.push({ kind: "metric", job, rank, step, time_ns: Math.round(began + step * 700e6 + rank * 1000),
          values: { loss: wrong && step === 100 ? "NaN" : 4 * 0.97 ** step + 0.001 * chance(), grad_norm: 0.8 + 0.05 * chance(),
                    param_norm: norm + (wrong ? 1e-3 : 0), lr: 1e-3 },
          digests: { param: (wrong ? "1" : "0") + shared } });
      }
    }
    await this.tell(records);
  }

  // Names and lines that a stranger chose.
  async evil() {
    const began = Date.now() * 1e6 - 30e9, records = [];
    for (let i = 0; i < 40; ++i)
      records.push({ kind: "log", job: EVIL, host: EVIL, rank: 0, time_ns: Math.round(began + i * 500e6),
                     line: i < 39 ? `step ${i} loss 1.2` : `NVRM: Xid (PCI:0000:3b:00): 79, pid='<script>alert(1)</script>', ` +
                       `name=\u202e\u2066evil, GPU has fallen off the bus.` });
    await this.tell(records);
  }

  // More jobs than a page has rows, as a year has made them.
  async seed(count) {
    await this.stop();
    execFileSync("python3", [new URL("seed.py", import.meta.url).pathname, this.in("state", "index.db"), String(count)]);
    await this.start();
  }
}
