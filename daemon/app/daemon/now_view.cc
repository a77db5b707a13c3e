#include "app/daemon/now_view.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "app/daemon/daemon_api.h"
#include "base/text.h"

namespace culprit::app {
namespace {

constexpr TimeNs kRecent = 24 * 3600 * kNsPerSecond;
constexpr size_t kPlaces = 3, kRanks = 8;  // named in a row; the rest is counted

std::string lower_of(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c += 'a' - 'A';
  return out;
}

std::string string_of(const json& item, const char* name) {
  const auto at = item.find(name);
  return at != item.end() && at->is_string() ? at->get<std::string>() : "";
}

TimeNs time_of(const json& item, const char* name) {
  const auto at = item.find(name);
  return at != item.end() && at->is_number_integer() ? at->get<TimeNs>() : kNoTime;
}

bool flag_of(const json& item, const char* name) {
  const auto at = item.find(name);
  return at != item.end() && at->is_boolean() && at->get<bool>();
}

// A run with the rows that may be its verdict.
struct NowRow {
  const json* job = nullptr;
  std::vector<const store::DiagnosisRow*> may_be;
  int urgency = 0;
  TimeNs time_ns = kNoTime;
};

bool has_verdict(const json& job) { return !string_of(job, "verdict").empty(); }

// 0 is the most urgent.
int urgency_of(const json& job, TimeNs now) {
  const std::string state = string_of(job, "state");
  const bool running = state == "running", failed = state == "failed";
  if (running && has_verdict(job)) return 0;
  if (running && flag_of(job, "hangs")) return 1;
  const TimeNs end = std::max(time_of(job, "ended_ns"), time_of(job, "last_ns"));
  if ((failed || has_verdict(job)) && end != kNoTime && now - end < kRecent) return 2;
  if (running) return 3;
  return failed || has_verdict(job) ? 4 : 5;
}

bool is_in(const json& job, const std::string& state) {
  if (state == "verdict") return has_verdict(job);
  return state.empty() || string_of(job, "state") == state;
}

// Whether each word is in the job's own texts or in those of its verdict.
bool has_words(const NowRow& row, const std::vector<std::string>& words) {
  if (words.empty()) return true;
  const std::string own = lower_of(string_of(*row.job, "id") + " " + string_of(*row.job, "state") + " " +
                                   string_of(*row.job, "verdict") + " " + string_of(*row.job, "note"));
  std::string of_verdict;
  for (const store::DiagnosisRow* d : row.may_be) of_verdict += lower_of(d->json);
  return std::ranges::all_of(words, [&](const std::string& word) {
    return own.find(word) != own.npos || of_verdict.find(word) != of_verdict.npos;
  });
}

json list_of(const json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_array() ? *at : json::array();
}

json first_of(const json& list, size_t most) {
  json out = json::array();
  for (size_t i = 0; i < std::min(most, list.size()); ++i) out.push_back(list[i]);
  return out;
}

json place_row(const json& place) {
  const json ranks = list_of(place, "ranks");
  return {{"host", string_of(place, "host")},
          {"ranks", first_of(ranks, kRanks)},
          {"ranks_all", ranks.size()},
          {"devices", first_of(list_of(place, "devices"), kRanks)}};
}

json verdict_row(const store::DiagnosisRow& row, const json& d) {
  json places = json::array();
  const json hosts = list_of(d, "hosts");
  for (size_t i = 0; i < std::min(kPlaces, hosts.size()); ++i)
    if (hosts[i].is_object()) places.push_back(place_row(hosts[i]));
  return {{"id", row.id},
          {"title", string_of(d, "title")},
          {"confidence", d.value("confidence", json())},
          {"category", string_of(d, "category")},
          {"component", string_of(d, "component")},
          {"symptom", string_of(d, "symptom")},
          {"state", row.state},
          {"settled", d.value("settled", json(true))},
          {"since_ns", time_or_null(row.first_ns)},
          {"hosts", std::move(places)},
          {"hosts_all", hosts.size()},
          {"action", d.value("action", json::object()).value("kind", json())},
          {"remedy", shorten(string_of(d, "remedy"), 200)},
          {"alone", d.contains("said_by")}};
}

// The row whose title the run's verdict has.
json verdict_of(const NowRow& row) {
  const std::string title = string_of(*row.job, "verdict");
  if (title.empty()) return nullptr;
  for (const store::DiagnosisRow* one : row.may_be) {
    const json d = json::parse(one->json, nullptr, false);
    if (d.is_object() && string_of(d, "title") == title) return verdict_row(*one, d);
  }
  return {{"title", title}};
}

json item_of(const NowRow& row) {
  json out = json::object();
  for (const char* name : {"id", "run", "state", "well", "hangs", "hosts", "ranks", "iteration", "first_ns",
                           "last_ns", "ended_ns", "note"})
    if (const auto at = row.job->find(name); at != row.job->end() && !at->is_null()) out[name] = *at;
  out["urgency"] = row.urgency;
  out["verdict"] = verdict_of(row);
  return out;
}

}  // namespace

json now_page(const json& jobs, const std::vector<store::DiagnosisRow>& verdicts,
              const serve::NowQuery& query, TimeNs now) {
  std::map<std::pair<std::string_view, uint32_t>, std::vector<const store::DiagnosisRow*>> by_run;
  for (const store::DiagnosisRow& row : verdicts) by_run[{row.job, row.run}].push_back(&row);
  std::vector<std::string> words;
  const std::string asked = lower_of(query.words);
  for (const std::string_view word : split(asked, ' '))
    if (!word.empty()) words.emplace_back(word);
  std::map<std::string, size_t> counts = {
      {"all", 0}, {"running", 0}, {"failed", 0}, {"ended", 0}, {"verdict", 0}};
  std::vector<NowRow> rows;
  for (const json& job : jobs) {
    if (!job.is_object()) continue;
    NowRow row{&job, {}, urgency_of(job, now), time_of(job, "first_ns")};
    const std::string id = string_of(job, "id");
    if (const auto at = by_run.find({id, job.value("run", 0u)}); at != by_run.end()) row.may_be = at->second;
    if (!has_words(row, words)) continue;
    ++counts["all"];
    if (const auto state = counts.find(string_of(job, "state")); state != counts.end()) ++state->second;
    if (has_verdict(job)) {
      ++counts["verdict"];
      if (!row.may_be.empty()) row.time_ns = row.may_be.front()->first_ns;
    }
    if (is_in(job, query.state)) rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const NowRow& a, const NowRow& b) {
    return a.urgency != b.urgency ? a.urgency < b.urgency : a.time_ns > b.time_ns;
  });
  json items = json::array();
  for (size_t i = query.from; i < std::min<size_t>(rows.size(), size_t{query.from} + query.limit); ++i)
    items.push_back(item_of(rows[i]));
  return {{"items", std::move(items)}, {"total", rows.size()}, {"counts", counts}};
}

