// The members of a cluster: which others there are, where their pages are, and which one owns a job.
import { json } from "./api.js";
import { ago, bdi, h, name, plain, replace } from "./dom.js";

const AWAY_NS = 30e9;  // two rounds of a member without a sign

// Of names and addresses of the database, which any member writes: only these are links.
const isPage = (url) => /^https?:\/\//i.test(url || "");

// name → item of GET /v1/cluster; empty: no cluster, or this reader does not get it.
let members = new Map(), shown = "";

// A link to the same place on the member's page. `at`: "#/jobs/ID".
export function memberLink(member, at = "#/") {
  return link(h("span", { "data-member": plain(member), "data-at": at }, bdi(member)));
}

function link(span) {
  const { member, at } = span.dataset, url = members.get(member)?.http;
  if (isPage(url)) replace(span, h("a", { href: url.replace(/\/+$/, "") + "/" + at, rel: "noreferrer" }, bdi(member)));
  return span;
}

// Which member owns the job, with a link where it is another one; null: this one does, or no cluster.
export function ownerOf(cluster, at) {
  if (!cluster || cluster.owner) return null;
  if (!cluster.owned_by) return [" · no member of the cluster owns it now"];
  return [" · owned by ", memberLink(cluster.owned_by, at)];
}

// The line of the other members.
export async function showMembers(to) {
  let got;
  try {
    got = await json("v1/cluster");
  } catch {
    return;  // it says as of before, and the view says why
  }
  to.hidden = !got.member;
  if (!got.member) return;
  members = new Map(got.items.map((one) => [one.name, one]));
  const others = got.items.filter((one) => !one.this);
  const isAway = (one) => got.read_ns - one.seen_ns > AWAY_NS;
  const text = JSON.stringify([got.connected, others.map((one) => [one.name, one.http, one.parts.length, isAway(one) && ago(one.seen_ns)])]);
  if (text === shown) return;  // keeps the focus on a link
  shown = text;
  const line = others.map((one, i) => {
    const away = isAway(one);
    return [i ? ", " : "", memberLink(one.name), ` (${one.parts.length} of 64 partitions${away ? ", away: seen " + ago(one.seen_ns) : ""})`];
  });
  replace(to, `${name(got.member)} is a member of a cluster. `, others.length ? ["Others: ", line] : "No other was seen yet.",
          got.connected ? "" : " Its database does not answer.");
  document.querySelectorAll("main [data-member]").forEach(link);  // what was drawn before the list came
}
