// An agent of another host that condenses one job: the text of its file in, blocks out.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/jobs/job_inputs.h"
#include "app/jobs/live_jobs.h"
#include "core/wire/inputs.h"
#include "live_feed.h"

namespace culprit::app {

class RemoteAgent : public LiveSink {
 public:
  explicit RemoteAgent(size_t number, uint64_t session = 1)
      : name_(fmt::format("node-{}", number)),
        parsing_(name_, {"/logs/"}),
        sources_("j", *this, parsing_),
        writer_(session),
        epoch_(number + 1),
        session_(session) {
    parsing_.use(shipped().get(), {});
    writer_.set_rules(shipped().get());
  }
  std::vector<core::Effect> step(core::Input& input, TimeNs now) override {
    writer_.add(input, now);
    return {};
  }
  void write(std::string_view text, TimeNs now) {
    LiveStream stream;
    stream.info.id = 1;
    stream.info.path = "/logs/" + name_ + "/train.log";
    Piece piece;
    piece.bytes = text;
    sources_.ingest(stream, piece, now);
  }
  // Lines of the trace socket.
  void trace(std::string_view text, TimeNs now) {
    LiveStream stream;
    stream.info.id = 2;
    stream.info.kind = OriginKind::kSocket;
    stream.info.path = "/run/trace.sock";
    TraceBatch batch = read_trace(stream, text, 0, false);
    sources_.ingest_trace(stream, batch, now);
  }
  wire::InputWriter& writer() { return writer_; }
  const std::string& name() const { return name_; }

  // The first block of a session declares its stream.
  RemoteBatch block(TimeNs now) {
    RemoteBatch out{name_, epoch_, {}};
    const StreamId id = static_cast<StreamId>(session_);
    if (offset_ == 0) {
      StreamInfo info;
      info.id = id;
      info.kind = OriginKind::kCondensed;
      info.job = "j";
      info.path = "condensed/1";
      out.batch.opened.push_back(info);
    }
    Piece piece;
    piece.stream = id;
    piece.offset = offset_;
    piece.bytes = writer_.flush(now);
    piece.time_ns = now;
    offset_ += piece.bytes.size();
    out.batch.pieces.push_back(std::move(piece));
    return out;
  }

 private:
  const std::string name_;
  LiveParsing parsing_;
  JobInputs sources_;
  wire::InputWriter writer_;
  const uint64_t epoch_, session_;
  uint64_t offset_ = 0;
};

}  // namespace culprit::app
