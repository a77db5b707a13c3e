// The promises of the report's own file, opened from the disk: `culprit diagnose --format html`. None but the last two
// need a daemon.
import { execFileSync, spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { EVIL } from "./daemon.mjs";
import { DESK, PHONE, ROOT, SHOTS, axe, browser, drawn, isNarrow, middle, need, newPage, rendererTime, shot, within } from "./harness.mjs";

const OPENS_MS = 1000, BYTES = 1024 * 1024, HOSTS = 1024;
const EVIL_LINE = `NVRM: Xid (PCI:0000:3b:00): 79, pid='</script><script>document.title="owned"</script>', name=\u202e\u2066evil\u2028\u0007<!-- ` +
  `GPU has fallen off the bus.`;

// Jobs, each made when the first promise asks for it.
class Files {
  constructor(daemon) {
    this.daemon = daemon;
    this.made = new Map();
  }

  folder(name) {
    return this.daemon.in("file-" + name);
  }

  diagnose(...paths) {
    return execFileSync(path.join(this.daemon.bin, "culprit"), ["diagnose", "--quiet", "--format", "html", ...paths],
                        { maxBuffer: 64 << 20, stdio: ["ignore", "pipe", "pipe"], cwd: this.daemon.folder });
  }

  simulated(kind, name, ...options) {
    this.daemon.culprit("simulate", kind, this.folder(name), ...options);
    return [path.join(this.folder(name), "job")];
  }

  // A training loop: rank 2 has other parameters from step 80 on, and a loss that is no number at step 100.
  numbers(name) {
    const lines = [];
    for (let step = 0; step < 120; ++step)
      for (let rank = 0; rank < 4; ++rank) {
        const wrong = rank === 2 && step >= 80;
        lines.push(JSON.stringify({ kind: "metric", job: name, host: "n" + rank, rank, step, time_ns: 1767225600e9 + step * 700e6,
          values: { loss: wrong && step === 100 ? "NaN" : 4 * 0.9 ** step + 1e-7, grad_norm: 0.8 + 0.01 * (step % 7), param_norm: 20 + step / 100 + (wrong ? 1e-3 : 0) },
          digests: { param: (wrong ? "1" : "0") + step.toString(16).padStart(8, "0") } }));
      }
    fs.mkdirSync(this.folder(name));
    fs.writeFileSync(path.join(this.folder(name), "metrics.ndjson"), lines.join("\n") + "\n");
    return [this.folder(name)];
  }

  // Names and lines that a stranger chose.
  evil(name) {
    const folder = path.join(this.folder(name), EVIL.replaceAll("/", "_"));
    fs.mkdirSync(folder, { recursive: true });
    const lines = [];
    for (let i = 0; i < 40; ++i) lines.push(`2026-01-01T00:00:${String(i).padStart(2, "0")}Z [rank0]: ${i < 38 ? `iteration ${i} loss 1.2` : EVIL_LINE}`);
    fs.writeFileSync(path.join(folder, "rank<b>0.log"), lines.join("\n") + "\n");
    return [this.folder(name)];
  }

  // Starts, trains, evaluates, saves, is started anew, and stalls.
  phases(name) {
    let at = Date.parse("2026-01-01T00:00:00Z");
    const lines = [], say = (seconds, text) => lines.push(`${new Date(at += 1000 * seconds).toISOString()} INFO ${text}`);
    const steps = (from, to) => { for (let i = from; i <= to; ++i) say(2, `iteration ${i}/1000 loss ${(4 / i).toFixed(4)} lr 0.001`); };
    const start = () => { say(1, "initializing process group backend nccl world size 8"); say(60, "model compiled"); };
    start();
    steps(1, 60);
    say(2, "running validation on 1000 samples"), say(80, "validation loss 2.11");
    steps(61, 120);
    say(2, "saving checkpoint to /ckpt/step_120"), say(50, "saved checkpoint to /ckpt/step_120");
    steps(121, 160);
    say(30, "worker group failed, restarting"), start();
    steps(121, 200);
    for (let i = 0; i < 30; ++i) say(30, "heartbeat of the launcher");
    fs.mkdirSync(this.folder(name));
    fs.writeFileSync(path.join(this.folder(name), "train.log"), lines.join("\n") + "\n");
    return [this.folder(name)];
  }

  // Two attempts that fail at the same step. Its file is in the run's folder, from which links lead on.
  retried(name) {
    const folder = this.folder(name), train = path.join(ROOT, "examples/retries/train.py");
    fs.mkdirSync(folder);
    spawnSync(path.join(this.daemon.bin, "culprit"), ["run", "--dir", folder, "--job", name, "--retries", "3", "--", train, "same", folder],
              { stdio: "ignore", cwd: folder, timeout: 120000 });
    const file = path.join(folder, name, "report.html");
    return { file, url: pathToFileURL(file).href };
  }

  // The file of a job, as a URL.
  of(name) {
    if (name === "retries" && !this.made.has(name)) this.made.set(name, this.retried(name));
    if (!this.made.has(name)) {
      const paths = { logs: () => this.simulated("logs", name, "--hosts", "16", "--fault", "gpu-lost", "--healthy", "0"),
                      hang: () => this.simulated("hang", name, "--ranks", "64", "--kind", "loader"),
                      slow: () => this.simulated("comm", name, "--world", "64", "--fault", "gpu", "--severity", "1.4", "--steps", "40", "--plain"),
                      numbers: () => this.numbers(name), evil: () => this.evil(name), phases: () => this.phases(name),
                      large: () => this.simulated("logs", name, "--hosts", String(HOSTS), "--ranks-per-host", "1", "--fault", "gpu-lost", "--healthy", "0"),
                      wide: () => this.simulated("comm", name, "--world", "8192", "--ranks-per-host", "8", "--steps", "6", "--fault", "gpu", "--severity", "2", "--plain") }[name]();
      const file = path.join(SHOTS, `report-${name}.html`);
      fs.writeFileSync(file, this.diagnose(...paths));
      this.made.set(name, { file, url: pathToFileURL(file).href, paths });
    }
    return this.made.get(name);
  }
}

const EVERY = ["logs", "hang", "slow", "numbers", "evil", "phases", "retries"];

export function reportPromises(daemon) {
  const out = [], files = new Files(daemon);
  const promise = (name, call) => out.push({ name: "report.html: " + name, call });

  async function open(name, of, hash = "") {
    await of.goto("about:blank");
    await of.goto(files.of(name).url + hash);
    await of.waitForSelector(".card h1", { timeout: 30000 });
  }

  // A page of its own for each promise.
  async function onPage(call, view = DESK) {
    const page = await newPage(view);
    try {
      return await call(page);
    } finally {
      await page.close();
    }
  }

  const text = (page, selector = "main") => page.$eval(selector, (e) => e.innerText);
  const labels = (page) => page.$$eval(".plot", (list) => list.map((e) => e.getAttribute("aria-label")));

  promise("opens from the disk, asks for nothing, and Chromium has nothing to complain of", () => onPage(async (page) => {
    const asked = [];
    page.on("request", (request) => asked.push(request.url()));
    for (const name of EVERY) {
      await open(name, page);
      await shot("file-" + name, page);
      need(!(await text(page)).includes("could not be drawn"), `${name} is not drawn`);
    }
    const others = asked.filter((url) => !url.startsWith("file:") && url !== "about:blank");
    need(!others.length && asked.filter((url) => url.startsWith("file:")).length === EVERY.length, `asked for ${asked}`);
    await open("logs", page);
    for (const part of ["fallen off the bus", "Isolate", "Evidence", "Lines of the evidence"]) need((await text(page)).includes(part), `no ${part}`);
    return `${EVERY.length} jobs`;
  }));

  promise("the policy admits no script but its own", async () => {
    const page = await browser.newPage();  // whose complaint is asked for
    await open("logs", page);
    const ran = await page.evaluate(() => {
      const script = document.createElement("script");
      script.textContent = "window.strange = 1";
      document.body.append(script);
      return window.strange === 1;
    }).catch(() => false);
    await page.close();
    need(!ran, "a strange script ran");
    return "refused";
  });

  promise("a link of evidence goes to the line within the file, and the command gives the same lines", () => onPage(async (page) => {
    await open("logs", page);
    const item = await page.waitForSelector(".evidence li:has(.at a)");
    const quote = await item.$eval("pre", (e) => e.textContent);
    await (await item.$(".at a")).click();
    await page.waitForSelector(".lines li:target");
    const there = await page.$eval(".lines li:target", (e) => ({ text: e.querySelector("code").textContent, top: e.getBoundingClientRect().top, here: e.className }));
    need(there.text.includes(quote.slice(0, 60)) && there.here === "here", `another line: ${there.text}`);
    need(there.top > -1 && there.top < DESK.height, `it is at ${there.top} px`);
    await (await item.$("[aria-expanded]")).click();
    const shown = await item.$$eval(".lines code", (list) => list.map((e) => e.textContent));
    need(shown.length > 3, `${shown.length} lines`);
    const command = await item.$eval(".command code", (e) => e.textContent);
    const got = execFileSync("bash", ["-c", command], { cwd: daemon.folder }).toString().split("\n").slice(0, -1);
    need(got.join("\n") === shown.join("\n"), `${command} gives ${got.length} lines, the file ${shown.length}`);
    await shot("file-lines", page);
    return `${shown.length} lines; ${command.slice(0, 40)}…`;
  }));

  promise("without JavaScript the verdict and what to do are text", async () => {
    const page = await newPage();
    try {
      await page.setJavaScriptEnabled(false);
      await page.goto(files.of("logs").url);
      const body = await page.$eval("body", (e) => e.textContent);
      for (const part of ["fallen off the bus", "Isolate"]) need(body.split('id="data"')[0].includes(part), `no ${part}`);
      await shot("file-plain", page);
    } finally {
      await page.close();
    }
  });

  promise("attempts stand on one timeline, with totals at the top, and each leads to its own report", () => onPage(async (page) => {
    await open("retries", page);
    const top = await text(page, ".note"), bars = await page.$$eval(".tries i:not(.lost)", (list) => list.map((e) => {
      const { left, right } = e.getBoundingClientRect();
      return [left, right];
    }));
    need(/^2 attempts, .* lost\. It does not run again\./.test(top), top);
    need(bars.length === 2 && bars[0][1] <= bars[1][0] && bars.every(([left, right]) => right > left), `bars: ${bars}`);
    const rows = await page.$$eval("[aria-label^=Attempt] tbody tr", (list) => list.map((e) => e.innerText));
    need(rows.length === 2, `${rows.length} rows`);
    for (const part of ["out of range", "Run again", "exit status 1"]) need(rows[0].includes(part), `no ${part} in ${rows[0]}`);
    need(/stopped after 2 attempts/.test(rows[1]), rows[1]);
    await Promise.all([page.waitForNavigation(), page.click("[aria-label^=Attempt] tbody a")]);
    await page.waitForSelector(".card h1");
    need(page.url().includes("-attempt-1/report.html") && !(await page.$(".tries")), page.url());
    return top;
  }));

  promise("attempts are text without JavaScript", async () => {
    const page = await newPage();
    try {
      await page.setJavaScriptEnabled(false);
      await page.goto(files.of("retries").url);
      const body = (await page.$eval("pre.plain", (e) => e.textContent));
      for (const part of ["2 attempts, ", "run again ", "stopped after 2 attempts"]) need(body.includes(part), `no ${part}: ${body.slice(0, 900)}`);
      await shot("file-plain-retries", page);
    } finally {
      await page.close();
    }
  });

  promise("charts zoom together, the scale becomes logarithmic, numbers that are not finite are drawn", () => onPage(async (page) => {
    await open("numbers", page);
    const legends = (await page.$$eval(".legend", (list) => list.map((e) => e.innerText))).join("\n");
    need(legends.includes("rank 2") && legends.includes("not finite (1 step)"), legends);
    const steps = (await labels(page)).map((label, i) => /over steps/.test(label) ? i : -1).filter((i) => i >= 0);
    need(steps.length >= 3, `${steps.length} charts over steps`);
    need((await labels(page)).some((label) => /Distance of ranks/.test(label)), "no heat map of ranks");
    const plots = await page.$$(".plot"), before = await Promise.all(steps.map((i) => drawn(page, i)));
    need(before.every((x) => x.some > 500), "a chart is empty");
    await plots[steps[0]].evaluate((e) => e.scrollIntoView({ block: "center" }));
    const box = await plots[steps[0]].boundingBox();
    await page.mouse.move(box.x + 200, box.y + 60);
    await new Promise((resolve) => setTimeout(resolve, 100));
    const cursors = await page.$$eval(".plot canvas:last-child", (list) => list.map((c) =>
      c.getContext("2d").getImageData(0, 0, c.width, c.height).data.some((x) => x)));
    need(steps.every((i) => cursors[i]), `the cursor is in ${cursors}`);
    await page.mouse.down();
    await page.mouse.move(box.x + 500, box.y + 60, { steps: 4 });
    await page.mouse.up();
    await new Promise((resolve) => setTimeout(resolve, 150));
    const after = await Promise.all(steps.map((i) => drawn(page, i)));
    need(after.every((x, i) => x.hash !== before[i].hash), "a chart did not zoom");
    await page.mouse.click(box.x + 300, box.y + 60, { count: 2 });
    const loss = await page.$$eval("figure", (list) => list.findIndex((e) => e.innerText.startsWith("loss")));
    const scale = await page.evaluateHandle((i) => document.querySelectorAll("figure")[i].querySelector(".switch input"), loss);
    need(await scale.evaluate((e) => e.checked), "a loss over seven decades is not on a logarithmic scale");
    await new Promise((resolve) => setTimeout(resolve, 150));
    const log = await drawn(page, steps[0]);
    await scale.click();
    await new Promise((resolve) => setTimeout(resolve, 100));
    need((await drawn(page, steps[0])).hash !== log.hash, "the even scale is the same");
    return `${steps.length} charts over steps`;
  }));

  promise("ranks over steps are a heat map; a click on a step shows its ranks over time, with the one that came last", () => onPage(async (page) => {
    await open("slow", page);
    const all = await labels(page), at = (part) => all.findIndex((label) => label.includes(part));
    const heat = at("Delay of ranks over steps"), times = at("Duration of steps"), one = at("Ranks over the time of step");
    need(heat >= 0 && times >= 0 && one >= 0, `charts: ${all}`);
    need((await drawn(page, heat)).some > 5000 && (await drawn(page, one)).some > 5000, "a chart is empty");
    const said = await text(page, ".one-step");
    need(/rank \d+ .*came last: the others waited up to/.test(said), said.slice(0, 400));
    const suspect = /[Rr]ank (\d+)/.exec(await text(page, ".card h1"))?.[1];
    const steps = await page.$$eval(".one-step option", (list) => list.map((e) => Number(e.value)));
    need(steps.length > 2, `${steps.length} steps`);
    const choice = () => page.$eval(".one-step select", (e) => Number(e.value));
    const before = await choice(), plot = (await page.$$(".plot"))[times];
    await plot.evaluate((e) => e.scrollIntoView({ block: "center" }));
    const box = await plot.boundingBox();
    await page.mouse.click(box.x + (before > 20 ? 155 : box.width - 12), box.y + 60);
    need(await choice() !== before, `a click leaves step ${before}`);
    await page.select(".one-step select", String(before));
    await page.focus(".one-step .plot");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("+");
    const first = await text(page, ".one-step [role=status]:not(span)");
    need(/rank \d+.*others waited up to/.test(first), `the first row: ${first}`);
    if (suspect) need(first.includes(`rank ${suspect} `), `${first}, and the verdict names ${suspect}`);
    for (const one of await page.$$(".one-step details")) await one.evaluate((e) => { e.open = true; });
    const rows = await page.$$eval(".one-step tbody tr", (list) => list.length);
    need(rows === 20, `${rows} rows of the table`);
    await shot("file-one-step", page);
    return `${steps.length} steps; ${first}`;
  }));

  promise("phases stand on the timeline: start, training, evaluation, checkpoint, restart, stall", () => onPage(async (page) => {
    await open("phases", page);
    const index = (await labels(page)).findIndex((label) => label.startsWith("What the job did"));
    need(index >= 0 && (await drawn(page, index)).some > 5000, "no band");
    const said = await page.$$eval("p", (list) => list.map((e) => e.innerText).find((t) => t.startsWith("The job's time")));
    for (const part of ["start and compilation", "training", "evaluation", "checkpoint", "restart", "stall"]) need(said?.includes(part), `no ${part} in ${said}`);
    return said;
  }));

  promise("names and lines of strangers are text", () => onPage(async (page) => {
    await open("evil", page);
    const found = await page.evaluate(() => ({ images: document.querySelectorAll("img, main script").length, scripts: document.scripts.length, title: document.title,
      turned: /[\u202a-\u202e\u2066-\u2069\u2028\u0007]/.test(document.querySelector("main").textContent + document.title) }));
    need(!found.images && found.scripts === 2 && found.title !== "owned" && !found.turned, JSON.stringify(found));
    need((await text(page)).includes("</script>") && (await text(page)).includes("\\u{202e}"), (await text(page)).slice(0, 500));
  }));

  promise("no sideways scroll at 390 px", () => onPage(async (page) => {
    for (const name of EVERY) {
      await open(name, page);
      await shot("file-phone-" + name, page);
      await isNarrow(page, name, ".wide, .log, .icicle");
    }
  }, PHONE));

  promise("axe finds nothing, light and dark", () => onPage(async (page) => {
    let checks = 0;
    for (const scheme of ["light", "dark"]) {
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      for (const name of EVERY) {
        await open(name, page);
        if (scheme === "dark") await shot("file-dark-" + name, page);
        checks += await axe(page, `${scheme} ${name}`);
      }
    }
    return `${checks} checks passed`;
  }));

  promise("it prints, and what is dark on the screen is light on paper", () => onPage(async (page) => {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]);
    await open("slow", page);
    const pdf = await page.pdf({ path: path.join(SHOTS, "report.pdf"), format: "A4", printBackground: false });
    need(pdf.length > 10000, `${pdf.length} bytes`);
    await page.emulateMediaType("print");
    await new Promise((resolve) => setTimeout(resolve, 200));
    const colours = await page.evaluate(() => [document.documentElement, document.body].map((e) => getComputedStyle(e).backgroundColor).concat(
      getComputedStyle(document.documentElement).getPropertyValue("--text").trim()));
    need(colours[2] === "#000", `the text is ${colours}`);
    return `${pdf.length} bytes`;
  }));

  promise("the same input gives the same bytes", async () => {
    const { file, paths } = files.of("logs");
    need(files.diagnose(...paths).equals(fs.readFileSync(file)), "they differ");
    return `${fs.statSync(file).size} bytes`;
  });

  // Time until the card stands, over four openings.
  async function opening(name) {
    const size = fs.statSync(files.of(name).file).size, times = [], spent = [];
    for (let i = 0; i < 4; ++i)
      await onPage(async (page) => {
        const before = await rendererTime(), began = performance.now();
        await page.goto(files.of(name).url);
        await page.waitForSelector(".card h1");
        await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve))));
        times.push(performance.now() - began);
        spent.push(await rendererTime() - before);
        if (i === 0) await shot("file-" + name, page);
      });
    const figures = `${size} bytes; opens in ${times.map(Math.round).join(", ")} ms (${spent.map(Math.round).join(", ")} ms of the processor, load ` +
      `${os.loadavg()[0].toFixed(1)})`;
    need(size <= BYTES, figures);
    need(within(middle(times), middle(spent), OPENS_MS), figures);
    return figures;
  }

  promise("a job of 1,024 hosts is a file of 1 MiB at most and opens in 1 s", () => opening("large"));

  promise("a trace of 8,192 ranks is a file of 1 MiB at most, opens in 1 s, and groups its ranks by host", async () => {
    const figures = await opening("wide");
    await onPage(async (page) => {
      await open("wide", page);
      const said = await text(page, ".one-step");
      need(said.includes("stands for several ranks"), said.slice(0, 300));
      need(/came last/.test(said), said.slice(0, 300));
    });
    return figures;
  });

  out.push({ name: "report.html of a daemon's job has the lines around its evidence, and the command that asks the daemon for them", needs: true,
             call: () => onPage(async (page) => {
    const file = path.join(SHOTS, "report-daemon.html"), server = ["--server", daemon.url(""), "--token-file", daemon.in("token")];
    fs.writeFileSync(file, daemon.culprit("report", "hang-64", "--format", "html", ...server));
    await page.goto(pathToFileURL(file).href);
    const item = await page.waitForSelector(".evidence li:has(.at a)");
    await (await item.$(".at a")).click();
    await page.waitForSelector(".lines li:target.here");
    await (await item.$("[aria-expanded]")).click();
    const shown = await item.$$eval(".lines code", (list) => list.map((e) => e.textContent));
    const command = await item.$eval(".command code", (e) => e.textContent);
    const env = { ...process.env, PATH: daemon.bin + ":" + process.env.PATH, CULPRIT_SERVER: daemon.url(""), CULPRIT_TOKEN_FILE: daemon.in("token") };
    const got = execFileSync("bash", ["-c", command], { env }).toString().split("\n").slice(0, -1);
    need(shown.length > 3 && got.join("\n") === shown.join("\n"), `${command} gives ${got.length} lines, the file ${shown.length}`);
    return `${shown.length} lines`;
  }) });

  // The page of the daemon draws the same: its report is that of the file.
  out.push({ name: "the page shows the ranks over the time of one step, as the report's file does", needs: true, call: () => onPage(async (page) => {
    const html = fs.readFileSync(files.of("slow").file, "utf8");
    const { report } = JSON.parse(/id="data">(.*?)<\/script>/s.exec(html)[1]);
    await page.evaluateOnNewDocument((token) => {
      if (location.protocol === "http:") sessionStorage.setItem("culprit-token", token);
    }, daemon.token);
    await page.setRequestInterception(true);
    page.on("request", (request) => request.url().includes("/report?")
      ? request.respond({ contentType: "application/json", body: JSON.stringify(report) }) : request.continue());
    await page.goto(daemon.url("/") + "#/jobs/hang-64");
    await page.waitForSelector(".one-step .plot");
    await shot("one-step", page);
    need(/came last/.test(await text(page, ".one-step")), await text(page, ".one-step"));
    return axe(page, "the job").then((n) => `${n} checks passed`);
  }) });
  return out;
}
