// Ranks over the time of one step: own work, waiting and for whom, moving data. A canvas with keys, and a table that
// says the same. `picture`: as in formats.md.
import { Chart, colour, short } from "./charts.js";
import { bdi, counted, firstOf, h, name, number, plain, ranges, replace, table } from "./dom.js";

const KINDS = ["own", "wait", "move"];  // the first three numbers of a part
const FIELDS = 5;
const ROWS_SHOWN = 20;

// Whom the rows stand for.
export function rowName(row) {
  const whole = row.of > 1 ? ` (${row.of} ranks)` : "";
  return `rank ${row.rank}${row.host ? " " + row.host : ""}${whole}`;
}

// Pieces of a row: { kind, from, to, op, last } in milliseconds from the beginning of the step.
export function piecesOf(row, picture) {
  const out = [];
  let at = row.begin;
  for (let i = 0; i + FIELDS <= row.parts.length; i += FIELDS) {
    const op = picture.ops[row.parts[i + 3]] ?? "", last = row.parts[i + 4];
    KINDS.forEach((kind, k) => {
      const size = row.parts[i + k];
      if (size > 0) out.push({ kind, from: at * picture.unit_ms, to: (at + size) * picture.unit_ms, op, last });
      at += size;
    });
  }
  return out;
}

// For whom a row waited longest: { rank, ms, op }; null: for none that is known.
export function waitedFor(row, picture) {
  const sums = new Map();
  for (const p of piecesOf(row, picture)) {
    if (p.kind !== "wait" || p.last < 0) continue;
    const sum = sums.get(p.last) || { rank: p.last, ms: 0, op: p.op };
    sum.ms += p.to - p.from;
    sums.set(p.last, sum);
  }
  return [...sums.values()].sort((a, b) => b.ms - a.ms || a.rank - b.rank)[0] || null;
}

// How long a row waited for a rank, of the row that did so longest.
function longestFor(picture) {
  const out = new Map();
  for (const row of picture.rows) {
    const sums = new Map();
    for (const p of piecesOf(row, picture)) if (p.kind === "wait" && p.last >= 0) sums.set(p.last, (sums.get(p.last) || 0) + p.to - p.from);
    for (const [rank, sum] of sums) out.set(rank, Math.max(sum, out.get(rank) || 0));
  }
  return out;
}

// How long others waited for a row's rank beyond what it had waited for others itself: a rank that is late for that is
// not the one that was late first.
const caused = (row) => row.awaited_ms - row.wait_ms;

// Rows whose rank came last: by at least 0.6 of what the worst one cost, and by more than a hundredth of the step.
export function lateRows(picture) {
  const most = Math.max(0, ...picture.rows.map(caused));
  return new Set(picture.rows.filter((row) => caused(row) >= .6 * most && caused(row) > picture.step_ms / 100).slice(0, 32));
}

const ms = (value) => short(value) + " ms";

// What a piece says.
function sentence(p) {
  const long = ms(p.to - p.from);
  if (p.kind === "own") return `own work, ${long}` + (p.op ? `, then ${p.op}` : "");
  if (p.kind === "move") return `${p.op} moves data, ${long}`;
  return `waits ${long} in ${p.op}` + (p.last >= 0 ? ` for rank ${p.last}` : "");
}

// The rows: the late ones first, then by rank. `calm`: no step is slow, so that nothing is drawn in red.
export class Spans extends Chart {
  constructor(group, picture, calm = false) {
    const late = lateRows(picture), rows = [...picture.rows.filter((r) => late.has(r)), ...picture.rows.filter((r) => !late.has(r))];
    const size = rows.length > 64 ? 12 : rows.length > 16 ? 16 : 22;
    super(group, "ms", Math.min(400, rows.length * size + 28), "");
    Object.assign(this, { picture, calm });
    this.longest = longestFor(picture);
    this.rows = rows.map((row) => ({ row, late: late.has(row), pieces: piecesOf(row, picture) }));
    this.size = size;
    this.chosen = -1;  // a row, by the keys
    this.said = h("p", { class: "soft", role: "status" });
    const whole = rows.length * size + 28;
    this.box.setAttribute("role", "application");
    this.box.setAttribute("aria-roledescription", "chart");
    this.box.setAttribute("aria-label", `Ranks over the time of step ${number(picture.step)}: up and down choose a row, left and ` +
      "right move, plus and minus zoom; the table below says the same");
    if (whole > this.height) this.scrolls(whole, "Ranks over the time of one step");
    group.add(this, 0, Math.max(...this.rows.map((x) => x.pieces.at(-1)?.to ?? 0), picture.unit_ms));
    this.box.addEventListener("keydown", (event) => this.onKey(event));
  }

  onKey(event) {
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    this.chosen = Math.max(0, Math.min(this.rows.length - 1, this.chosen < 0 ? 0 : this.chosen + by));
    if (this.outer) {
      const top = this.chosen * this.size, room = this.height - 40;
      if (top < this.outer.scrollTop || top > this.outer.scrollTop + room) this.outer.scrollTop = Math.max(0, top - room / 2);
    }
    this.said.textContent = plain(this.summary(this.chosen));
    this.group.draw(true);
  }

