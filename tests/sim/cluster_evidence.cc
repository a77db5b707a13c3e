#include "cluster_evidence.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/hash.h"
#include "store/bucket/merge.h"
#include "store/bucket/object.h"
#include "store/bucket/sha256.h"
#include "store/evidence.h"
#include "store/record.h"

namespace culprit::sim {
namespace {

using store::postgres::ObjectRow;

constexpr uint64_t kSegmentBytes = 24 << 10;
constexpr StreamId kStream = 1;

StreamInfo stream_of(const Agent& agent) {
  StreamInfo out;
  out.id = kStream;
  out.job = agent.job;
  out.path = "/log/" + agent.host;
  out.opened_ns = 5;
  return out;
}

class BytesInMemory final : public io::FileHandle {
 public:
  explicit BytesInMemory(std::string_view bytes) : bytes_(bytes) {}
  Result<size_t> read_at(char* out, size_t size, uint64_t offset) override {
    return offset > bytes_.size() ? 0 : bytes_.copy(out, size, offset);
  }
  Result<io::FileStatus> status() override { return io::FileStatus{.size = bytes_.size()}; }
  Status append(std::string_view) override { return fail(ErrorCode::kDenied, "read only"); }
  Status truncate(uint64_t) override { return fail(ErrorCode::kDenied, "read only"); }
  Status sync() override { return {}; }

