// Cost of an archive: MB of stored frames per CPU second, including validation; commits of many hosts with
// one small frame each; time to open an archive with many rows. `bench_archive FOLDER [MB HOSTS SEGMENTS]`.
#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>

#include "base/hash.h"
#include "store/archive.h"
#include "store/frames.h"
#include "store/spool.h"

using namespace culprit;
using namespace culprit::store;

namespace {

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}
double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class T>
T must(Result<T> result) {
  if (result) return std::move(*result);
  fmt::print(stderr, "{}\n", result.error().text);
  std::exit(1);
}
void must(const Status& status) {
  if (status) return;
  fmt::print(stderr, "{}\n", status.error().text);
  std::exit(1);
}

// Lines of a training log, with a realistic compression ratio.
std::string lines(uint64_t seed, size_t size) {
  std::string out;
  for (uint64_t i = 0; out.size() < size; ++i) {
    const uint64_t r = mix64(seed, i);
    out += fmt::format(
        "2026-03-01 12:{:02}:{:02},{:03} [rank{}] INFO train.py:{} iteration {} loss {:.6f} lr {:.3e} "
        "grad norm {:.4f}\n",
        i / 60 % 60, i % 60, r % 1000, r % 64, 100 + r % 7, seed * 1000 + i,
        static_cast<double>(r % 1000000) / 3e5, static_cast<double>(r % 977) * 1e-7,
        static_cast<double>(r % 9973) / 977);
  }
  out.resize(size);
  return out;
}

// Frames of one host's spool: `count` frames of `size` bytes.
std::vector<VerbatimFrame> frames_of(const std::string& folder, size_t count, size_t size, uint64_t& epoch) {
  auto spool = must(Spool::open(io::real_files(), {.folder = folder}, 1));
  epoch = spool->epoch();
  PieceBatch batch;
  StreamInfo info;
  info.id = 0, info.job = "job", info.path = "/var/log/train/rank0.log";
  batch.opened = {info};
  uint64_t at = 0;
  for (size_t i = 0; i < count; ++i) {
    batch.pieces.clear();
    for (size_t done = 0; done < size;) {
      Piece piece;
      piece.stream = 0, piece.offset = at;
      piece.bytes = lines(at, std::min<size_t>(size - done, 64 << 10));
      at += piece.bytes.size(), done += piece.bytes.size();
      batch.pieces.push_back(std::move(piece));
    }
    must(spool->append(batch, 1));
    (void)must(spool->commit(1));
    batch.opened.clear();
  }
  must(spool->sync());
  FrameReader reader(io::real_files(), folder, epoch);
  return must(reader.read({0, spool->synced_sequence(), size_t{1} << 40}));
}

void throughput(const std::string& folder, size_t megabytes) {
  LogOrigin origin{0, "host", LogKind::kEvidence};
  const auto frames = frames_of(folder + "/spool", megabytes * 4, 256 << 10, origin.epoch);
  auto archive = must(Archive::open(io::real_files(), {.folder = folder + "/bulk"}));
  (void)must(archive->begin(origin, 1));
  uint64_t stored = 0, raw = 0;
  const double cpu = cpu_seconds();
  for (size_t i = 0; i < frames.size(); ++i) {
    must(archive->append(frames[i].bytes, 1));
    stored += frames[i].bytes.size(), raw += frames[i].header.raw_size;
    if (i % 64 == 63) (void)must(archive->commit(1));
  }
  (void)must(archive->commit(1));
  const double spent = cpu_seconds() - cpu;
  fmt::print("bulk: {:.1f} MB stored, {:.1f} MB of logs; {:.0f} MB stored/CPU s, {:.0f} MB of logs/CPU s\n",
             static_cast<double>(stored) / 1e6, static_cast<double>(raw) / 1e6,
             static_cast<double>(stored) / 1e6 / spent, static_cast<double>(raw) / 1e6 / spent);
}

