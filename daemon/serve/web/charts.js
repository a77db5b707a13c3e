// Charts on canvases that share their zoom and their cursor: curves over time or steps, heat maps, and what spans.js
// draws. Numbers come in the form of formats.md: null is not reported, "NaN" and "Infinity" are texts.
import { dayOf, h, name, offsetOf, plain, timeOf } from "./dom.js";

// Room for names and numbers: the same in all charts, so that equal times and steps are above each other.
const LEFT = 150, NARROW = 82, RIGHT = 10, BOTTOM = 20, TOP = 8;
const FONT = "11px system-ui, sans-serif", MONO = "11px ui-monospace, monospace";
const CLICK = 4;  // pixels: a shorter drag is a click
const UNITS = { ms: " ms", s: " s" };

// Shared by the charts of a page: for each kind of x, "time" (ns), "step", "ms" or "s", the range that all have and the
// range that is seen, and the cursor. `link`: points [time, step], by which one kind is turned into the other.
export class Group {
  constructor() {
    this.charts = new Set();
    this.full = {};
    this.seen = {};
    this.cursor = null;
    this.link = [];
    this.zoomed = false;
    this.onRange = null;  // called with a kind and its range, or null: all
    this.due = { base: false, over: false };
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.print = matchMedia("print");
    // At once: paper waits for no frame.
    this.repaint = () => this.charts.forEach((chart) => chart.drawBase());
    this.dark.addEventListener("change", this.repaint);
    this.print.addEventListener("change", this.repaint);
  }

  close() {
    this.dark.removeEventListener("change", this.repaint);
    this.print.removeEventListener("change", this.repaint);
    for (const chart of this.charts) chart.close();
    this.charts.clear();
  }

  add(chart, from, to) {
    this.charts.add(chart);
    const kind = chart.kind, full = this.full[kind];
    this.full[kind] = full ? [Math.min(full[0], from), Math.max(full[1], to)] : [from, to];
    if (this.full[kind][1] <= this.full[kind][0]) this.full[kind][1] = this.full[kind][0] + 1;
    this.seen[kind] = [...this.full[kind]];
  }

  turned(kind, x) {
    const a = kind === "time" ? 0 : 1, points = this.link;
    if (points.length < 2) return null;
    if (x < points[0][a] || x > points[points.length - 1][a]) return null;
    let low = 0, high = points.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      points[middle][a] <= x ? low = middle : high = middle;
    }
    const [p, q] = [points[low], points[high]];
    const share = q[a] === p[a] ? 0 : (x - p[a]) / (q[a] - p[a]);
    return p[1 - a] + share * (q[1 - a] - p[1 - a]);
  }

  at(kind) {
    if (!this.cursor) return null;
    return this.cursor.kind === kind ? this.cursor.x : this.turned(this.cursor.kind, this.cursor.x);
  }

  point(kind, x) {
    this.cursor = x === null ? null : { kind, x };
    this.draw(false);
  }

  zoom(kind, from, to) {
    const full = this.full[kind], least = (full[1] - full[0]) / 5000;
    if (to - from < least) return;
    const size = Math.min(to - from, full[1] - full[0]);
    const start = Math.max(full[0], Math.min(from, full[1] - size));
    this.seen[kind] = [start, start + size];
    const other = kind === "time" ? "step" : "time";
    const [a, b] = [this.turned(kind, start), this.turned(kind, start + size)];
    this.zoomed = size < full[1] - full[0];
    if (this.seen[other] && a !== null && b !== null && b > a) this.seen[other] = [a, b];
    this.onRange?.(kind, this.zoomed ? this.seen[kind] : null);
    this.draw(true);
  }

  all() {
    this.zoomed = false;
    for (const one of Object.keys(this.full)) this.seen[one] = [...this.full[one]];
    this.onRange?.(null, null);
    this.draw(true);
  }

  // Once a frame: the charts themselves, or only the cursor over them.
  draw(base) {
    this.due.base ||= base;
    if (this.due.over) return;
    this.due.over = true;
    requestAnimationFrame(() => {
      const everything = this.due.base;
      this.due = { base: false, over: false };
      for (const chart of this.charts) {
        if (everything) chart.drawBase();
        chart.drawOver();
      }
    });
  }
}

