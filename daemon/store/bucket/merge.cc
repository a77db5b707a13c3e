#include "store/bucket/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "store/evidence.h"

namespace culprit::store::bucket {
namespace {

// The parts of an extent without the ranges of others, which are in order.
template <class Range>
std::vector<Extent> without(const Extent& whole, const std::vector<Range>& others) {
  std::vector<Extent> out;
  Extent rest = whole;
  for (const auto& [from, to] : others) {
    if (to <= rest.from || from >= rest.to) continue;
    if (from > rest.from) {
      out.push_back(rest);
      out.back().to = from;
    }
    rest.from = std::max(rest.from, to);
    if (rest.from >= rest.to) return out;
  }
  if (rest.from < rest.to) out.push_back(rest);
  return out;
}

using Bounds = std::vector<std::pair<uint64_t, uint64_t>>;

Bounds bounds_of(const std::vector<Hole>& holes) {
  Bounds out;
  for (const Hole& hole : holes) out.emplace_back(hole.offset, hole.offset + hole.bytes);
  std::ranges::sort(out);
  return out;
}
Bounds bounds_of(const std::vector<Extent>& extents) {
  Bounds out;
  for (const Extent& one : extents) out.emplace_back(one.from, one.to);
  return out;
}

void add_extents(StoredStream& to, const Extent& extent, const std::vector<Hole>& holes) {
  for (const Extent& part : without(extent, bounds_of(holes)))
    for (const Extent& fresh : without(part, bounds_of(to.extents))) {
      const auto at = std::ranges::lower_bound(to.extents, fresh.from, {}, &Extent::from);
      to.extents.insert(at, fresh);
    }
}

// Holes that neither has.
void finish(StoredStream& stream, const std::vector<Hole>& holes, const std::string& unread) {
  stream.holes.clear();
  const Bounds have = bounds_of(stream.extents);
  Bounds known;
  for (const Hole& hole : holes)
    for (const Extent& part : without({0, hole.offset, hole.offset + hole.bytes, 0, 0}, have))
      for (const Extent& fresh : without(part, known)) {
        stream.holes.push_back({fresh.from, fresh.to - fresh.from,
                                unread.empty() ? hole.reason : fmt::format("{}; {}", hole.reason, unread)});
        known.emplace_back(fresh.from, fresh.to);
        std::ranges::sort(known);
      }
  if (!unread.empty()) {
    Bounds all = have;
    all.insert(all.end(), known.begin(), known.end());
    std::ranges::sort(all);
    for (const Extent& part : without({0, 0, stream.state.size, 0, 0}, all))
      stream.holes.push_back({part.from, part.to - part.from, unread});
  }
  std::ranges::sort(stream.holes, {}, &Hole::offset);
  if (!stream.extents.empty()) stream.first_offset = stream.extents.front().from;
  if (!stream.holes.empty())  // what came never, or cannot be read, was not dropped
    stream.first_offset = std::min(stream.first_offset, stream.holes.front().offset);
}

}  // namespace

void restrict_to(std::vector<ObjectLog>& logs, const StoredQuery& query) {
  const auto of_host = [](OriginKind kind) { return is_of_host(kind) || kind == OriginKind::kDump; };
  for (ObjectLog& log : logs)
    std::erase_if(log.streams, [&](const ObjectStream& stream) {
      const StreamInfo& info = stream.info;
      const bool job = query.job.empty() || info.job == query.job || (info.job.empty() && of_host(info.kind));
      return !job || (!query.path.empty() && info.path != query.path);
    });
  std::erase_if(logs, [&](const ObjectLog& log) {
    return log.streams.empty() || (!query.host.empty() && log.host != query.host);
  });
}

void merge(std::vector<HostStream>& local, const std::vector<FoundObject>& objects,
           const std::vector<UnreadObject>& unread) {
  struct Merged {
    size_t at = 0;
    std::vector<Hole> holes;
    const FoundObject* last = nullptr;  // with the end of the source
  };
  const size_t own = local.size();
  std::map<std::pair<uint64_t, StreamId>, Merged> known;
  for (size_t i = 0; i < local.size(); ++i) {
    StoredStream& stream = local[i].stored;
    Merged& one = known[{stream.epoch, stream.state.info.id}];
    one = {i, std::exchange(stream.holes, {})};
    for (const Extent& extent : std::exchange(stream.extents, {})) add_extents(stream, extent, one.holes);
  }
  for (const FoundObject& found : objects)
    for (const ObjectLog& log : found.logs)
      for (const ObjectStream& of : log.streams) {
        const auto [place, fresh] = known.try_emplace({log.epoch, of.info.id});
        if (fresh) {
          place->second.at = local.size();
          HostStream& added = local.emplace_back();
          added.host = log.host;
          added.stored.epoch = log.epoch;
          added.stored.state.info = of.info;
        }
        StoredStream& stream = local[place->second.at].stored;
        if (of.size >= stream.state.size) place->second.last = &found;
        if (of.size > stream.state.size || (of.size == stream.state.size && of.ended))
          stream.state.ended = of.ended;
        stream.state.size = std::max(stream.state.size, of.size);
        Extent extent = of.extent;
        extent.segment = found.object;
        extent.is_object = true;
        add_extents(stream, extent, of.holes);
        place->second.holes.insert(place->second.holes.end(), of.holes.begin(), of.holes.end());
      }
  for (const auto& [key, one] : known) {
    StoredStream& stream = local[one.at].stored;
    finish(stream, one.holes, unread.empty() ? "" : unread.front().why);
    for (const UnreadObject& next : unread)
      if (one.last && !stream.state.ended && next.archive == one.last->archive &&
          next.number > one.last->number) {
        stream.holes.push_back({stream.state.size, 0, next.why});
        break;
      }
  }
  if (local.size() == own) return;
  std::ranges::stable_sort(local, [](const HostStream& a, const HostStream& b) {
    return std::tie(a.host, a.stored.state.info.opened_ns) < std::tie(b.host, b.stored.state.info.opened_ns);
  });
}

}  // namespace culprit::store::bucket