void DaemonApi::live_jobs(std::function<void(std::shared_ptr<json>)> done) {
  auto items = std::make_shared<json>(json::array());
  parts_.engine->query(
      [items](LiveJobs& live, TimeNs) {
        for (const LiveJobSummary& job : live.jobs()) {
          json item = json::parse(to_json(job), nullptr, false);
          item["ended_ns"] = job.state == JobState::kRunning ? json(nullptr) : time_or_null(job.last_ns);
          items->push_back(std::move(item));
        }
      },
      [items, done = std::move(done)] { done(items); });
}

// A page must not wait until an engine has read a large batch: then it gets what the engine answered last.
void DaemonApi::now(const serve::NowQuery& query, Answer answer) {
  now_jobs_.get([this, query, answer = std::move(answer)](const std::shared_ptr<const json>& live,
                                                          bool late) {
    const auto items = std::make_shared<json>(live ? *live : json::array());
    add_stored_jobs(items, [this, items, query, late, answer] {
      const auto out = std::make_shared<std::string>();
      parts_.recorder->query(
          [out, items, query, now = env_.now(io::Clock::kWall), late](store::Spool&, store::Index& index) {
            const auto found = index.verdicts(kNowVerdicts);
            const auto verdicts = found ? *found : std::vector<store::DiagnosisRow>();
            json page = now_page(*items, verdicts, query, now);
            page["late"] = late;
            *out = dump(page);
          },
          [out, answer] { answer(std::move(*out)); });
    });
  });
}

}  // namespace culprit::app