let colours = null;
export function colour(what) {
  if (!colours) {
    const style = getComputedStyle(document.documentElement);
    colours = new Proxy({}, { get: (kept, key) => kept[key] ??= style.getPropertyValue("--" + key).trim() });
  }
  return colours[what];
}
for (const of of ["(prefers-color-scheme: dark)", "print"]) matchMedia(of).addEventListener("change", () => colours = null);

// Round numbers in a range, some `count` of them.
export function ticks(from, to, count) {
  const raw = (to - from) / Math.max(1, count);
  if (!(raw > 0) || !Number.isFinite(raw)) return [];
  const unit = 10 ** Math.floor(Math.log10(raw));
  const size = [1, 2, 5, 10].find((n) => n * unit >= raw) * unit;
  const out = [];
  for (let i = Math.ceil(from / size); i * size <= to + size * 1e-9; ++i) out.push(i * size);
  return out;
}

const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800,
                    604800];
function timeTicks(from, to, count) {
  const seconds = (to - from) / 1e9, raw = seconds / count;
  if (raw < 0.5) return ticks(from, to, count);
  const size = (TIME_STEPS.find((n) => n >= raw) || Math.ceil(raw / 604800) * 604800) * 1e9;
  const zone = offsetOf(from);
  const out = [];
  for (let t = Math.ceil((from + zone) / size) * size - zone; t <= to; t += size) out.push(t);
  return out;
}

function clock(ns, range) {
  const whole = timeOf(ns);
  if (range > 2 * 86400e9) return dayOf(ns) + " " + whole.slice(0, 5);
  if (range > 1200e9) return whole.slice(0, 5);
  return range < 10e9 ? whole + "." + String(Math.floor(ns / 1e6) % 1000).padStart(3, "0") : whole;
}

