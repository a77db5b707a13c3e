#include "app/daemon/recover/published.h"

#include <algorithm>
#include <set>
#include <utility>

namespace culprit::app {
namespace {

template <class Number>
Number listed_number(const nlohmann::json& item, const char* name, Number otherwise) {
  const auto at = item.find(name);
  return at != item.end() && at->is_number_integer() ? at->get<Number>() : otherwise;
}

}  // namespace

RunFacts facts_of(const nlohmann::json& listed) {
  RunFacts out;
  out.first_ns = listed_number<TimeNs>(listed, "first_ns", kNoTime);
  out.last_ns = listed_number<TimeNs>(listed, "last_ns", kNoTime);
  out.hosts = listed_number<uint64_t>(listed, "hosts", 0);
  out.lines = listed_number<uint64_t>(listed, "lines", 0);
  out.running = listed.value("state", nlohmann::json()) == "running";
  out.has_verdict = listed.value("verdict", nlohmann::json()).is_string();
  return out;
}

std::optional<PublishedReport> published_report(store::postgres::ReportRow row) {
  PublishedReport out;
  out.listed = nlohmann::json::parse(row.listed, nullptr, false);
  if (!out.listed.is_object() || !out.listed.value("id", nlohmann::json()).is_string()) return std::nullopt;
  out.facts = facts_of(out.listed);
  out.row = std::move(row);
  return out;
}

Coverage coverage(const RunFacts& own, const RunFacts& published, Asking asking) {
  if (!own.running && own.last_ns < published.first_ns) return Coverage::kOlder;
  if (!published.running && own.first_ns > published.last_ns) return Coverage::kAsGood;
  if (!asking.is_owner) return Coverage::kBehind;
  if (asking.waited && published.running) return Coverage::kAsGood;
  if (own.has_verdict) return Coverage::kAsGood;
  const bool has_all =
      own.hosts >= published.hosts && (!published.has_verdict || own.lines >= published.lines);
  return has_all ? Coverage::kAsGood : Coverage::kBehind;
}

void PublishedReports::remove(std::map<std::string, PublishedReport>::iterator at) {
  bytes_ -= at->second.bytes();
  reports_.erase(at);
}

void PublishedReports::put(PublishedReport report) {
  if (const auto at = reports_.find(report.row.job); at != reports_.end()) remove(at);
  bytes_ += report.bytes();
  const std::string key = report.row.job;
  reports_.emplace(key, std::move(report));
  while (bytes_ > kBytesMost && reports_.size() > 1) {
    remove(std::ranges::min_element(reports_, {}, [](const auto& one) { return one.second.row.as_of_ns; }));
    ++dropped_;
  }
}

void PublishedReports::keep_only(const std::vector<store::postgres::ReportStore::Key>& keys) {
  std::set<std::string_view> there;
  for (const auto& key : keys) there.insert(key.job);
  for (auto at = reports_.begin(); at != reports_.end();) {
    const auto next = std::next(at);
    if (!there.contains(at->first)) remove(at);
    at = next;
  }
}

const PublishedReport* PublishedReports::find(const std::string& job, std::optional<uint32_t> uid) const {
  const auto at = reports_.find(store::postgres::report_key(job));
  return at == reports_.end() || !may_see(at->second, uid) ? nullptr : &at->second;
}

}  // namespace culprit::app
