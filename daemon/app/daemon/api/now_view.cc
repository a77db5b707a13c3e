#include "app/daemon/api/now_view.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "app/daemon/api/daemon_api.h"
#include "base/text.h"

namespace culprit::app {
namespace {

constexpr TimeNs kRecent = 24 * 3600 * kNsPerSecond;
constexpr size_t kPlaces = 3, kRanks = 8;  // limits of names in a row; the rest is counted

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

// The job's own texts, which a search covers.
std::string own_texts(const json& job) {
  return lower_of(string_of(job, "id") + " " + string_of(job, "state") + " " + string_of(job, "verdict") +
                  " " + string_of(job, "headline") + " " + string_of(job, "note"));
}

// Removes words that occur in the text.
void take_words(std::vector<std::string>& words, const std::string& text) {
  std::erase_if(words, [&](const std::string& word) { return text.find(word) != text.npos; });
}

template <class Value>
json first_of(const std::vector<Value>& values, size_t most) {
  json out = json::array();
  for (size_t i = 0; i < std::min(most, values.size()); ++i) out.push_back(values[i]);
  return out;
}

json place_row(const Suspect& place) {
  return {{"host", place.host.value_or("")},
          {"ranks", first_of(place.ranks, kRanks)},
          {"ranks_all", place.ranks.size()},
          {"devices", first_of(place.devices, kRanks)}};
}

json verdict_row(const Verdict& v) {
  const Diagnosis& d = v.diagnosis;
  json places = json::array();
  for (size_t i = 0; i < std::min(kPlaces, d.hosts.size()); ++i) places.push_back(place_row(d.hosts[i]));
  return {{"id", v.id()},
          {"title", d.title},
          {"headline", d.headline.empty() ? json() : json(d.headline)},
          {"confidence", d.confidence},
          {"category", to_string(d.category)},
          {"component", to_string(d.component)},
          {"symptom", to_string(d.symptom)},
          {"state", to_string(v.state)},
          {"settled", v.settled},
          {"since_ns", time_or_null(v.since_ns)},
          {"hosts", std::move(places)},
          {"hosts_all", d.hosts.size()},
          {"action", to_string(d.action.kind)},
          {"remedy", shorten(d.remedy, 200)},
          {"alone", !v.has_proof()}};
}

// The diagnosis whose title is the run's verdict.
json verdict_of(const json& job, const std::vector<Verdict>* of_run) {
  const std::string title = string_of(job, "verdict");
  if (title.empty()) return nullptr;
  if (of_run)
    for (const Verdict& v : *of_run)
      if (v.diagnosis.title == title) return verdict_row(v);
  return {{"title", title}};
}

// The visible texts of a diagnosis, in lower case.
std::string texts_of(const Diagnosis& d) {
  std::string out;
  const auto add = [&out](std::string_view text) { (out += text) += '\n'; };
  const std::string rule = d.rule.value_or(""), detector = d.detector.value_or("");
  for (const std::string_view text :
       {std::string_view(d.id), std::string_view(rule), std::string_view(detector), std::string_view(d.title),
        std::string_view(d.headline), std::string_view(d.remedy), to_string(d.category),
        to_string(d.component), to_string(d.symptom), to_string(d.action.kind)})
    add(text);
  for (const std::string& by : d.found_by) add(by);
  for (const std::string& target : d.action.targets) add(target);
  if (d.code) add(d.code->file), add(d.code->function);
  for (const Suspect& place : d.hosts) {
    add(place.host.value_or(""));
    for (const std::string& why : place.why) add(why);
  }
  for (const Link& link : d.links) add(link.a), add(link.b);
  for (const std::string& why : d.why) add(why);
  for (const Evidence& e : d.evidence) add(e.host.value_or("")), add(e.file), add(e.text);
  return lower_of(out);
}

}  // namespace

// A run, and what determines its place in the list.
struct NowList::Row {
  const json* job = nullptr;
  NowRun run;
  int urgency = 0;
  TimeNs time_ns = kNoTime;
  bool may_lead = false;  // the index has rows that may be its verdict
};

NowList::NowList(json jobs, const std::vector<records::Leading>& leading, serve::NowQuery query, TimeNs now)
    : jobs_(std::move(jobs)), query_(std::move(query)) {
  std::map<NowRun, TimeNs> newest;
  for (const records::Leading& row : leading) newest.emplace(NowRun(row.job, row.run), row.first_ns);
  std::vector<std::string> words;
  const std::string asked = lower_of(query_.words);
  for (const std::string_view word : split(asked, ' '))
    if (!word.empty()) words.emplace_back(word);
  for (const json& job : jobs_) {
    if (!job.is_object()) continue;
    Row row{
        &job, {string_of(job, "id"), job.value("run", 0u)}, urgency_of(job, now), time_of(job, "first_ns")};
    std::vector<std::string> missing = words;
    if (!words.empty()) take_words(missing, own_texts(job));
    const auto at = newest.find(row.run);
    row.may_lead = at != newest.end();
    if (row.may_lead && has_verdict(job)) row.time_ns = at->second;
    if (!missing.empty() && !row.may_lead) continue;
    if (!missing.empty()) missing_.emplace(row.run, std::move(missing));
    rows_.push_back(std::move(row));
  }
}

NowList::~NowList() = default;

std::vector<NowRun> NowList::undecided() const {
  std::vector<NowRun> out;
  for (const auto& [run, words] : missing_) out.push_back(run);
  return out;
}

void NowList::decide(const std::set<NowRun>& found) {
  std::erase_if(rows_,
                [&](const Row& row) { return missing_.contains(row.run) && !found.contains(row.run); });
  for (const Row& row : rows_) {
    ++counts_["all"];
    if (const auto state = counts_.find(string_of(*row.job, "state")); state != counts_.end())
      ++state->second;
    if (has_verdict(*row.job)) ++counts_["verdict"];
  }
  std::erase_if(rows_, [&](const Row& row) { return !is_in(*row.job, query_.state); });
  std::stable_sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) {
    return a.urgency != b.urgency ? a.urgency < b.urgency : a.time_ns > b.time_ns;
  });
}

