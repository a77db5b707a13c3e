// Makes daemon/docs/report.png: the report's own file of the job that the README names. `node picture.mjs BIN_DIR`.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { ROOT, browser, launch, newPage } from "./harness.mjs";

const culprit = path.join(path.resolve(process.argv[2] || path.join(ROOT, "build/release/bin")), "culprit");
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "culprit-picture-")), out = path.join(ROOT, "daemon/docs/report.png");
try {
  execFileSync(culprit, ["simulate", "logs", "demo", "--fault", "gpu-lost", "--hosts", "16", "--seed", "3"], { cwd: folder, stdio: "ignore" });
  fs.writeFileSync(path.join(folder, "report.html"), execFileSync(culprit, ["diagnose", "--quiet", "--format", "html", "demo/job"],
                                                                  { cwd: folder, maxBuffer: 64 << 20 }));
  await launch();
  const page = await newPage({ width: 1100, height: 1200 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "light" }]);
  await page.goto(pathToFileURL(path.join(folder, "report.html")).href);
  await page.waitForSelector(".plot");
  await new Promise((resolve) => setTimeout(resolve, 500));
  await page.screenshot({ path: out });
  console.log(out);
} finally {
  await browser?.close();
  fs.rmSync(folder, { recursive: true, force: true });
}
