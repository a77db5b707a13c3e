// What the job did when: a band over time, and its sums as a sentence. `phases`: as in formats.md.
import { Chart, colour } from "./charts.js";
import { h, percent, span, stamp } from "./dom.js";

const NAMES = { start: "start and compilation", training: "training", evaluation: "evaluation", checkpoint: "checkpoint",
                restart: "restart", stall: "stall", end: "end" };
const HEIGHT = 50, TOP = 8, BAND = 20;

const seconds = (p) => (p.last_ns - p.first_ns) / 1e9;

export class Band extends Chart {
  constructor(group, phases) {
    super(group, "time", HEIGHT, "What the job did over time: the sentence below says it");
    this.phases = phases;
    group.add(this, phases[0].first_ns, phases.at(-1).last_ns);
  }

  drawBase() {
    if (!this.width) return;
    const c = this.base.getContext("2d"), right = this.width - 10;
    c.clearRect(0, 0, this.width, this.height);
    this.xAxis(c, TOP + BAND + 2);
    c.font = "11px system-ui, sans-serif";
    c.textAlign = "left";
    c.textBaseline = "middle";
    for (const p of this.phases) {
      const a = Math.max(this.left, this.toX(p.first_ns)), b = Math.min(right, this.toX(p.last_ns));
      if (b <= this.left || a >= right) continue;
      c.fillStyle = colour("phase-" + p.kind);
      c.fillRect(a, TOP, Math.max(1, b - a - .5), BAND);
      if (c.measureText(p.kind).width + 8 > b - a) continue;
      c.fillStyle = colour(p.kind === "stall" ? "page" : "text");
      c.fillText(p.kind, a + 4, TOP + BAND / 2);
    }
  }

  tell(c, x, at) {
    const p = this.phases.find((one) => one.first_ns <= x && x < one.last_ns);
    if (p && this.group.cursor?.kind === "time") this.label(c, at, 0, [NAMES[p.kind] || p.kind, `${stamp(p.first_ns)}, ${span(seconds(p))}`]);
  }
}

// "training 2 h (92 %), 3 checkpoints 5 min (4 %)".
export function phaseSums(phases) {
  const sums = new Map(), all = phases.reduce((sum, p) => sum + seconds(p), 0);
  for (const p of phases) {
    const sum = sums.get(p.kind) || { count: 0, long: 0 };
    sums.set(p.kind, { count: sum.count + 1, long: sum.long + seconds(p) });
  }
  const parts = [...sums].map(([kind, { count, long }]) =>
    `${NAMES[kind] || kind} ${span(long)} (${percent(long / all)}${count > 1 ? `, ${count} times` : ""})`);
  return h("p", { class: "soft" }, "The job's time, by its progress and its lines: " + parts.join(", ") + ".");
}

export function phaseLegend(phases) {
  return [...new Set(phases.map((p) => p.kind))].map((kind) => ["phase-" + kind, NAMES[kind] || kind]);
}