bool NowList::has_words(const NowRun& run, const std::vector<Verdict>& verdicts) const {
  const auto of_run = missing_.find(run);
  if (of_run == missing_.end()) return true;
  std::vector<std::string> words = of_run->second;
  for (const Verdict& v : verdicts) take_words(words, texts_of(v.diagnosis));
  return words.empty();
}

std::span<const NowList::Row> NowList::on_page() const {
  const size_t from = std::min<size_t>(query_.from, rows_.size());
  return std::span(rows_).subspan(from, std::min<size_t>(query_.limit, rows_.size() - from));
}

std::vector<NowRun> NowList::shown() const {
  std::vector<NowRun> out;
  for (const Row& row : on_page())
    if (row.may_lead && has_verdict(*row.job)) out.push_back(row.run);
  return out;
}

json NowList::page(const NowVerdicts& verdicts) const {
  json items = json::array();
  for (const Row& row : on_page()) {
    json& out = items.emplace_back(json::object());
    for (const char* name : {"id", "run", "state", "well", "hangs", "hosts", "ranks", "iteration", "first_ns",
                             "last_ns", "ended_ns", "headline", "note", "attempt", "attempts", "excluded",
                             "member", "successor", "cluster"})
      if (const auto at = row.job->find(name); at != row.job->end() && !at->is_null()) out[name] = *at;
    out["urgency"] = row.urgency;
    const auto rows = verdicts.find(row.run);
    out["verdict"] = verdict_of(*row.job, rows == verdicts.end() ? nullptr : &rows->second);
  }
  return {{"items", std::move(items)}, {"total", rows_.size()}, {"counts", counts_}};
}

namespace {

// Runs whose verdicts are read in one work, so that other disk work is not delayed.
constexpr size_t kRunsAtOnce = 64;

// Data shared by the loop and the store's worker: only one of them uses it at a time.
struct NowWork {
  std::vector<records::Leading> leading;
  std::unique_ptr<NowList> list;
  std::vector<NowRun> runs;  // to read, some at once
  size_t next = 0;
  std::set<NowRun> found;
  NowVerdicts verdicts;