export function short(value) {
  const size = Math.abs(value);
  if (value === 0) return "0";
  if (size >= 1e15 || size < 1e-4) return value.toExponential(1).replace("e+", "e");
  for (const [unit, of] of [["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e4]])
    if (size >= of) return +(value / (of === 1e4 ? 1e3 : of)).toPrecision(4) + unit;
  return String(+value.toPrecision(4));
}

export class Chart {
  constructor(group, kind, height, label) {
    Object.assign(this, { group, kind, height });
    this.base = h("canvas", { "aria-hidden": "true" });
    this.over = h("canvas", { "aria-hidden": "true" });
    this.box = h("div", { class: "plot", role: "img", "aria-label": plain(label), tabindex: "0" }, this.base, this.over);
    this.box.style.height = height + "px";
    this.width = 0;
    this.left = LEFT;
    this.sizes = new ResizeObserver(() => this.fit());
    this.sizes.observe(this.box);
    this.listen();
  }

  close() {
    this.sizes.disconnect();
  }

  fit() {
    const width = this.box.clientWidth;
    if (!width) return;
    this.left = width < 560 ? NARROW : LEFT;
    const ratio = devicePixelRatio || 1;
    this.width = width;
    for (const canvas of [this.base, this.over]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(this.height * ratio);
      canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
    }
    this.drawBase();
    this.drawOver();
  }

  range() {
    return this.group.seen[this.kind];
  }
  toX(x) {
    const [from, to] = this.range();
    return this.left + (x - from) / (to - from) * (this.width - this.left - RIGHT);
  }
  fromX(pixel) {
    const [from, to] = this.range();
    return from + (pixel - this.left) / (this.width - this.left - RIGHT) * (to - from);
  }

  listen() {
    const box = this.box;
    let start = null, dragged = false;
    const pixel = (event) => event.clientX - box.getBoundingClientRect().left;
    box.addEventListener("pointerdown", (event) => {
      if (event.button || event.pointerType === "touch") return;
      start = pixel(event);
      box.setPointerCapture(event.pointerId);
    });
    box.addEventListener("pointermove", (event) => {
      const at = pixel(event);
      this.row = event.clientY - box.getBoundingClientRect().top;
      this.drag = start !== null && Math.abs(at - start) > CLICK ? [start, at] : null;
      this.group.point(this.kind, at < this.left || at > this.width - RIGHT ? null : this.fromX(at));
    });
    box.addEventListener("pointerup", () => {
      if (this.drag) {
        const [a, b] = this.drag.map((at) => this.fromX(Math.max(this.left, Math.min(this.width - RIGHT, at))));
        this.group.zoom(this.kind, Math.min(a, b), Math.max(a, b));
      }
      dragged = this.drag !== null;
      this.drag = start = null;
    });
    box.addEventListener("click", (event) => {
      const at = pixel(event);
      if (!dragged && at >= this.left) this.onPick?.(this.fromX(at));
    });
    box.addEventListener("pointerleave", () => {
      if (start === null) this.row = null, this.group.point(this.kind, null);
    });
    box.addEventListener("dblclick", () => this.group.all());
    box.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey) return;  // else the page scrolls
      event.preventDefault();
      this.scale(event.deltaY + event.deltaX > 0 ? 1.25 : 0.8, this.fromX(pixel(event)));
    }, { passive: false });
    box.addEventListener("keydown", (event) => {
      const [from, to] = this.range(), shift = (to - from) / 5;
      if (event.key === "+" || event.key === "=") this.scale(0.6, (from + to) / 2);
      else if (event.key === "-") this.scale(1.7, (from + to) / 2);
      else if (event.key === "ArrowLeft") this.group.zoom(this.kind, from - shift, to - shift);
      else if (event.key === "ArrowRight") this.group.zoom(this.kind, from + shift, to + shift);
      else if (event.key === "0") this.group.all();
      else return;
      event.preventDefault();
    });
  }

  scale(by, around) {
    const [from, to] = this.range();
    this.group.zoom(this.kind, around - (around - from) * by, around + (to - around) * by);
  }

  // A chart whose rows need `whole` pixels scrolls within its height.
  scrolls(whole, label) {
    this.filler = h("div", { class: "filler" });
    this.filler.style.height = whole - this.height + "px";
    this.outer = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": plain(label) }, this.box, this.filler);
    this.outer.style.height = this.height + "px";
    this.outer.addEventListener("scroll", () => this.group.draw(true), { passive: true });
  }

  get element() {
    return this.outer || this.box;
  }

  // The first row that is seen, and a part of it.
  firstRow(size) {
    return (this.outer ? this.outer.scrollTop : 0) / size;
  }

  rowLabel(c, text, hot, y) {
    c.font = MONO;
    c.textAlign = "left";
    c.textBaseline = "middle";
    c.fillStyle = colour(hot ? "alarm" : "text");
    const room = Math.floor((this.left - 8) / 6.7);
    c.fillText(text.length > room ? text.slice(0, room - 1) + "…" : text, 2, y);
  }

  ticks(from, to, count) {
    if (this.kind === "time") return timeTicks(from, to, count);
    return ticks(from, to, count).filter((x) => this.kind !== "step" || Number.isInteger(x));
  }

  xAxis(c, y) {
    const [from, to] = this.range(), room = this.width - this.left - RIGHT;
    const time = this.kind === "time", count = Math.max(2, Math.floor(room / (time ? 95 : 80)));
    c.font = FONT;
    c.fillStyle = colour("soft");
    c.strokeStyle = colour("line");
    c.textAlign = "center";
    c.textBaseline = "top";
    for (const x of this.ticks(from, to, count)) {
      const at = this.toX(x);
      if (at < this.left - 1 || at > this.width - RIGHT + 1) continue;
      line(c, at, TOP, at, y);
      const text = time ? clock(x, to - from) : short(x) + (UNITS[this.kind] || ""), half = c.measureText(text).width / 2;
      c.fillText(text, Math.min(at, this.width - half - 1), y + 4);
    }
  }

  drawOver() {
    if (!this.width) return;
    const c = this.over.getContext("2d");
    c.clearRect(0, 0, this.width, this.height);
    if (this.drag) {
      c.fillStyle = colour("select");
      c.fillRect(Math.min(...this.drag), 0, Math.abs(this.drag[1] - this.drag[0]), this.height - BOTTOM);
    }
    const x = this.group.at(this.kind);
    const [from, to] = this.range();
    if (x === null || x < from || x > to) return;
    const at = this.toX(x);
    c.strokeStyle = colour("text");
    c.setLineDash([3, 3]);
    line(c, at, 0, at, this.height - BOTTOM);
    c.setLineDash([]);
    this.tell(c, x, at);
  }

  // A box with lines of text next to the cursor.
  label(c, at, y, texts) {
    c.font = FONT;
    const width = Math.max(...texts.map((text) => c.measureText(text).width)) + 12, height = 15 * texts.length + 6;
    const left = at + 10 + width > this.width ? Math.max(0, at - 10 - width) : at + 10;
    const top = Math.max(0, Math.min(y, this.height - height));
    c.fillStyle = colour("raised");
    c.strokeStyle = colour("line");
    c.fillRect(left, top, width, height);
    c.strokeRect(left + .5, top + .5, width - 1, height - 1);
    c.fillStyle = colour("text");
    c.textAlign = "left";
    c.textBaseline = "top";
    texts.forEach((text, i) => c.fillText(text, left + 6, top + 5 + 15 * i));
  }

  when(x) {
    if (UNITS[this.kind]) return short(x) + UNITS[this.kind];
    return this.kind === "time" ? clock(x, 1200e9) : "step " + Math.round(x).toLocaleString("en-US");
  }
}

