#include "app/daemon/remote_stream.h"

#include <fmt/format.h>

#include <utility>

#include "app/daemon/job_recognition.h"
#include "base/hash.h"

namespace culprit::app {

RemoteStream::RemoteStream(std::string host, StreamInfo info, logs::Expander::FindRule find)
    : host_(std::move(host)),
      info_(std::move(info)),
      job_(info_.job.empty() ? kDefaultJob : info_.job),
      find_(std::move(find)) {}

void RemoteStream::set_rules(logs::Expander::FindRule find) {
  find_ = find;
  if (reader_) reader_->set_rules(std::move(find));
}

LiveJob* RemoteStream::take(const Piece& piece, At at, const JobOf& job_of) {
  job_of_ = &job_of;
  at_ = at;
  took_ = nullptr;
  const auto id = core::InputReader::id_of(piece.bytes);
  if (id && id->number == 0) {
    reader_ = std::make_unique<core::InputReader>(find_);
    sources_.clear();
    told_troubles_ = false;
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
      tell(fmt::format("{}: its findings are missing here until its agent starts again", read.error().text));
    broken_session_ = session;
  }
  tell_troubles();
  if (LiveJob* job = job_for(false)) job->heard(host_, at_.told_ns, at_.now, took_ != nullptr);
  job_of_ = nullptr;
  return took_;
}

LiveJob* RemoteStream::job_for(bool begins) { return (*job_of_)(job_, at_.told_ns, begins); }

void RemoteStream::tell(const std::string& what) {
  untold_ = what;
  LiveJob* job = job_for(false);
  if (!job) return;  // with the next run that takes something
  job->take_remote(host_, core::ProblemSeen{{"", std::nullopt, host_ + ": " + std::exchange(untold_, {})}},
                   at_.told_ns);
}

// Once in a session: the numbers grow with every block.
void RemoteStream::tell_troubles() {
  if (told_troubles_ || !reader_) return;
  for (const std::string& trouble : reader_->troubles()) {
    told_troubles_ = true;
    tell(trouble);
  }
}

SourceId RemoteStream::open(SourceInfo info, TimeNs) {
  sources_.push_back({std::move(info), 0, nullptr, 0, {}});
  return static_cast<SourceId>(sources_.size() - 1);
}

std::optional<SourceId> RemoteStream::source_here(LiveJob& job, Source& source, TimeNs now) {
  if (source.of == &job && source.run == job.run()) return source.here;
  SourceInfo info = source.info;
  info.lines_before += source.lines;
  source.of = &job;
  source.run = job.run();
  source.here = job.open_remote(host_, std::move(info), now);
  return source.here;
}

void RemoteStream::take(core::Input input, TimeNs now) {
  auto* lines = std::get_if<core::LogInput>(&input);
  // What tells of reading alone comes behind an end too.
  const bool begins = lines ? !lines->batch->lines.empty()
                            : !std::holds_alternative<core::ProblemSeen>(input) &&
                                  !std::holds_alternative<detect::RankExited>(input) &&
                                  !std::holds_alternative<core::ReadBeside>(input);
  LiveJob* job = job_for(begins);
  if (job && begins) took_ = job;
  if (lines) {
    Source& source = sources_[lines->batch->source];
    const uint64_t count = lines->batch->lines.size();
    const auto here = job ? source_here(*job, source, now) : std::nullopt;
    source.lines += count;
    if (!here) return;
    lines->batch->source = *here;
    job->add_remote_bytes(lines->batch->range_bytes);
  }
  if (!job) return;
  if (!untold_.empty()) tell(std::exchange(untold_, {}));
  if (auto* problem = std::get_if<core::ProblemSeen>(&input))
    problem->problem.what = host_ + ": " + problem->problem.what;
  // Numbers that are a process's own are so on its host only.
  const auto own = [&](uint32_t rank) {
    return static_cast<uint32_t>(hash64(fmt::format("{}/{}", host_, rank)));
  };
  if (auto* seen = std::get_if<detect::ProgressSeen>(&input)) seen->rank = own(seen->rank);
  if (auto* seen = std::get_if<detect::PhaseSeen>(&input)) seen->rank = own(seen->rank);
  job->take_remote(host_, std::move(input), now);
}

void RemoteStream::ends(bool failed, TimeNs now) {
  LiveJob* job = job_for(false);
  if (!job) return;
  took_ = job;
  job->remote_ends(failed, now, at_.now);
}

void RemoteStream::alive(bool alive, TimeNs) {
  if (LiveJob* job = job_for(false)) job->remote_alive(host_, alive);
}

}  // namespace culprit::app
