// Turns pieces of this host's sources into events for plugins (culprit/plugin.h): lines of logs and of the
// kernel, metrics, steps, stacks and communication records. Reads only the kinds that a plugin requests.
//
// One thread: that of the plugins. Owns the state of unfinished lines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "app/jobs/job_inputs.h"
#include "core/logs/line_feed.h"
#include "core/logs/line_parser.h"
#include "model/piece.h"
#include "plughost/events.h"

namespace culprit::app {

class PluginFeed {
 public:
  explicit PluginFeed(std::string host);

  // Appends the events of these kinds (CULPRIT_BIT), oldest first per source.
  void add(const PieceBatch& batch, uint64_t kinds, plughost::EventWriter& out);

 private:
  struct Source {
    LiveStream live;
    SourceInfo info;
    logs::LineFeed lines;
  };
  void add_lines(Source& source, const Piece& piece, plughost::EventWriter& out);
  void add_host_lines(Source& source, const Piece& piece, plughost::EventWriter& out);
  void add_trace(Source& source, const Piece& piece, uint64_t kinds, plughost::EventWriter& out);
  void add_records(const Source& source, const Piece& piece, plughost::EventWriter& out);
  plughost::EventHead head_of(const Source& source, uint32_t kind, TimeNs time) const;

  const std::string host_;
  std::unordered_map<StreamId, Source> sources_;
  logs::LineParser parser_;
  logs::LogBatch batch_;
};

// The variable parts of a message, in order: the text in place of each "<*>" of its form. Views into the
// message; empty if the form does not determine a part.
std::vector<std::string_view> parameters_of(std::string_view form, std::string_view message);

}  // namespace culprit::app