function line(c, x1, y1, x2, y2) {
  c.beginPath();
  c.moveTo(Math.round(x1) + .5, y1);
  c.lineTo(Math.round(x2) + .5, y2);
  c.stroke();
}

const isNumber = (y) => typeof y === "number" && Number.isFinite(y);

// Curves. `xs` ascending; `series`: { name, ys, colour, notFinite }; `marks`: { x, text, kind } drawn over the full
// height, kind "alarm" or "plain"; `rug`: xs of small ticks at the bottom.
export class Plot extends Chart {
  constructor(group, kind, { label, xs, series, marks = [], rug = [], log = false, height = 170, whole = false }) {
    super(group, kind, height, label);
    Object.assign(this, { xs, series, marks, rug, log, whole });
    if (xs.length) group.add(this, xs[0], xs[xs.length - 1]);
  }

  setLog(on) {
    this.log = on;
    this.drawBase();
    this.drawOver();
  }

  // Indices that are seen, with one more on each side.
  part() {
    const [from, to] = this.range();
    let a = lower(this.xs, from), b = lower(this.xs, to) + 1;
    return [Math.max(0, a - 1), Math.min(this.xs.length, b + 1)];
  }

  scaleY() {
    const [a, b] = this.part();
    let low = Infinity, high = -Infinity;
    for (const one of this.series)
      for (let i = a; i < b; ++i) {
        const y = one.ys[i];
        if (isNumber(y) && (!this.log || y > 0)) low = Math.min(low, y), high = Math.max(high, y);
      }
    if (low > high) [low, high] = this.log ? [1, 10] : [0, 1];
    if (this.log) {
      if (low === high) low /= 2, high *= 2;
      return { low: Math.log10(low), high: Math.log10(high), of: Math.log10 };
    }
    if (low === high) low -= Math.abs(low) / 10 || 1, high += Math.abs(high) / 10 || 1;
    const room = (high - low) * 0.05;
    return { low: low - room, high: high + room, of: (y) => y };
  }