 private:
  const std::string_view bytes_;
};

}  // namespace

std::string evidence_of(uint64_t epoch, uint64_t from, uint64_t size) {
  std::string out;
  for (uint64_t word = from / 8; out.size() < size + 8; ++word) {
    const uint64_t bits = mix64(epoch, word);
    for (int i = 0; i < 8; ++i) out += static_cast<char>('a' + (bits >> (8 * i)) % 23);
  }
  return out.substr(from % 8, size);
}

// ---- archive

SimArchive::SimArchive(SimFiles& files, uint64_t id)
    : files_(files), id_(id), folder_(fmt::format("/archive/{}", hex64(id))) {}

void SimArchive::write(std::string_view bytes) {
  CULPRIT_CHECK(file_->append(bytes).has_value());
  size_ += bytes.size();
  parts_.back().size = size_;
}

void SimArchive::ensure_segment(TimeNs now) {
  if (file_ && size_ < kSegmentBytes) return;
  ++segment_;
  size_ = 0;
  auto file = files_.open(folder_ + "/" + store::segment_name(segment_), io::OpenFor::kCreate);
  CULPRIT_CHECK(file.has_value());
  file_ = std::move(*file);
  parts_.push_back({segment_, 0});
  write(encode(
      store::SegmentHeader{store::kSegmentVersion, id_, segment_, now, store::SegmentKind::kEvidence}));
}

void SimArchive::put_own(const Agent& agent, Log& log, std::string_view raw, TimeNs now) {
  store::FrameHeader header;
  header.kind = store::FrameKind::kOrigin;
  header.epoch = agent.epoch;
  header.segment = segment_;
  header.sequence = log.sequence;
  header.time_ns = now;
  write(pack_frame(header, raw));
}

void SimArchive::append(const Agent& agent, uint64_t first, uint64_t last, TimeNs now) {
  Log& log = logs_[agent.epoch];
  for (uint64_t sequence = std::max(first, log.sequence + 1); sequence <= last; ++sequence) {
    const AgentFrame& frame = agent.frames[sequence - 1];
    ensure_segment(now);
    if (log.declared_in != segment_) {
      // A log that begins here begins with its agent's checkpoint.
      if (!log.begun) log.size = frame.offset;
      std::string raw;
      store::put_origin(raw, {0, log.begun ? log.sequence : sequence - 1, agent.host});
      store::put_stream(raw, stream_of(agent));
      store::Position position;
      position.size = log.size;
      store::put_position(raw, kStream, position);
      put_own(agent, log, raw, now);
      log.declared_in = segment_;
    }
    if (log.begun && sequence > log.sequence + 1) {
      std::string raw;
      store::put_skipped(raw, {log.sequence + 1, sequence - 1, now, "sent to another member"});
      put_own(agent, log, raw, now);
    }
    Piece piece;
    piece.stream = kStream;
    piece.offset = frame.offset;
    piece.bytes = evidence_of(agent.epoch, frame.offset, frame.bytes);
    piece.time_ns = now;
    std::string raw;
    store::put_piece(raw, piece);
    store::FrameHeader header;
    header.epoch = agent.epoch;
    header.segment = 1;
    header.sequence = sequence;
    header.time_ns = now;
    header.stream_mask = store::stream_bit(kStream);
    copies_.push_back({agent.epoch, sequence, segment_, size_});
    write(pack_frame(header, raw));
    log.begun = true;
    log.sequence = sequence;
    log.size = frame.offset + frame.bytes;
  }
}

void SimArchive::commit() { committed_ = parts_; }

void SimArchive::drop_oldest() {
  if (committed_.size() < 3) return;
  (void)files_.remove(folder_ + "/" + store::segment_name(first_segment_++));
  parts_.erase(parts_.begin());
  committed_.erase(committed_.begin());
}

// ---- reading

namespace {

// Objects by row, opened as far as they are what their row says.
struct Opened {
  std::vector<std::string_view> bytes;
  std::vector<uint64_t> numbers;
  std::vector<store::bucket::FoundObject> found;
  std::vector<store::bucket::UnreadObject> unread;
  std::map<std::string, std::vector<const ObjectRow*>> rows;  // by archive
  std::set<const ObjectRow*> sound;
};

Opened open_objects(const Database& database, const Stored& stored, Account& account) {
  using namespace store::bucket;
  Opened out;
  for (auto row = database.objects.rbegin(); row != database.objects.rend(); ++row) {
    out.rows[row->archive].push_back(&*row);
    const auto at = stored.objects.find(row->key);
    std::string why;
    if (at == stored.objects.end())
      why = row->key + " is missing";
    else if (hex(sha256(at->second)) != row->sha256)
      why = row->key + " has another SHA-256";
    const auto index = why.empty() ? parse_index(std::string_view(at->second).substr(row->index_at))
                                   : Result<ObjectIndex>(fail(ErrorCode::kInvalid, why));
    if (!index) {
      if (!stored.lies.contains(row->key)) account.broken(index.error().text);
      account.count("object that cannot be read");
      out.unread.push_back({row->archive, row->number, index.error().text});
      continue;
    }
    out.sound.insert(&*row);
    out.found.push_back({out.bytes.size(), row->archive, row->number, index->logs});
    out.bytes.push_back(std::string_view(at->second).substr(0, row->index_at));
    out.numbers.push_back(row->number);
  }
  return out;
}

// Which acknowledged bytes some sound object has.
std::vector<bool> expected_of(const Agent& agent, const std::vector<std::unique_ptr<SimArchive>>& archives,
                              const Opened& opened, Account& account) {
  std::vector<bool> out(agent.bytes());
  for (const auto& archive : archives) {
    const auto rows = opened.rows.find(hex64(archive->id()));
    for (const Copy& copy : archive->copies()) {
      if (copy.agent != agent.epoch) continue;
      const AgentFrame& frame = agent.frames[copy.sequence - 1];
      const std::pair place(copy.segment, copy.at);
      const ObjectRow* in = nullptr;
      if (rows != opened.rows.end())
        for (const ObjectRow* row : rows->second) {
          if (place < std::pair(row->from_segment, row->from_at) ||
              place >= std::pair(row->to_segment, row->to_at))
            continue;
          if (in != nullptr)
            account.broken(
                fmt::format("frame {} of {} is in {} and {}", copy.sequence, agent.host, in->key, row->key));
          in = row;
        }
      if (in == nullptr && !archive->wiped && !archive->has_dropped(copy.segment))
        account.broken(fmt::format("frame {} of {} is in no object of archive {}", copy.sequence, agent.host,
                                   hex64(archive->id())));
      if (in == nullptr || !opened.sound.contains(in)) continue;
      for (uint64_t i = 0; i < frame.bytes; ++i) out[frame.offset + i] = true;
    }
  }
  return out;
}

}  // namespace

void check_reading(const std::vector<Agent>& agents, const std::vector<std::unique_ptr<SimArchive>>& archives,
                   const Database& database, const Stored& stored, Account& account) {
  const Opened opened = open_objects(database, stored, account);
  std::vector<store::HostStream> streams;
  store::bucket::merge(streams, opened.found, opened.unread);
  SimFiles none(1);
  for (const Agent& agent : agents) {
    const std::vector<bool> expected = expected_of(agent, archives, opened, account);
    const std::string sent = evidence_of(agent.epoch, 0, agent.bytes());
    uint64_t at = 0, read = 0, missing = 0;
    bool ends_early = !opened.unread.empty();
    const auto broken = [&](std::string_view what, uint64_t where) {
      account.broken(fmt::format("{}: byte {}: {}", agent.host, where, what));
    };
    store::EvidenceSink sink;
    sink.bytes = [&](std::string_view bytes) {
      for (const char c : bytes) {
        if (at >= sent.size() || c != sent[at]) return broken("not what was sent", at), false;
        ++at, ++read;
      }
      return true;
    };
    sink.gap = [&](const store::EvidenceGap& gap) {
      for (uint64_t i = 0; i < gap.in_range; ++i, ++at, ++missing)
        if (at < expected.size() && expected[at])
          return broken("an object has it, and " + gap.gap.reason, at);
      if (gap.in_range == 0) ends_early = true;
    };
    size_t found = 0;
    for (const store::HostStream& stream : streams) {
      if (stream.host != agent.host) continue;
      ++found;
      store::EvidenceRange range{{stream.stored}};
      range.open_object = [&](uint64_t n) {
        return store::SegmentReader::open(std::make_unique<BytesInMemory>(opened.bytes.at(n)),
                                          opened.numbers.at(n));
      };
      if (!store::EvidenceReader(none, "/none").read(range, sink)) broken("it cannot be read", at);
    }
    if (found > 1) broken("it is in two sources", 0);
    for (uint64_t i = at; i < agent.acknowledged_bytes(); ++i) {
      if (expected[i]) broken("an object has it, and it is not read", i);
      if (!ends_early) broken("it was acknowledged, and is neither read nor in a gap", i);
      ++missing;
    }
    account.acknowledged += agent.acknowledged_bytes();
    account.read += read;
    account.gap_bytes += missing;
  }
}

}  // namespace culprit::sim
