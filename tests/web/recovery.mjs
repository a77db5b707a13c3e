// The promises of the page's view of the controller. The daemon of these tests has no scheduler, so all but the first
// promise answer /v1/recovery themselves, in the form of docs/formats.md; tests/e2e/cases_controller.py has a real one.
import { READ, TOKEN } from "./daemon.mjs";
import { PHONE, axe, isNarrow, need, newPage, shot } from "./harness.mjs";

const EVIL = "<img src=x onerror=\"document.title='owned'\">\u202egnp", MINUTE = 60e9;
const now = () => Date.now() * 1e6;

// What a collector in mode `ask` answers, with one open question and one host that is out.
class Answers {
  constructor(mode) {
    this.mode = mode;
    this.posts = [];
    this.refuse = null;
    this.breaker = "3 hosts (the larger of 2 and 0.25 % of 4 hosts) were isolated within 10 min";
    this.end = null;
    this.returned = false;
  }

  order(kind, target, excluded) {
    return { kind, target, excluded, code: "XID79", reason: "GPU has fallen off the bus " + EVIL };
  }

  question() {
    return { decision: "d-0007", job: "gpu-lost", does: "end job gpu-lost, isolate n2, run job gpu-lost again without n2",
      text: `GPU has fallen off the bus on n2 (confidence 0.88) ${EVIL}; the job runs again`, asked_ns: now() - MINUTE, expires_ns: now() + 14 * MINUTE,
      orders: [this.order("end-tasks", "gpu-lost", []), this.order("isolate", "n2", []), this.order("run-again", "gpu-lost", ["n2"])],
      verdict: { job: "gpu-lost", run: 0, id: "x", title: "GPU lost", headline: "GPU 5 of n2 has fallen off the bus", confidence: .88, why: [],
        evidence: [{ host: "n2", file: "kmsg", line: 7, text: `NVRM: Xid 79 ${EVIL}`, time_ns: now() - MINUTE }] } };
  }

  overview() {
    const asks = this.mode === "ask" && !this.end;
    return { mode: this.mode, trouble: null, breaker: this.breaker, isolated: this.returned ? 0 : 1,
      stages: [{ partition: null, isolate: true, restart: true, check: false, return: false }],
      questions: asks ? [this.question()] : [],
      answered: this.end ? [{ decision: "d-0007", does: this.question().does, end: this.end, by: "alice (token alice)", time_ns: now() }] : [],
      out: this.returned ? [] : [{ host: "n4", op: "00112233445566ff", decision: "d-0003", root: "nvidia.xid.79: " + EVIL, by: "culprit", since_ns: now() - 60 * MINUTE,
        isolated: 3, again: "n4: third time in 7 days" }],
      items: [{ job: "gpu-lost", key: "k", scheduler: "slurm", attempt: 1, state: "held", since_ns: now() - MINUTE, limit_ns: now() + 60 * MINUTE, decision: "d-0007",
        asks, root: "nvidia.xid.79", why: "held " + EVIL, cause: "device", machine: "isolate", restart: "elsewhere", hosts: ["n1", "n2"], excluded: ["n2"] },
        { job: "calm", key: "c", scheduler: "slurm", attempt: 1, state: "run", since_ns: now(), limit_ns: null, decision: null, asks: false, root: null, why: null,
          cause: "unknown", machine: "none", restart: "unknown", hosts: ["n3"], excluded: [] }] };
  }

  actions() {
    return { items: [{ op: "00112233445566ff", decision: "d-0003", kind: "isolate", target: "n4", job: { id: "99" }, excluded: [], code: "XID79", reason: EVIL, device: "",
      state: this.returned ? "undone" : "done", attempt: 1, sent: 1, precondition: "", before: "", by: "culprit", root: "", undone_by: this.returned ? "alice" : "",
      reserved_ns: now() - 60 * MINUTE, settled_ns: now() - 59 * MINUTE, detail: "State=IDLE+DRAIN " + EVIL },
      { op: "ff", decision: "d-0002", kind: "run-again", target: "98", job: { id: "98" }, excluded: ["n4"], code: "", reason: "", device: "", state: "ambiguous", attempt: 1,
        sent: 1, precondition: "", before: "", by: "culprit", root: "", undone_by: "", reserved_ns: now() - 70 * MINUTE, settled_ns: now(), detail: "no answer in time" }] };
  }