  drawBase() {
    if (!this.width) return;
    const c = this.base.getContext("2d"), bottom = this.height - BOTTOM;
    c.clearRect(0, 0, this.width, this.height);
    const scale = this.scaleY();
    this.toY = (y) => bottom - (scale.of(y) - scale.low) / (scale.high - scale.low) * (bottom - TOP - 8);
    this.xAxis(c, bottom);
    this.yAxis(c, scale);
    c.save();
    c.beginPath();
    c.rect(this.left, 0, this.width - this.left - RIGHT + 2, bottom + 1);
    c.clip();
    for (const one of this.series) this.curve(c, one);
    for (const one of this.series) this.broken(c, one);
    this.drawMarks(c, bottom);
    c.restore();
  }

  yAxis(c, { low, high }) {
    c.font = FONT;
    c.textAlign = "right";
    c.textBaseline = "middle";
    const whole = this.log ? ticks(low, high, 4).filter((y) => high - low < 1.5 || Number.isInteger(y)) : ticks(low, high, 4);
    for (const tick of whole) {
      if (this.whole && !Number.isInteger(tick)) continue;
      const value = this.log ? 10 ** tick : tick, y = this.toY(value);
      c.strokeStyle = colour("line");
      c.beginPath();
      c.moveTo(this.left, Math.round(y) + .5);
      c.lineTo(this.width - RIGHT, Math.round(y) + .5);
      c.stroke();
      c.fillStyle = colour("soft");
      c.fillText(short(value), this.left - 6, y);
    }
  }

  curve(c, one) {
    const [a, b] = this.part();
    c.strokeStyle = c.fillStyle = colour(one.colour);
    c.lineWidth = 1.5;
    c.beginPath();
    let pen = false;
    for (let i = a; i < b; ++i) {
      const y = one.ys[i];
      if (!isNumber(y) || (this.log && y <= 0)) {
        pen = false;
        continue;
      }
      const px = this.toX(this.xs[i]), py = this.toY(y);
      const alone = !pen && !isNumber(one.ys[i + 1]);
      if (alone) c.moveTo(px + 1.5, py), c.arc(px, py, 1.5, 0, 7);
      else pen ? c.lineTo(px, py) : c.moveTo(px, py);
      pen = true;
    }
    c.stroke();
    c.lineWidth = 1;
  }

  // A number that is not finite has no height: a triangle at the top.
  broken(c, one) {
    const [from, to] = this.range();
    c.fillStyle = colour("alarm");
    for (const i of one.notFinite || []) {
      const x = this.xs[i];
      if (x < from || x > to) continue;
      const at = this.toX(x);
      c.beginPath();
      c.moveTo(at - 4, 1);
      c.lineTo(at + 4, 1);
      c.lineTo(at, 8);
      c.fill();
    }
  }

  drawMarks(c, bottom) {
    c.strokeStyle = colour("soft");
    for (const x of this.rug) line(c, this.toX(x), bottom - 6, this.toX(x), bottom);
    c.font = FONT;
    c.textBaseline = "top";
    const ends = [];  // of the labels of each row
    for (const mark of this.bundled()) {
      const { at } = mark, alarm = mark.kind === "alarm";
      c.strokeStyle = c.fillStyle = colour(alarm ? "alarm" : "soft");
      c.setLineDash(alarm ? [] : [4, 3]);
      line(c, at, 0, at, bottom);
      c.setLineDash([]);
      const width = c.measureText(mark.text).width, right = at + 8 + width > this.width;
      const from = right ? at - 4 - width : at + 4;
      let row = 0;
      while (row < 4 && ends[row] > from) ++row;
      ends[row] = from + width + 8;
      c.textAlign = "left";
      c.fillText(mark.text, from, 2 + 13 * row);
    }
  }

  // Marks that lie on each other have one line and one label.
  bundled() {
    const out = [];
    for (const mark of [...this.marks].sort((a, b) => a.x - b.x)) {
      const at = this.toX(mark.x), last = out.at(-1);
      if (!last || at - last.at > 14) {
        out.push({ ...mark, at, first: mark.text, all: 1 });
        continue;
      }
      if (mark.kind === "alarm") Object.assign(last, { at, kind: "alarm", first: mark.text });
      last.text = `${last.first} and ${last.all++} more`;
    }
    return out;
  }