  summary(r) {
    const { row, late } = this.rows[r], whom = waitedFor(row, this.picture);
    return rowName(row) + (late ? ", which others waited for" : "") + `: waits ${ms(row.wait_ms)}` +
      (whom ? `, most of it for rank ${whom.rank} in ${whom.op}` : "") +
      (this.longest.has(row.rank) ? `; others waited up to ${ms(this.longest.get(row.rank))} for it` : "") + ".";
  }

  when(x) {
    return ms(x);
  }

  drawBase() {
    if (!this.width) return;
    const c = this.base.getContext("2d"), bottom = this.height - 20, from = this.firstRow(this.size);
    c.clearRect(0, 0, this.width, this.height);
    this.xAxis(c, bottom);
    c.save();
    c.beginPath();
    c.rect(0, 8, this.width, bottom - 8);
    c.clip();
    for (let r = Math.floor(from); r < this.rows.length; ++r) {
      const y = 8 + (r - from) * this.size;
      if (y > bottom) break;
      this.drawRow(c, r, y);
    }
    c.restore();
  }

  drawRow(c, r, y) {
    const { row, late, pieces } = this.rows[r], right = this.width - 10;
    if (r === this.chosen) {
      c.fillStyle = colour("here");
      c.fillRect(0, y, this.width, this.size);
    }
    this.rowLabel(c, (late ? "● " : "") + rowName(row), late && !this.calm, y + this.size / 2);
    for (const p of pieces) {
      const a = Math.max(this.left, this.toX(p.from)), b = Math.min(right, this.toX(p.to));
      if (b <= this.left || a >= right) continue;
      c.fillStyle = colour(p.kind === "own" && late ? (this.calm ? "span-late" : "alarm") : "span-" + p.kind);
      c.fillRect(a, y + 1, Math.max(.7, b - a), this.size - 2);
    }
  }

  tell(c, x, at) {
    if (this.row === null || this.row === undefined || this.group.cursor?.kind !== this.kind) return;
    const r = Math.floor((this.row - 8) / this.size + this.firstRow(this.size));
    if (r < 0 || r >= this.rows.length || this.row > this.height - 20) return;
    const { row, late, pieces } = this.rows[r], p = pieces.find((one) => one.from <= x && x < one.to);
    this.label(c, at, this.row + 12, [rowName(row) + (this.longest.has(row.rank) ? ": others waited up to " + ms(this.longest.get(row.rank)) + " for it" : ""), "at " + this.when(x),
                                      p ? sentence(p) : "nothing is known"].map(name));
    if (p?.kind === "wait" && p.last >= 0) this.arrow(c, p, at);
  }

  // From the wait to whom it was for, if that row is seen.
  arrow(c, p, at) {
    const r = this.rows.findIndex((x) => x.row.rank === p.last && (x.row.of ?? 1) === 1);
    if (r < 0) return;
    const y = 8 + (r - this.firstRow(this.size) + .5) * this.size, to = this.toX(p.to);
    if (y < 8 || y > this.height - 20) return;
    c.strokeStyle = colour("text");
    c.beginPath();
    c.moveTo(at, this.row);
    c.lineTo(to, y);
    c.stroke();
    c.beginPath();
    c.arc(to, y, 3, 0, 7);
    c.stroke();
  }
}

// The same as a table, those that the others waited for first.
export function spanTable(picture) {
  const longest = longestFor(picture);
  const worst = [...picture.rows].sort((a, b) => caused(b) - caused(a) || b.awaited_ms - a.awaited_ms || a.rank - b.rank);
  return firstOf(worst, ROWS_SHOWN, (list) => table(["Rank", "Host", "Others waited for it", "It waited", "Most of it for"], list.map((row) => {
    const whom = waitedFor(row, picture);
    return [row.of > 1 ? `${row.rank} of ${row.of}` : String(row.rank), row.host ? bdi(row.host) : "", longest.has(row.rank) ? "up to " + ms(longest.get(row.rank)) : "",
            row.wait_ms > 0 ? ms(row.wait_ms) : "", whom ? [`rank ${whom.rank} in `, h("code", {}, name(whom.op)), `, ${ms(whom.ms)}`] : ""];
  })));
}

// One sentence: who was waited for in this step.
export function spanSentence(picture) {
  const late = [...lateRows(picture)].sort((a, b) => caused(b) - caused(a));
  if (!late.length) return "No single rank was waited for: all came at about the same time.";
  const hosts = new Set(late.map((row) => row.host));
  const who = late.length === 1 ? rowName(late[0]) : `ranks ${ranges(late.map((row) => row.rank).sort((a, b) => a - b), 6)}` +
    (hosts.size === 1 && late[0].host ? ` on ${late[0].host}` : "");
  const longest = Math.max(...late.map((row) => longestFor(picture).get(row.rank) ?? 0)), path = late.reduce((sum, row) => sum + row.path_ms, 0);
  return `${who} came last: the others waited up to ${ms(longest)} of the ${ms(picture.step_ms)} that the step took` +
    (path > picture.step_ms / 100 ? `, and it is ${ms(path)} longer for that.` : ".");
}

export function chainList(picture) {
  if (!picture.chain.length) return null;
  return h("details", {}, h("summary", {}, "Who waited for whom, from the end of the step back"), h("ol", { class: "chain" }, picture.chain.slice(0, 32).map((x) =>
    h("li", {}, `rank ${x.rank} `, h("code", {}, name(x.op + " #" + x.seq)), ` waited ${ms(x.wait_ms)}`))));
}