  notes() {
    return { items: [{ time_ns: now() - 5 * MINUTE, kind: "would-do", job: "k", decision: "d-0006", text: "would isolate n3: " + EVIL,
      order: { ...this.order("isolate", "n3", []), job: { id: "gpu-lost" } } }] };
  }

  cost() {
    const q = { count: 4, median_s: 31, p90_s: 64, most_s: 70 };
    return { jobs: 3, attempts: 9, failures: 4, wall_s: 360000, productive_s: 349200, ettr: .97,
      lost: [{ cause: "device", seconds: 7200 }, { cause: null, seconds: 600 }], detect: q, decide: q, again: q, items: [] };
  }

  decision() {
    return { ...this.overview().items[0], explanation: ["run -> held on verdict-ended: " + EVIL], verdict: this.question().verdict,
      actions: this.actions().items, attempts: [], notes: this.mode === "observe" ? [{ ...this.notes().items[0], decision: "d-0007" }] : [] };
  }

  of(request) {
    const { pathname } = new URL(request.url());
    if (request.method() === "POST" && pathname.startsWith("/v1/recovery")) return this.take(request, pathname);
    const bodies = { "/v1/recovery": "overview", "/v1/recovery/actions": "actions", "/v1/recovery/notes": "notes", "/v1/recovery/cost": "cost",
                     "/v1/jobs/gpu-lost/decision": "decision" };
    if (pathname === "/v1/recovery/machines")
      return { items: [{ host: "n4", device: "", suspected: 5, isolated: 3, returned: 2, last_ns: now(), last_root: EVIL, op: "x", isolations: [] }] };
    return bodies[pathname] ? this[bodies[pathname]]() : null;
  }

  take(request, pathname) {
    this.posts.push({ pathname, authorization: request.headers().authorization, body: request.postData() || "" });
    if (this.refuse) return { status: 403, error: this.refuse };
    if (pathname.endsWith("/approve")) this.end = "approved";
    if (pathname.endsWith("/decline")) this.end = "declined";
    if (pathname.endsWith("/undo")) this.returned = true;
    if (pathname.endsWith("/reset")) this.breaker = null;
    return { done: "done", id: "d-0007" };
  }
}

