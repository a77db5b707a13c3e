#include "ingest/ras_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/limits.h"
#include "base/read_budget.h"
#include "base/text.h"
#include "ingest/decompress.h"

namespace culprit::ingest {
namespace {

// Limits for a job with a known world size. Programs with several worlds (trainers, actors) share one RAS
// service, but a process knows only its own world: allow eight worlds, and at least the ranks of a small
// cluster. Then: communicators per rank, bytes per rank in an answer (600 in NCCL's layout), and in memory.
constexpr uint32_t kRasWorlds = 8;
constexpr uint32_t kRasWorldLeast = 1024;
constexpr uint32_t kRasCommsOfRank = 16;
constexpr size_t kRasBytesOfRank = 1024;
constexpr uint64_t kRasHeldOfRank = 256;

}  // namespace

std::string_view after_ras_replies(std::string_view session) {
  constexpr size_t kReplies = 8;  // more than the existing commands
  for (size_t i = 0; i < kReplies; ++i) {
    const size_t begin = std::min(session.find_first_not_of(" \t\r\n"), session.size());
    const size_t end = session.find('\n', begin);
    if (end == session.npos) return session;
    const std::string_view line = trim(session.substr(begin, end - begin));
    if (line != "OK" && !line.starts_with("SERVER PROTOCOL ")) return session;
    session.remove_prefix(end + 1);
  }
  return session;
}

RasBounds ras_bounds(uint32_t world) {
  RasBounds out;
  if (world == 0) return out;
  out.size =
      static_cast<uint32_t>(std::clamp<uint64_t>(uint64_t{world} * kRasWorlds, kRasWorldLeast, kRasSizeMost));
  out.ranks = std::min(out.ranks, size_t{out.size} * kRasCommsOfRank);
  out.comms = std::min(out.comms, out.ranks);
  out.bytes = std::min(out.bytes, (1 << 20) + out.ranks * kRasBytesOfRank);
  out.held = std::min(out.held, (1 << 20) + out.ranks * kRasHeldOfRank);
  return out;
}

Result<RasAnswer> parse_ras(const NextBytes& next, const RasBounds& bounds) {
  constexpr size_t kHead = 4096;  // replies to commands, and blanks
  std::string begin;
  std::string_view more;
  while (begin.size() < kHead && !(more = next()).empty()) begin += more;
  std::string_view answer = after_ras_replies(begin);
  const size_t first = answer.find_first_not_of(" \t\r\n");
  if (first == answer.npos) return fail(ErrorCode::kInvalid, "is empty");
  if (answer[first] == '{') return parse_ras_json(answer.substr(first), next, bounds);
  while (begin.size() <= std::min(limits::kRasTextBytes, bounds.bytes) && !(more = next()).empty())
    begin += more;
  answer = after_ras_replies(begin);
  return ReadBudget(answer.size(), bounds.held).run([&] { return parse_ras_text(answer, bounds); });
}

Result<RasAnswer> parse_ras(std::string_view answer) {
  return parse_ras([&] {
    const std::string_view part = answer.substr(0, limits::kPieceBytes);
    answer.remove_prefix(part.size());
    return part;
  });
}

Result<RasAnswer> read_ras(const SourceFile& file) {
  auto reader = Decompressor::open(file);
  if (!reader) return tl::unexpected(reader.error());
  std::string bytes;
  auto out = parse_ras([&]() -> std::string_view {
    bytes.clear();
    (void)reader->read_up_to(limits::kChunkBytes, bytes);
    return bytes;
  });
  if (reader->problem()) return fail(ErrorCode::kInvalid, file.path + ": " + reader->problem()->what);
  if (!out) return fail(out.error().code, fmt::format("{}: {}", file.path, out.error().text));
  return out;
}

}  // namespace culprit::ingest
