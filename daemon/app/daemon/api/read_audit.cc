#include "app/daemon/api/read_audit.h"

#include <fmt/format.h>

#include "base/text.h"

namespace culprit::app {
namespace {

constexpr TimeNs kMinuteNs = 60 * kNsPerSecond;
constexpr size_t kShownBytes = 300;  // limit of a shown job, host or path

std::string shown(const std::string& text) { return shorten(to_terminal(text), kShownBytes); }

std::string reader_name(const serve::Reader& reader) {
  return reader.uid ? fmt::format("uid {}", *reader.uid) : fmt::format("token {}", reader.token);
}

}  // namespace

std::vector<std::string> ReadAudit::on_read(const serve::EvidenceQuery& query, const serve::Reader& reader,
                                            TimeNs mono) {
  std::vector<std::string> out;
  for (auto it = readers_.begin(); it != readers_.end();) {
    if (mono - it->second.since < kMinuteNs) {
      ++it;
      continue;
    }
    if (it->second.left_out > 0)
      out.push_back(fmt::format("evidence: {} read {} more within a minute", it->first,
                                counted(it->second.left_out, "source")));
    it = readers_.erase(it);
  }
  const std::string name = reader_name(reader);
  if (!readers_.contains(name) && readers_.size() == kReaders) {
    if (unlisted_++ == 0) out.push_back(fmt::format("evidence: more than {} readers a minute", kReaders));
    return out;
  }
  if (readers_.size() < kReaders) unlisted_ = 0;
  Minute& minute = readers_[name];
  if (minute.since == kNoTime) minute.since = mono;
  std::string source = fmt::format("{}\n{}\n{}", query.job, query.host, query.path);
  if (minute.sources.contains(source)) return out;
  if (minute.sources.size() == kSourcesPerMinute) {
    ++minute.left_out;
    return out;
  }
  minute.sources.insert(std::move(source));
  out.push_back(fmt::format("evidence: {} reads {} of host {}, job {}", name, shown(query.path),
                            shown(query.host), shown(query.job)));
  return out;
}

}  // namespace culprit::app
