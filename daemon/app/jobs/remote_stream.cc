#include "app/jobs/remote_stream.h"

#include <fmt/format.h>

#include <utility>

#include "app/jobs/job_recognition.h"
#include "base/hash.h"

namespace culprit::app {
namespace {

constexpr size_t kReceived = 256;  // limit of a session's users with data

// Nearly all of an engine's time; the rest is rare.
bool is_bulk(const core::Input& input) {
  return std::holds_alternative<core::LogInput>(input) || std::holds_alternative<core::MetricInput>(input) ||
         std::holds_alternative<core::CommInput>(input) || std::holds_alternative<core::CommCondensed>(input);
}

}  // namespace

RemoteStream::RemoteStream(std::string host, StreamInfo info, wire::LineExpander::FindRule find,
                           wire::FormShapes& shapes)
    : host_(std::move(host)),
      info_(std::move(info)),
      job_(info_.job.empty() ? kDefaultJob : info_.job),
      find_(std::move(find)),
      shapes_(&shapes) {}

void RemoteStream::set_rules(wire::LineExpander::FindRule find) {
  find_ = find;
  if (reader_) reader_->set_rules(std::move(find));
}

LiveJob* RemoteStream::ingest(const Piece& piece, At at, const JobOf& job_of) {
  job_of_ = &job_of;
  at_ = at;
  took_ = nullptr;
  passed_over_ = false;
  const auto id = wire::InputReader::id_of(piece.bytes);
  if (id && id->number == 0) {
    reader_ = std::make_unique<wire::InputReader>(find_, shapes_);
    sources_.clear();
    received_.clear();
    received_by_ = {};
    reported_troubles_ = false;
  }
  const bool goes_on = reader_ && id && (id->number == 0 || id->session == reader_->session());
  Status read;
  if (!id)
    read = tl::unexpected(id.error());
  else if (!goes_on)
    read = fail(ErrorCode::kInvalid, "the beginning of its agent's records is no longer kept here");
  else
    read = reader_->read(piece.bytes, *this);
  if (!read) {
    ++blocks_lost_;
    reader_.reset();
    const uint64_t session = id ? id->session : 0;
    if (blocks_lost_ == 1 || session != broken_session_)
      report(
          fmt::format("{}: its findings are missing here until its agent starts again", read.error().text));
    broken_session_ = session;
  }
  report_troubles();
  if (LiveJob* job = job_for(false))
    job->on_agent_report(host_, at_.known_until_ns, at_.now, took_ != nullptr);
  job_of_ = nullptr;
  return took_;
}

LiveJob* RemoteStream::job_for(bool begins) { return (*job_of_)(job_, at_.known_until_ns, begins); }

void RemoteStream::report(const std::string& what) {
  unreported_ = what;
  LiveJob* job = job_for(false);
  if (!job) return;  // the next run that ingests data gets it
  job->ingest_remote(host_,
                     core::ProblemSeen{{"", std::nullopt, host_ + ": " + std::exchange(unreported_, {})}},
                     at_.known_until_ns);
}

// Once per session: the numbers grow with every block.
void RemoteStream::report_troubles() {
  if (reported_troubles_ || !reader_) return;
  for (const std::string& trouble : reader_->troubles()) {
    reported_troubles_ = true;
    report(trouble);
  }
}

// Each run gets the counts with its first data.
void RemoteStream::feed_received(LiveJob& job, TimeNs now) {
  if (received_by_ != std::pair<const LiveJob*, uint32_t>(&job, job.run())) received_fed_ = 0;
  received_by_ = {&job, job.run()};
  while (received_fed_ < received_.size()) job.ingest_remote(host_, received_[received_fed_++], now);
}

// Precedes the inputs, so that the run has a further user no later than that user's lines.
void RemoteStream::note_owner(LiveJob& job) {
  if (owner_of_ == &job && owner_run_ == job.run()) return;
  owner_of_ = &job;
  owner_run_ = job.run();
  job.add_remote_owner(info_.uid);
}

SourceId RemoteStream::open(SourceInfo info, TimeNs) {
  info.agent = host_;
  sources_.push_back({std::move(info), 0, nullptr, 0, {}});
  return static_cast<SourceId>(sources_.size() - 1);
}

std::optional<SourceId> RemoteStream::source_here(LiveJob& job, RemoteSource& source, TimeNs now) {
  if (source.of == &job && source.run == job.run()) return source.here;
  SourceInfo info = source.info;
  info.lines_before += source.lines;
  source.of = &job;
  source.run = job.run();
  source.here = job.open_remote(host_, std::move(info), now);
  return source.here;
}

void RemoteStream::on_input(core::Input input, TimeNs now) {
  if (const auto* received = std::get_if<core::ReceivedTraceCount>(&input)) {
    if (received_.size() < kReceived) received_.push_back(*received);
    return;
  }
  auto* lines = std::get_if<core::LogInput>(&input);
  // Reading problems alone may arrive after an end, so they begin no run.
  const bool begins = lines ? !lines->batch->lines.empty()
                            : !std::holds_alternative<core::ProblemSeen>(input) &&
                                  !std::holds_alternative<detect::RankExited>(input) &&
                                  !std::holds_alternative<core::NonLogRead>(input);
  LiveJob* job = job_for(begins);
  if (job) note_owner(*job);
  if (job && begins) took_ = job;
  if (at_.passes_over && is_bulk(input)) {
    passed_over_ = true;
    if (lines) sources_[lines->batch->source].lines += lines->batch->lines.size();
    return;
  }
  if (lines) {
    RemoteSource& source = sources_[lines->batch->source];
    const uint64_t count = lines->batch->lines.size();
    const auto here = job ? source_here(*job, source, now) : std::nullopt;
    source.lines += count;
    if (!here) return;
    lines->batch->source = *here;
    job->add_remote_bytes(lines->batch->range_bytes);
  }
  if (!job) return;
  feed_received(*job, now);
  if (!unreported_.empty()) report(std::exchange(unreported_, {}));
  if (auto* problem = std::get_if<core::ProblemSeen>(&input))
    problem->problem.what = host_ + ": " + problem->problem.what;
  // Local numbers of a process are unique only on its host.
  const auto own = [&](uint32_t rank) {
    return static_cast<uint32_t>(hash64(fmt::format("{}/{}", host_, rank)));
  };
  if (auto* seen = std::get_if<detect::ProgressSeen>(&input)) seen->rank = own(seen->rank);
  if (auto* seen = std::get_if<detect::PhaseSeen>(&input)) seen->rank = own(seen->rank);
  job->ingest_remote(host_, std::move(input), now);
}

void RemoteStream::ends(bool failed, TimeNs now) {
  LiveJob* job = job_for(false);
  if (!job) return;
  took_ = job;
  job->remote_ends(failed, now, at_.now);
}

void RemoteStream::alive(bool alive, TimeNs) {
  if (LiveJob* job = job_for(false)) job->hosts().alive(host_, alive);
}

}  // namespace culprit::app
