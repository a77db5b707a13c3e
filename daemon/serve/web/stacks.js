// Where the ranks of a hang stand: the tree of their stacks as boxes, from the outermost frames at the top inwards, each
// as wide as its ranks are many. What differs is marked, and wide enough to be seen. The list of stacks says the same.
import { h, name, plain, ranges } from "./dom.js";

const BOXES = 400, DEPTH = 128;
const OUTLIER_SHARE = 0.25;

// Nodes of equal chains of frames: { frames, ranks, differs, children }. `clusters`: frames innermost first.
function treeOf(clusters) {
  const root = { children: new Map(), ranks: [] };
  for (const cluster of clusters) {
    let at = root;
    for (const frame of [...cluster.frames].reverse().slice(0, DEPTH)) {
      if (!at.children.has(frame)) at.children.set(frame, { frames: [frame], ranks: [], healthy: 0, children: new Map() });
      at = at.children.get(frame);
      at.ranks.push(...cluster.ranks);
      if (cluster.healthy) at.healthy += cluster.ranks.length;
    }
  }
  const packed = (node) => {
    while (node.children.size === 1) {
      const [only] = node.children.values();
      if (only.ranks.length !== node.ranks.length) break;
      node = { ...only, frames: [...node.frames, ...only.frames] };
    }
    const children = [...node.children.values()].map(packed);
    children.sort((a, b) => Number(b.differs) - Number(a.differs) || b.ranks.length - a.ranks.length);
    return { frames: node.frames, ranks: node.ranks.sort((a, b) => a - b), differs: node.healthy === 0, children };
  };
  return [...root.children.values()].map(packed);
}

const shortName = (frame) => frame.slice(frame.lastIndexOf("/") + 1);

// An element, or null where there is nothing to compare.
export function stackPicture(clusters) {
  if (clusters.length < 2) return null;
  let left = BOXES;
  const row = (nodes) => {
    const all = nodes.reduce((sum, node) => sum + node.ranks.length, 0) || 1;
    return h("div", { class: "frames" }, nodes.map((node) => {
      if (left-- <= 0) return null;
      const text = `${shortName(node.frames.at(-1))}  [${ranges(node.ranks, 4)}]`;
      const box = h("div", {}, h("div", { class: node.differs ? "frame differs" : "frame",
        title: plain(`ranks ${ranges(node.ranks, 24)}\n${node.frames.slice(-24).join("\n")}`) }, name(text)),
        node.children.length ? row(node.children) : null);
      box.style.flexGrow = String(node.ranks.length / all + (node.differs && nodes.length > 1 ? OUTLIER_SHARE : 0));
      return box;
    }));
  };
  return h("div", { class: "icicle", "aria-hidden": "true" }, row(treeOf(clusters)));
}