void commits(const std::string& folder, size_t hosts) {
  constexpr size_t kRounds = 10;
  std::vector<LogOrigin> origins;
  std::vector<std::vector<VerbatimFrame>> frames;
  for (size_t h = 0; h < hosts; ++h) {
    LogOrigin origin{0, fmt::format("host{}", h), LogKind::kEvidence};
    frames.push_back(frames_of(fmt::format("{}/spools/{}", folder, h), kRounds, 400, origin.epoch));
    origins.push_back(origin);
  }
  auto archive = must(Archive::open(io::real_files(), {.folder = folder + "/small"}));
  for (const LogOrigin& origin : origins) (void)must(archive->begin(origin, 1));
  const double cpu = cpu_seconds(), wall = wall_seconds();
  for (size_t round = 0; round < kRounds; ++round) {
    for (const auto& of_host : frames) must(archive->append(of_host[round].bytes, 1));
    (void)must(archive->commit(1));
  }
  const double spent = (cpu_seconds() - cpu) / kRounds, passed = (wall_seconds() - wall) / kRounds;
  fmt::print("small: {} hosts, a frame each: {:.1f} ms of CPU and {:.1f} ms for a commit of all\n", hosts,
             spent * 1e3, passed * 1e3);
}

// As many rows as in a full archive; its segment files have only a header.
void opening(const std::string& folder, size_t segments) {
  constexpr size_t kHosts = 1000;
  const std::string path = folder + "/rows";
  must(Archive::open(io::real_files(), {.folder = path}))->stats();
  sqlite3* db = nullptr;
  if (sqlite3_open((path + "/archive.db").c_str(), &db) != SQLITE_OK) std::exit(1);
  const std::string sql = fmt::format(
      "BEGIN; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {0}) INSERT INTO logs "
      "SELECT i, i, 'host' || i, 0, 1000 FROM n;"
      "INSERT INTO streams SELECT log, s.value, 0, 'job', '/log/' || s.value, NULL, NULL, 1, 1, 100, 0, 0 "
      "FROM "
      "logs, json_each('[0,1,2,3,4,5,6,7]') AS s;"
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {1}) INSERT INTO segments "
      "SELECT "
      "i, 1, 64, 1 FROM n;"
      "INSERT INTO parts SELECT segment, log, 1 FROM logs, segments;"
      "INSERT INTO extents SELECT log, segment, stream, 1, 2, 64, 64 FROM streams CROSS JOIN segments; "
      "COMMIT",
      kHosts, segments);
  char* error = nullptr;
  if (sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &error) != SQLITE_OK) {
    fmt::print(stderr, "{}\n", error);
    std::exit(1);
  }
  sqlite3_close(db);
  for (uint64_t i = 1; i <= segments; ++i) {
    auto file = must(io::real_files().open(path + "/" + segment_name(i), io::OpenFor::kCreate));
    must(file->append(encode(SegmentHeader{kSegmentVersion, 1, i, 1, SegmentKind::kEvidence})));
  }
  const double cpu = cpu_seconds(), wall = wall_seconds();
  auto archive = must(Archive::open(io::real_files(), {.folder = path}));
  const double opened = cpu_seconds() - cpu, passed = wall_seconds() - wall;
  const double asked = cpu_seconds();
  const auto retained = must(archive->stored({.host = "host7", .job = "job"}));
  fmt::print("open: {} segments, {} extents: {:.0f} ms of CPU, {:.0f} ms; one host's {} sources: {:.1f} ms\n",
             segments, segments * kHosts * 8, opened * 1e3, passed * 1e3, retained.size(),
             (cpu_seconds() - asked) * 1e3);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const auto number = [&](int i, size_t otherwise) {
    return argc > i ? std::strtoull(argv[i], nullptr, 10) : otherwise;
  };
  const std::string folder = std::string(argv[1]) + "/bench_archive";
  std::filesystem::remove_all(folder);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  throughput(folder, number(2, 512));
  commits(folder, number(3, 1000));
  opening(folder, number(4, 800));
  std::filesystem::remove_all(folder);
}
