// What the tests of the page and of the report's own file share: Chromium, pages, pictures, axe.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import puppeteer from "puppeteer-core";

const HERE = path.dirname(fileURLToPath(import.meta.url));
export const ROOT = path.resolve(HERE, "../..");
export const SHOTS = path.join(ROOT, "build/web");
const AXE = fs.readFileSync(path.join(HERE, "node_modules/axe-core/axe.min.js"), "utf8");
export const PHONE = { width: 390, height: 844, deviceScaleFactor: 2, isMobile: true, hasTouch: true };
export const DESK = { width: 1280, height: 900 };

export const troubles = [];  // what Chromium itself complains of: a refused script or style, an error that nothing catches
export let browser;

export async function launch() {
  fs.mkdirSync(SHOTS, { recursive: true });
  browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM || "/usr/bin/chromium", headless: true, protocolTimeout: 120000,
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
           "--disable-component-update", "--disable-sync"] });
}

export function need(holds, what) {
  if (!holds) throw new Error(what);
}

export function sorted(list) {
  return [...list].sort((a, b) => a - b);
}

export const middle = (list) => sorted(list)[list.length >> 1];

// What the quarter took that other work disturbed least: that work only adds time.
export const undisturbed = (list) => sorted(list)[list.length >> 2];

// On a machine with more work than processors the processor's time is what can be promised.
export function within(wall, cpu, limit) {
  return wall <= limit || (os.loadavg()[0] > os.cpus().length && cpu <= limit);
}

// Milliseconds of the processor that the renderers used.
export async function rendererTime() {
  const session = await browser.target().createCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  await session.detach();
  return processInfo.filter((x) => x.type === "renderer").reduce((sum, x) => sum + 1000 * x.cpuTime, 0);
}

export async function newPage(view = DESK) {
  const made = await browser.newPage();
  await made.setViewport(view);
  made.on("console", (m) => m.type() === "error" && !/status of (40[0134]|503)|ERR_/.test(m.text()) && troubles.push(m.text()));
  made.on("pageerror", (error) => troubles.push(String(error)));
  made.on("dialog", (dialog) => troubles.push("a dialog: " + dialog.message()));
  return made;
}

export async function shot(name, of) {
  await new Promise((resolve) => setTimeout(resolve, 300));
  await of.screenshot({ path: path.join(SHOTS, name + ".png"), fullPage: true });
}

// What is drawn on the canvas of a chart: a hash, and how many points.
export function drawn(of, index) {
  return of.$$eval(".plot canvas:first-child", (list, i) => {
    const c = list[i], data = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
    let hash = 0, some = 0;
    for (let k = 0; k < data.length; k += 4) if (data[k + 3]) hash = (hash * 31 + data[k] + k) | 0, ++some;
    return { hash, some };
  }, index);
}

// Passed checks of axe; fails if it finds anything.
export async function axe(of, what) {
  const session = await of.createCDPSession();
  await session.send("Runtime.evaluate", { expression: AXE });
  const found = await of.evaluate(async () => {
    const out = await axe.run(document, { resultTypes: ["violations"] });
    return { passes: out.passes.length, bad: out.violations.map((v) => v.id + ": " + v.nodes.slice(0, 2).map((n) => n.html.slice(0, 140))) };
  });
  await session.detach();
  need(!found.bad.length, `${what}: ${found.bad.join("; ")}`);
  return found.passes;
}

// Fails if the page scrolls sideways; `within`: elements that scroll themselves.
export async function isNarrow(of, what, inside = ".wide, .log") {
  const wide = await of.evaluate(() => document.scrollingElement.scrollWidth);
  const who = await of.evaluate((skip) => [...document.querySelectorAll("main *")].filter((e) =>
    e.getBoundingClientRect().right > 391 && !e.closest(skip)).slice(0, 3).map((e) => e.outerHTML.slice(0, 120)), inside);
  need(wide <= 390, `${what}: ${wide} px; ${who}`);
}