export function recoveryPromises(daemon) {
  const out = [];
  const promise = (name, call) => out.push({ name: "recovery: " + name, call, needs: true });

  async function onPage(answers, call, view) {
    const page = await newPage(view);
    try {
      await page.evaluateOnNewDocument((token) => {
        if (location.protocol === "http:") sessionStorage.setItem("culprit-token", token);
      }, TOKEN);
      if (answers) {
        await page.setRequestInterception(true);
        page.on("request", (request) => {
          const body = answers.of(request);
          if (!body) return request.continue();
          request.respond({ status: body.status || 200, contentType: "application/json", body: JSON.stringify(body) });
        });
      }
      return await call(page);
    } finally {
      await page.close();
    }
  }

  async function open(page, hash, ready = "h1") {
    await page.goto("about:blank");
    await page.goto(daemon.url("/") + hash);
    await page.waitForSelector(ready, { timeout: 30000 });
  }

  const says = (page, words) => page.waitForFunction((of) => document.querySelector("main").innerText.includes(of), { timeout: 10000 }, words);
  const press = async (page, label) => {
    const button = await page.waitForFunction((of) => [...document.querySelectorAll("main button")].find((b) => b.textContent === of && !b.disabled), {}, label);
    await button.asElement().click();
  };
  const text = (page) => page.$eval("main", (e) => e.innerText);

  promise("without a controller the view says so in a sentence; a token that reads changes nothing", () => onPage(null, async (page) => {
    await open(page, "#/recover");
    await says(page, "No controller runs here");
    await shot("recovery-off", page);
    const send = (token) => fetch(daemon.url("/v1/recovery/d-0001/approve"), { method: "POST", headers: token ? { Authorization: "Bearer " + token } : {} });
    const statuses = [(await send(null)).status, (await send(READ)).status, (await send(TOKEN)).status];
    need(statuses.join() === "401,403,404", `statuses ${statuses}`);
    return `${await axe(page, "no controller")} checks passed`;
  }));

  promise("in observe mode it says that nothing is done, and what would have been", () => onPage(new Answers("observe"), async (page) => {
    await open(page, "#/recover", "table");
    for (const part of ["observes", "does nothing", "What it would have done", "isolate n3"]) await says(page, part);
    need(!(await page.$("[data-word=approve]")), "a button to approve");
    await open(page, "#/jobs/gpu-lost", ".card");
    await says(page, "would have done");
    await shot("recovery-observe", page);
  }));

  promise("a question says what would be done, why, by which evidence, and how long it waits; its link has the focus", () => onPage(new Answers("ask"), async (page) => {
    await open(page, "#/recover/d-0007", ".card.linked");
    need(await page.$eval("h1", (e) => e.innerText) === "1 question waits for you", await page.$eval("h1", (e) => e.innerText));
    const card = await page.$eval(".card.linked", (e) => e.innerText);
    for (const part of ["end job gpu-lost, isolate n2", "Why:", "confidence 0.88", "GPU 5 of n2", "88 %", "n2 kmsg:7", "Xid 79", "min", "left", "Approve", "Decline"])
      need(card.includes(part), `no ${part} in ${card}`);
    need(await page.evaluate(() => document.activeElement.closest("[data-decision]")?.dataset.decision) === "d-0007", "the focus is elsewhere");
    const rest = await text(page);
    for (const part of ["The breaker is open", "third time in 7 days", "97 % effective training time", "ambiguous", "held for a person", "1 other job needs nothing"])
      need(rest.includes(part), `no ${part} in ${rest}`);
    await shot("recovery", page);
  }));

  promise("approve and decline are sent once, with the person's own token and name, and only by a button", async () => {
    for (const [label, word, said] of [["Approve", "approve", "was approved"], ["Decline", "decline", "was declined"]]) {
      const answers = new Answers("ask");
      await onPage(answers, async (page) => {
        await open(page, "#/recover/d-0007", ".card.linked");
        need(!answers.posts.length, "the link answered");
        await page.type(".card.linked input", "alice");
        await press(page, label);
        await says(page, said);
        need(answers.posts.length === 1, JSON.stringify(answers.posts));
        const [sent] = answers.posts;
        need(sent.pathname === `/v1/recovery/d-0007/${word}` && sent.authorization === "Bearer " + TOKEN && JSON.parse(sent.body).by === "alice", JSON.stringify(sent));
        need(!(await page.$("[data-word]")), "it still asks");
      });
    }
  });

  promise("who may not approve is told, and the question stays", async () => {
    const answers = new Answers("ask");
    answers.refuse = "this token may only read: a change needs one with the role operate";
    await onPage(answers, async (page) => {
      await open(page, "#/recover", "[data-word=approve]");
      await press(page, "Approve");
      await says(page, "this token may only read");
      need(await page.$("[data-word=approve]:not([disabled])"), "the question is gone");
    });
  });

  promise("undo and the breaker's reset ask once more", async () => {
    const answers = new Answers("act");
    await onPage(answers, async (page) => {
      await open(page, "#/recover", "table");
      await press(page, "Return it");
      need(!answers.posts.length, "one press returned it");
      await press(page, "Return n4: this cause takes it out no more for a day");
      await page.waitForFunction(() => document.querySelector("main").innerText.includes("undone"));
      await press(page, "Reset the breaker");
      await press(page, "Reset it: what was decided before is dropped");
      await page.waitForFunction(() => !document.querySelector("main").innerText.includes("The breaker is open"));
      const paths = answers.posts.map((x) => x.pathname).join();
      need(paths === "/v1/recovery/00112233445566ff/undo,/v1/recovery/reset", paths);
    });
  });

  promise("texts of strangers are text, on a phone and a desk, light and dark, and axe finds nothing", async () => {
    let checks = 0;
    for (const [view, scheme] of [[undefined, "light"], [undefined, "dark"], [PHONE, "light"]])
      await onPage(new Answers("ask"), async (page) => {
        await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
        for (const [hash, ready] of [["#/recover/d-0007", ".card.linked"], ["#/jobs/gpu-lost", ".card"]]) {
          await open(page, hash, ready);
          await says(page, "d-0007");
          if (hash.startsWith("#/recover")) {
            await page.click("details.history > summary");
            await says(page, "Suspected");
          }
          const found = await page.evaluate(() => ({ images: document.querySelectorAll("img").length, title: document.title,
            turned: /[\u202a-\u202e]/.test(document.documentElement.textContent) }));
          need(!found.images && found.title !== "owned" && !found.turned, `${hash}: ${JSON.stringify(found)}`);
          if (view) await isNarrow(page, hash);
          else checks += await axe(page, `${scheme} ${hash}`);
          await shot(`recovery-${view ? "phone" : scheme}-${hash.split("/")[1]}`, page);
        }
      }, view);
    return `${checks} checks passed`;
  });
  return out;
}
