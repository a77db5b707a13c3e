// Input of LiveJobs, as the daemon would give it: streams of files, of a trace socket and of the kernel.
#pragma once

#include <fmt/format.h>

#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "app/jobs/live_jobs.h"
#include "app/offline/diagnose.h"
#include "model/report_json.h"

namespace culprit::app {

constexpr TimeNs kStart = 1'795'226'400 * kNsPerSecond;  // 2026-11-21 02:00:00

inline const std::shared_ptr<rules::Ruleset>& shipped() {
  static const auto set = rules::Ruleset::shipped();
  return set;
}

inline LiveOptions live_options() {
  LiveOptions out;
  out.host = "node-0";
  out.roots = {"/logs/"};
  out.rules = shipped();
  return out;
}

// Numbers streams and counts their evidence; keeps the batches, as the store does.
class Feed {
 public:
  explicit Feed(LiveJobs& live) : live_(live) {}

  StreamId open(OriginKind kind, const std::string& job, const std::string& path, uint32_t uid = 0) {
    StreamInfo info;
    info.id = next_++;
    info.kind = kind;
    info.job = job;
    info.path = path;
    info.uid = uid;
    info.boot_ns = kStart - 1000 * kNsPerSecond;
    PieceBatch batch;
    batch.opened.push_back(info);
    give(std::move(batch), kStart);
    return info.id;
  }

  // Of the next pieces; kNoTime: not known.
  TimeNs written_ns = kNoTime;

  void write(StreamId stream, std::string_view bytes, TimeNs now, bool ends = false) {
    Piece piece;
    piece.written_ns = written_ns;
    piece.stream = stream;
    piece.offset = offsets_[stream];
    piece.bytes = bytes;
    piece.time_ns = now;
    piece.ends = ends;
    offsets_[stream] += bytes.size();
    PieceBatch batch;
    batch.pieces.push_back(std::move(piece));
    give(std::move(batch), now);
  }

  void lose(StreamId stream, uint64_t bytes, TimeNs now) {
    Piece piece;
    piece.stream = stream;
    piece.offset = offsets_[stream];
    piece.time_ns = now;
    piece.gap = Gap{bytes, 0, "the file was truncated before it was read"};
    PieceBatch batch;
    batch.pieces.push_back(std::move(piece));
    give(std::move(batch), now);
  }

  // As the store gives it to a job that is read late.
  void read_late(LiveJobs& into) const {
    for (const PieceBatch& batch : batches_) {
      for (const StreamInfo& info : batch.opened) into.open_to_read(info);
      for (const Piece& piece : batch.pieces) into.read(piece);
    }
  }

  void replay(LiveJobs& into) const {
    for (const PieceBatch& batch : batches_) into.ingest(batch, 0);
  }

 private:
  void give(PieceBatch batch, TimeNs now) {
    live_.ingest(batch, now);
    batches_.push_back(std::move(batch));
  }

  LiveJobs& live_;
  StreamId next_ = 0;
  std::map<StreamId, uint64_t> offsets_;
  std::vector<PieceBatch> batches_;
};

inline std::string clock(TimeNs time) {
  const std::string text = format_time(time);  // "2026-11-21 02:12:09.123"
  return text.substr(0, 19) + "," + text.substr(20, 3);
}

// A line of progress; one per second.
inline std::string step_line(int64_t step) {
  return fmt::format("{} INFO step={} loss=2.{}\n", clock(kStart + step * kNsPerSecond), step, step % 10);
}

inline std::string xid_line(TimeNs time) {
  return fmt::format("{} kernel: NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus.\n",
                     clock(time));
}

// Removes the ids of diagnoses, which differ between the daemon and the report.
inline std::string without_ids(const std::string& report) {
  static const std::regex kIds("\"id\":(\"[^\"]*\"|null)");
  return std::regex_replace(report, kIds, "\"id\":0");
}

// The job's report as JSON; `none` without one.
inline std::string report_of(LiveJobs& jobs, const std::string& job, TimeNs now, std::string none = "") {
  const auto report = jobs.report(job, now);
  return report ? to_json(*report) : std::move(none);
}

inline size_t count(const std::vector<LiveEvent>& events, LiveEventKind kind) {
  size_t n = 0;
  for (const LiveEvent& e : events) n += e.kind == kind;
  return n;
}

inline const LiveEvent* first(const std::vector<LiveEvent>& events, LiveEventKind kind) {
  for (const LiveEvent& e : events)
    if (e.kind == kind) return &e;
  return nullptr;
}

// Events that are announced.
inline std::vector<LiveEvent> published(std::vector<LiveEvent> events) {
  std::erase_if(events, [](const LiveEvent& e) { return !e.publish; });
  return events;
}

// Four hosts with one file each; one host has lost a GPU.
inline std::vector<std::string> failing_files() {
  std::vector<std::string> out(4);
  for (size_t h = 0; h < out.size(); ++h) {
    for (int64_t s = 0; s < 60; ++s) out[h] += step_line(s);
    if (h == 2)
      out[h] +=
          xid_line(kStart + 60 * kNsPerSecond) + clock(kStart + 60 * kNsPerSecond) +
          " ERROR Traceback (most recent call last):\n" +
          "  File \"train.py\", line 3, in <module>\n    step()\nRuntimeError: CUDA error: unknown error\n";
  }
  return out;
}

inline std::string file_name(size_t host) { return fmt::format("node-{}/train.log", host); }

// The report of `culprit diagnose` for the same files.
inline std::string offline(const std::vector<std::string>& files) {
  namespace fs = std::filesystem;
  const fs::path root = fs::temp_directory_path() / fmt::format("culprit-live-{}", ::getpid());
  fs::remove_all(root);
  for (size_t h = 0; h < files.size(); ++h) {
    fs::create_directories((root / file_name(h)).parent_path());
    std::ofstream(root / file_name(h)) << files[h];
  }
  DiagnoseOptions options;
  options.paths = {root.string()};
  options.rules.site = false;
  ReadProgress progress;
  const auto result = diagnose(options, progress);
  BOOST_REQUIRE(result);
  fs::remove_all(root);
  std::string json = without_ids(to_json(result->report));
  const std::string there = root.string() + "/";
  for (size_t at; (at = json.find(there)) != json.npos;) json.replace(at, there.size(), "/logs/");
  return json;
}

}  // namespace culprit::app