  std::vector<NowRun> take_runs() {
    const size_t from = std::exchange(next, std::min(runs.size(), next + kRunsAtOnce));
    return {runs.begin() + static_cast<ptrdiff_t>(from), runs.begin() + static_cast<ptrdiff_t>(next)};
  }
};

// Reads a page's data from the index, in short works. Pending calls keep the object alive. Thread: the
// loop's.
class NowReading : public std::enable_shared_from_this<NowReading> {
 public:
  // `finish` may change the page before it is sent.
  NowReading(Recorder& recorder, bool late, std::function<void(json&)> finish,
             serve::ApiSource::Answer answer)
      : recorder_(recorder), late_(late), finish_(std::move(finish)), answer_(std::move(answer)) {}

  void start(const std::shared_ptr<json>& jobs, const serve::NowQuery& query, TimeNs now) {
    ask(
        [](NowWork& work, records::Records& index) {
          if (auto found = index.leading(kNowVerdicts)) work.leading = std::move(*found);
        },
        [self = shared_from_this(), jobs, query, now] {
          NowWork& work = *self->work_;
          work.list = std::make_unique<NowList>(std::move(*jobs), work.leading, query, now);
          work.runs = work.list->undecided();
          self->search();
        });
  }

 private:
  void ask(std::function<void(NowWork&, records::Records&)> read, std::function<void()> done) {
    recorder_.query([work = work_, read = std::move(read)](store::Spool&,
                                                           records::Records& index) { read(*work, index); },
                    std::move(done));
  }

  // Calls `each` with the rows of some runs, then continues with the next runs.
  template <class Each>
  void read_some(const Each& each, void (NowReading::*on)()) {
    ask(
        [each](NowWork& work, records::Records& index) {
          for (const NowRun& run : work.take_runs())
            if (auto rows = index.leading_of(run.first, run.second)) each(work, run, std::move(*rows));
        },
        [self = shared_from_this(), on] { ((*self).*on)(); });
  }

  void search() {
    if (work_->next < work_->runs.size())
      return read_some(
          [](NowWork& work, const NowRun& run, const std::vector<Verdict>& rows) {
            if (work.list->has_words(run, rows)) work.found.insert(run);
          },
          &NowReading::search);
    work_->list->decide(work_->found);
    work_->runs = work_->list->shown();
    work_->next = 0;
    show();
  }

  void show() {
    if (work_->next < work_->runs.size())
      return read_some([](NowWork& work, const NowRun& run,
                          std::vector<Verdict> rows) { work.verdicts[run] = std::move(rows); },
                       &NowReading::show);
    json page = work_->list->page(work_->verdicts);
    page["late"] = late_;
    finish_(page);
    answer_(dump(page));
  }

  Recorder& recorder_;
  const bool late_;
  const std::function<void(json&)> finish_;
  serve::ApiSource::Answer answer_;
  std::shared_ptr<NowWork> work_ = std::make_shared<NowWork>();
};

}  // namespace

// A page must not wait until an engine has read a large batch: then it gets the engine's last answer.
void DaemonApi::now(const serve::NowQuery& query, Answer answer) {
  now_jobs_.get([this, query, answer = std::move(answer)](
                    const std::shared_ptr<const DaemonLists::Jobs>& live, bool late) {
    const auto jobs = std::make_shared<DaemonLists::Jobs>(live ? *live : DaemonLists::Jobs());
    lists_.add_stored_jobs(jobs, [this, jobs, query, late, answer] {
      const auto items = std::make_shared<json>(lists_.items_of(*jobs));
      const auto finish = [this](json& page) { mark_alerts(page["items"]); };
      std::make_shared<NowReading>(*parts_.recorder, late, finish, answer)
          ->start(items, query, env_.now(io::Clock::kWall));
    });
  });
}

}  // namespace culprit::app