  tell(c, x, at) {
    if (!this.xs.length) return;
    let i = lower(this.xs, x);
    if (i > 0 && (i === this.xs.length || x - this.xs[i - 1] < this.xs[i] - x)) --i;
    const texts = [this.when(this.kind === "time" ? x : this.xs[i])];
    for (const one of this.series) {
      const y = one.ys[i];
      texts.push(one.name + ": " + ((one.notFinite || []).includes(i) && !isNumber(y) ? "not finite"
        : isNumber(y) ? short(y) : y === null || y === undefined ? "not reported" : String(y)));
    }
    this.label(c, at, TOP, texts.map(name));
  }
}

// Rows of cells. `rows`: { name, hot, at(i) } with a level of 0 to 7, or null; `edges`: x of each cell's beginning and
// the last one's end; `tell(row, i)`: what a cell says. Only rows that are seen are drawn.
export class Heat extends Chart {
  constructor(group, kind, { label, rows, edges, tell, most = 360, colours = "heat" }) {
    const row = rows.length > 64 ? 11 : rows.length > 16 ? 14 : 20;
    super(group, kind, Math.min(most, rows.length * row + BOTTOM + TOP), label);
    Object.assign(this, { rows, edges, say: tell, rowHeight: row, colours });
    const whole = rows.length * row + BOTTOM + TOP;
    if (whole > this.height) this.scrolls(whole, label);
    if (edges.length > 1) group.add(this, edges[0], edges[edges.length - 1]);
  }

  drawBase() {
    if (!this.width) return;
    const c = this.base.getContext("2d"), bottom = this.height - BOTTOM, size = this.rowHeight;
    c.clearRect(0, 0, this.width, this.height);
    this.xAxis(c, bottom);
    const from = this.firstRow(size), start = Math.floor(from);
    const [low, high] = this.range();
    const a = Math.max(0, lower(this.edges, low) - 1), b = Math.min(this.edges.length - 1, lower(this.edges, high) + 1);
    c.save();
    c.beginPath();
    c.rect(0, TOP, this.width, bottom - TOP);
    c.clip();
    for (let r = start; r < this.rows.length; ++r) {
      const y = TOP + (r - from) * size;
      if (y > bottom) break;
      this.drawRow(c, this.rows[r], y, size, a, b);
    }
    c.restore();
  }

  drawRow(c, row, y, size, a, b) {
    this.rowLabel(c, row.name, row.hot, y + size / 2);
    // Neighbours that are equal are one rectangle.
    for (let i = a; i < b;) {
      const level = row.at(i);
      let end = i + 1;
      while (end < b && row.at(end) === level) ++end;
      if (level !== null) {
        const x = Math.max(this.left, this.toX(this.edges[i]));
        const right = Math.min(this.width - RIGHT, this.toX(this.edges[end]));
        if (right > x) {
          c.fillStyle = colour(this.colours + level);
          c.fillRect(x, y + .5, Math.max(.7, right - x), size - 1);
        }
      }
      i = end;
    }
  }

  tell(c, x, at) {
    if (this.row === null || this.row === undefined || this.group.cursor?.kind !== this.kind) return;
    const r = Math.floor((this.row - TOP) / this.rowHeight + this.firstRow(this.rowHeight));
    const i = lower(this.edges, x + 1e-9) - 1;
    if (r < 0 || r >= this.rows.length || i < 0 || i >= this.edges.length - 1 || this.row > this.height - BOTTOM) return;
    this.label(c, at, this.row + 12, [this.rows[r].name, this.when(x), this.say(r, i)].map(name));
  }
}

// The first index whose value is not below x.
function lower(list, x) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    list[middle] < x ? low = middle + 1 : high = middle;
  }
  return low;
}

// What the colours and lines mean.
export function legend(parts) {
  return h("div", { class: "legend" }, parts.map(([key, text, shape]) => {
    const mark = h("i", { class: shape || "" , "aria-hidden": "true" });
    mark.style.setProperty("--key", `var(--${key})`);
    return h("span", {}, mark, text);
  }));
}
