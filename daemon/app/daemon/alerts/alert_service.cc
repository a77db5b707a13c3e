#include "app/daemon/alerts/alert_service.h"

#include <fmt/format.h>
#include <pwd.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "app/daemon/alerts/alert_records.h"
#include "base/crash_point.h"
#include "base/text.h"
#include "io/http/exchange.h"
#include "model/json_text.h"
#include "respond/otlp.h"

namespace culprit::app {
namespace {

constexpr TimeNs kFollowEvery = 10 * kNsPerSecond;  // interval of checks of runs with an issue
constexpr TimeNs kResendEvery = 60 * kNsPerSecond;  // interval of resends to an Alertmanager
constexpr TimeNs kSeenEvery = 60 * kNsPerSecond;    // a write of the watermark
constexpr TimeNs kWriteAgain = 5 * kNsPerSecond;    // pause after a failed write
constexpr TimeNs kCatchUp = 600 * kNsPerSecond;     // margin before the watermark, for a clock that was set

store::StoredMessage stored(const alert::Message& m) {
  return {m.row, m.id, m.receiver, m.issue, static_cast<int>(m.kind), m.created_ns, m.body};
}

alert::Message message_of(store::StoredMessage m) {
  const int kind = std::clamp(m.kind, 0, static_cast<int>(alert::Message::Kind::kRecord));
  return {m.row,
          std::move(m.id),
          std::move(m.receiver),
          std::move(m.issue),
          static_cast<alert::Message::Kind>(kind),
          m.created_ns,
          std::move(m.body)};
}

std::string text_of(const respond::Outbox::Past& past) {
  return nlohmann::json{{"dropped", past.dropped},
                        {"trouble", past.trouble},
                        {"failing_ns", past.failing_ns},
                        {"sent_ns", past.sent_ns}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

respond::Outbox::Past past_of(const store::StoredReceiver& stored) {
  respond::Outbox::Past out{stored.name, 0, "", kNoTime, kNoTime};
  const auto object = parse_json(stored.text);
  if (!object.is_object()) return out;
  const auto number = [&](const char* name, auto& to) {
    if (const auto at = object.find(name); at != object.end() && at->is_number_integer()) at->get_to(to);
  };
  number("dropped", out.dropped);
  number("failing_ns", out.failing_ns);
  number("sent_ns", out.sent_ns);
  if (const auto at = object.find("trouble"); at != object.end() && at->is_string()) at->get_to(out.trouble);
  return out;
}

// A user by name or uid, in the form of job users; nothing: this host knows no such user.
std::optional<std::string> user_text(const std::string& user) {
  if (user == "*") return user;
  if (user.find_first_not_of("0123456789") == user.npos) return "user " + user;
  const passwd* found = getpwnam(user.c_str());
  return found ? std::optional(fmt::format("user {}", found->pw_uid)) : std::nullopt;
}

// Merges a failed write with later changes. The newest version of an issue counts.
void put_before(store::AlertChanges failed, store::AlertChanges& later) {
  std::set<std::string> newer;
  for (const store::StoredIssue& one : later.issues) newer.insert(one.key);
  std::erase_if(failed.issues, [&](const auto& one) { return newer.contains(one.key); });
  std::erase_if(failed.issues_removed, [&](const auto& key) { return newer.contains(key); });
  const std::set<int64_t> removed(later.messages_removed.begin(), later.messages_removed.end());
  std::erase_if(failed.messages, [&](const auto& m) { return removed.contains(m.row); });
  const auto join = [](auto& first, auto& second) {
    first.insert(first.end(), std::make_move_iterator(second.begin()), std::make_move_iterator(second.end()));
    second = std::move(first);
  };
  join(failed.issues, later.issues);
  join(failed.issues_removed, later.issues_removed);
  join(failed.messages, later.messages);
  join(failed.messages_removed, later.messages_removed);
  std::set<std::string> named(later.receivers_removed.begin(), later.receivers_removed.end());
  for (const store::StoredReceiver& one : later.receivers) named.insert(one.name);
  std::erase_if(failed.receivers, [&](const auto& one) { return named.contains(one.name); });
  std::erase_if(failed.receivers_removed, [&](const auto& name) { return named.contains(name); });
  join(failed.receivers, later.receivers);
  join(failed.receivers_removed, later.receivers_removed);
  join(failed.windows, later.windows);
  join(failed.windows_removed, later.windows_removed);
  later.seen_until_ns = std::max(failed.seen_until_ns, later.seen_until_ns);
}

}  // namespace

AlertService::AlertService(io::Env& env, AlertServiceOptions options)
    : env_(env), options_(std::move(options)), book_(book_options()) {}

Result<std::unique_ptr<AlertService>> AlertService::open(io::Env& env, AlertServiceOptions options) {
  io::prepare_http();
  std::unique_ptr<AlertService> out(new AlertService(env, std::move(options)));
  auto disk = env.worker("alerts");
  if (!disk) return tl::unexpected(disk.error());
  out->disk_ = std::move(*disk);
  const Config& config = *out->options_.config;
  const Status loaded = out->load(config.state_dir);
  if (!loaded)
    out->options_.report_error(loaded.error().text +
                               "; alerts and maintenance windows are not kept over a restart");
  if (out->options_.watch) out->options_.watch->alerts(loaded);
  out->reload();
  out->timer_ = env.timer([service = out.get()] { service->beat(); });
  out->timer_->start(kNsPerSecond, kNsPerSecond);
  return out;
}

// A running attempt ends within about a second. The destructor waits for it: TLS must not be in use at the
// end of the process.
AlertService::~AlertService() { *stop_ = true; }

Status AlertService::load(const std::string& state_dir) {
  auto store = store::AlertStore::open(state_dir + "/alerts.db");
  if (!store) return tl::unexpected(store.error());
  if (!(*store)->moved_aside().empty())
    options_.report_error("alerts: their file was damaged and is now " + (*store)->moved_aside());
  auto found = (*store)->load();
  if (!found) return tl::unexpected(found.error());
  store_ = std::move(*store);
  std::vector<alert::Issue> issues;
  for (const store::StoredIssue& one : found->issues) {
    auto issue = alert::issue_from_json(one.text);
    issue ? issues.push_back(std::move(*issue)) : options_.report_error(issue.error().text);
  }
  std::vector<alert::Window> windows;
  for (const store::StoredWindow& one : found->windows)
    if (auto window = alert::window_from_json(one.text)) windows.push_back(std::move(*window));
  std::vector<alert::Message> messages;
  for (store::StoredMessage& one : found->messages) messages.push_back(message_of(std::move(one)));
  if (!messages.empty()) stored_row_ = last_row_ = messages.back().row;
  book_.load(std::move(issues), std::move(windows));
  outbox_.load(std::move(messages));
  for (const store::StoredReceiver& one : found->receivers) {
    pasts_[one.name] = past_of(one);
    outbox_.load(pasts_[one.name]);
  }
  seen_until_ns_ = found->seen_until_ns;
  return {};
}

alert::BookOptions AlertService::book_options() const {
  alert::BookOptions out;
  const Config& c = *options_.config;
  out.storm_above = static_cast<size_t>(c.alerts.storm_above);
  out.expire_after_ns = c.alerts.expire_after_ns;
  out.critical = c.alerts.critical;
  out.remind_every_ns = c.alerts.remind_every_ns;
  for (const AlertConfig& a : c.alert) {
    alert::Route r;
    r.name = a.name;
    r.categories = a.categories;
    r.actions = a.actions;
    r.jobs = a.jobs;
    for (const std::string& owner : a.owners) r.owners.push_back(user_text(owner).value_or("unknown"));
    r.min_confidence = static_cast<double>(a.min_confidence) / 100;
    r.resolved = a.resolved;
    r.groups = a.type == AlertType::kAlertmanager;
    out.routes.push_back(std::move(r));
  }
  return out;
}

std::vector<std::string> AlertService::receivers() const {
  std::vector<std::string> out;
  for (const AlertConfig& a : options_.config->alert) out.push_back(a.name);
  if (!options_.config->otlp.endpoint.empty()) out.emplace_back(kOtlpReceiver);
  return out;
}

void AlertService::reload() {
  book_.set_options(book_options());
  const std::vector<std::string> names = receivers();
  const std::vector<int64_t> removed = outbox_.keep_only(names);
  if (!removed.empty())
    options_.report_error(fmt::format("alerts: {} for receivers that are no longer configured are dropped",
                                      counted(removed.size(), "message")));
  unwritten_.messages_removed.insert(unwritten_.messages_removed.end(), removed.begin(), removed.end());
  std::erase_if(channels_, [&](auto& one) {
    if (std::ranges::find(names, one.first) != names.end()) return false;
    if (one.second.worker) one.second.worker->abandon();
    return true;
  });
  std::erase_if(pasts_, [&](const auto& one) {
    if (std::ranges::find(names, one.first) != names.end()) return false;
    unwritten_.receivers_removed.push_back(one.first);
    return true;
  });
  for (const std::string& name : names) outbox_.try_now(name);
  for (const AlertConfig& a : options_.config->alert) {
    if (const std::string why = trouble_of(a); !why.empty())
      options_.report_error(fmt::format("alert receiver {}: {}", a.name, why));
    for (const std::string& owner : a.owners)
      if (!user_text(owner))
        options_.report_error(fmt::format("alert receiver {}: this host knows no user {}", a.name, owner));
  }
  write();
}

// ---- verdicts

void AlertService::on_events(const std::vector<LiveEvent>& events) {
  const bool records = !options_.config->otlp.endpoint.empty() && options_.config->otlp.logs;
  for (const LiveEvent& e : events) {
    if (e.replayed || stopping_) continue;
    found(e);
    if (records && e.publish) record(e);
  }
  flush();
}

// Handles a new finding of a kind that a person marked as repaired.
void AlertService::found(const LiveEvent& event) {
  const auto* change = std::get_if<FindingChange>(&event.content);
  if (!change || change->finding.rule.empty()) return;
  const std::vector<Evidence>& evidence = change->finding.evidence;
  book_.found_again(event.job, event.run, "rule:" + change->finding.rule,
                    evidence.empty() ? "" : evidence.front().host.value_or(""), wall());
}

void AlertService::on_verdicts(std::span<const RunVerdict> verdicts) {
  const TimeNs now = wall();
  std::map<records::JobRunId, std::string> open;
  for (const alert::Issue* issue : book_.firing())
    if (issue->fault.decision.empty()) open[{issue->fault.job, issue->fault.run}] = issue->fault.diagnosis;
  for (const RunVerdict& v : verdicts) {
    alert::End why = v.known ? alert::End::kWithdrawn : alert::End::kForgotten;
    if (const auto at = open.find({v.job, v.run}); at != open.end() && v.refuted.contains(at->second))
      why = alert::End::kRefuted;
    book_.update(v.job, v.run, v.verdict ? std::optional(fault_of(v)) : std::nullopt, why, now);
  }
  flush();
}

void AlertService::on_questions(std::span<const alert::Fault> open,
                                const std::function<QuestionEnd(const std::string&)>& end_of) {
  const TimeNs now = wall();
  for (const std::string& decision : book_.asked())
    if (std::ranges::find(open, decision, &alert::Fault::decision) == open.end()) {
      const QuestionEnd end = end_of(decision);
      book_.answered(decision, end.end, end.by, now);
    }
  for (const alert::Fault& question : open) book_.ask(question, now);
  flush();
}

void AlertService::restored() {
  for (const alert::Issue* issue : book_.firing())
    if (issue->storm.empty() && issue->fault.decision.empty())
      options_.verdicts->look_at(issue->fault.job, issue->fault.run);
  const bool is_new = seen_until_ns_ == kNoTime;  // first start with an alert file: earlier verdicts are not
                                                  // new
  options_.verdicts->restored(is_new ? kNoTime : seen_until_ns_ - kCatchUp);
  if (!is_new) return;
  seen_until_ns_ = wall();
  unwritten_.seen_until_ns = seen_until_ns_;
  write();
}

// Follows jobs with an issue, which may continue or run again.
void AlertService::follow_runs() {
  for (const auto& [run, since] : book_.undecided()) options_.verdicts->look_at(run.first, run.second);
  if (following_ || book_.firing().size() == 0 || !options_.engine) return;
  if (followed_ns_ != kNoTime && mono() - followed_ns_ < kFollowEvery) return;
  followed_ns_ = mono();
  following_ = true;
  const auto names = std::make_shared<std::set<std::string>>();
  for (const alert::Issue* issue : book_.firing()) {
    names->insert(issue->fault.job);
    // A decision about another attempt is no event of its own.
    if (!issue->fault.again.empty()) options_.verdicts->look_at(issue->fault.job, issue->fault.run);
  }
  const auto news = std::make_shared<std::vector<alert::RunNews>>();
  options_.engine->query(
      [names, news](LiveJobs& live, TimeNs) {
        for (const LiveJobSummary& job : live.jobs())
          if (names->contains(job.id))
            news->push_back({job.id, job.run, job.state == JobState::kRunning,
                             job.well && job.state != JobState::kRunning, job.iteration,
                             live.whose_word(job.id), job.attempts ? job.attempts->attempt : 0,
                             job.attempts && job.attempts->state == AttemptState::kWell});
      },
      [this, news] {
        following_ = false;
        book_.on_runs(*news, wall());
        flush();
      });
}

// ---- what people do

Result<alert::Issue> AlertService::acknowledge(const std::string& key, const std::string& by) {
  auto done = book_.acknowledge(key, by, wall());
  flush();
  return done;
}

Result<alert::Issue> AlertService::silence(const std::string& key, TimeNs for_ns, const std::string& by) {
  const TimeNs now = wall();
  auto done = book_.silence(key, now + for_ns, by, now);
  flush();
  return done;
}

Result<alert::Issue> AlertService::repaired(const std::string& key, const std::string& by) {
  auto done = book_.repaired(key, by, wall());
  flush();
  return done;
}

Result<alert::Window> AlertService::add_window(alert::Window window) {
  auto added = book_.add_window(std::move(window), wall());
  flush();
  return added;
}

Result<alert::Window> AlertService::end_window(int64_t id) {
  auto ended = book_.end_window(id, wall());
  book_.tick(wall());
  flush();
  return ended;
}

// ---- the disk

void AlertService::record(const LiveEvent& event) {
  std::string record = otlp_record(event);
  if (record.empty()) return;
  alert::Message m;
  m.id = fmt::format("{}/{}", event.job, event.id);
  m.receiver = kOtlpReceiver;
  m.kind = alert::Message::Kind::kRecord;
  m.created_ns = event.time_ns;
  m.body = std::move(record);
  add(std::move(m));
}

void AlertService::add(alert::Message message) {
  const bool keep = message.kind != alert::Message::Kind::kLatest;
  store::StoredMessage copy = stored(message);
  std::vector<int64_t> removed;
  last_row_ = copy.row = outbox_.add(std::move(message), removed);
  for (const int64_t row : removed)
    if (std::erase_if(unwritten_.messages, [&](const auto& m) { return m.row == row; }) == 0)
      unwritten_.messages_removed.push_back(row);
  if (keep) unwritten_.messages.push_back(std::move(copy));
}

// Stores the receivers' state that a restart would lose, and the outcome of messages.
void AlertService::keep_receivers() {
  for (const alert::Message& m : outbox_.take_dropped()) book_.settled(m.receiver, m.issue, true);
  for (const std::string& name : receivers()) {
    respond::Outbox::Past now = outbox_.past(name);
    const auto known = pasts_.find(name);
    if (known != pasts_.end() && known->second == now) continue;
    std::erase_if(unwritten_.receivers, [&](const auto& one) { return one.name == name; });
    std::erase(unwritten_.receivers_removed, name);
    unwritten_.receivers.push_back({name, text_of(now)});
    pasts_[name] = std::move(now);
  }
}

void AlertService::flush() {
  alert::BookChanges changes = book_.take();
  for (const alert::Issue& issue : changes.issues) {
    std::erase_if(unwritten_.issues, [&](const auto& one) { return one.key == issue.key; });
    std::erase(unwritten_.issues_removed, issue.key);
    unwritten_.issues.push_back({issue.key, to_json(issue)});
  }
  for (std::string& key : changes.forgotten) {
    std::erase_if(unwritten_.issues, [&](const auto& one) { return one.key == key; });
    unwritten_.issues_removed.push_back(std::move(key));
  }
  for (const alert::Window& w : changes.windows) unwritten_.windows.push_back({w.id, to_json(w)});
  for (const int64_t id : changes.windows_forgotten) unwritten_.windows_removed.push_back(id);
  for (alert::Message& m : changes.messages) add(std::move(m));
  keep_receivers();
  write();
}

// Sends a message once it is on the disk, under a name that survives a restart. If the disk fails, the
// message is sent without being stored.
void AlertService::write() {
  if (writing_ || !disk_) return;
  const bool waits = write_after_ns_ != kNoTime && mono() < write_after_ns_ && !stopping_;
  if (unwritten_.empty() || waits || !store_) {
    if (!store_) unwritten_ = {};
    stored_row_ = last_row_;
    if (stopping_ && stopped_) std::exchange(stopped_, {})();
    return kick_all();
  }
  writing_ = true;
  writing_row_ = last_row_;
  const auto changes = std::make_shared<store::AlertChanges>(std::exchange(unwritten_, {}));
  const auto status = std::make_shared<Status>();
  disk_->submit(
      [store = store_, changes, status] {
        crash_point("alerts.before_commit");
        *status = store->apply(*changes);
        crash_point("alerts.after_commit");
      },
      [this, changes, status] {
        if (!*status) put_before(std::move(*changes), unwritten_);
        written(*status);
      });
}

void AlertService::written(const Status& status) {
  writing_ = false;
  if (options_.watch) options_.watch->alerts(status);
  stored_row_ = writing_row_;
  store_trouble_ = status ? "" : "alerts are not kept: " + status.error().text;
  write_after_ns_ = status ? kNoTime : mono() + kWriteAgain;
  counters_.store_failed += !status;
  if (const auto reported = store_error_.look(store_trouble_, "alerts are kept again", mono()))
    options_.report_error(*reported);
  if (!status && stopping_) {
    if (stopped_) std::exchange(stopped_, {})();
    return;
  }
  write();
}

void AlertService::stop(std::function<void()> done) {
  stopping_ = true;
  *stop_ = true;
  timer_->stop();
  stopped_ = std::move(done);
  if (!writing_) write();
}

// ---- time

void AlertService::beat() {
  const TimeNs now = wall();
  book_.tick(now);
  follow_runs();
  export_metrics();
  if (options_.verdicts->is_idle()) {
    seen_until_ns_ = now;
    const bool due = seen_written_ns_ == kNoTime || mono() - seen_written_ns_ >= kSeenEvery;
    if ((due && !receivers().empty()) || !unwritten_.empty()) {
      seen_written_ns_ = mono();
      unwritten_.seen_until_ns = now;
    }
  }
  flush();
}

void AlertService::export_metrics() {
  const Config::Otlp& otlp = options_.config->otlp;
  if (otlp.endpoint.empty() || !otlp.metrics || !options_.metrics) return;
  if (exported_ns_ != kNoTime && mono() - exported_ns_ < otlp.interval_ns) return;
  exported_ns_ = mono();
  options_.metrics([this](const std::string& text) {
    if (stopping_) return;
    const TimeNs now = wall();
    respond::OtlpMetrics made =
        respond::otlp_metrics_body(text, {options_.config->host.name}, options_.started_ns, now);
    alert::Message m;
    m.id = "metrics";
    m.receiver = kOtlpReceiver;
    m.kind = alert::Message::Kind::kLatest;
    m.created_ns = now;
    m.body = std::move(made.body);
    add(std::move(m));
    kick_all();
  });
}

// ---- receivers

void AlertService::kick_all() {
  for (const AlertConfig& a : options_.config->alert) kick(a, false);
  if (!options_.config->otlp.endpoint.empty()) kick(otlp_receiver(*options_.config), true);
}

AlertService::Channel* AlertService::channel(const std::string& receiver) {
  Channel& out = channels_[receiver];
  if (out.worker) return &out;
  auto worker = env_.worker("alert " + receiver);
  if (!worker) {
    if (const auto reported = out.error_report.look(worker.error().text, "", mono()))
      options_.report_error(*reported);
    return nullptr;
  }
  out.worker = std::move(*worker);
  return &out;
}

DeliveryOrder AlertService::order_for(const AlertConfig& receiver, bool otlp) const {
  std::string url = options_.config->http.url;
  while (url.ends_with('/')) url.pop_back();
  return {receiver, otlp, {}, {}, {std::move(url), options_.config->host.name}, wall(), stop_};
}

// Firing issues, which an Alertmanager must get again each minute.
std::vector<alert::Issue> AlertService::active(const AlertConfig& receiver, Channel& channel) {
  std::vector<alert::Issue> out;
  const bool due = channel.resent_ns == kNoTime || mono() - channel.resent_ns >= kResendEvery;
  if (receiver.type != AlertType::kAlertmanager || !due || outbox_.waits(receiver.name, wall())) return out;
  for (const alert::Issue* issue : book_.firing()) {
    const auto d = issue->deliveries.find(receiver.name);
    if (d == issue->deliveries.end() || d->second.state != alert::Delivery::State::kSent) continue;
    out.push_back(*issue);
    out.back().news = alert::news_of(*issue, d->second.change);
  }
  if (out.empty()) channel.resent_ns = mono();
  return out;
}

void AlertService::kick(const AlertConfig& receiver, bool otlp) {
  if (stopping_) return;
  const auto known = channels_.find(receiver.name);
  if (known != channels_.end() && known->second.busy) return;
  DeliveryOrder order = order_for(receiver, otlp);
  for (alert::Message& m : outbox_.due(receiver.name, batch_of(receiver, otlp), order.now)) {
    if (m.kind != alert::Message::Kind::kLatest && m.row > stored_row_) break;
    if (otlp && !order.messages.empty() && (m.kind != order.messages.front().kind)) break;
    order.messages.push_back(std::move(m));
    order.messages.back().change = change_of(order.messages.back());
  }
  const bool is_firing = !otlp && receiver.type == AlertType::kAlertmanager && book_.firing().size() > 0;
  if (order.messages.empty() && !is_firing) return;
  Channel* own = channel(receiver.name);
  if (!own) return;
  order.active = active(receiver, *own);
  if (!order.messages.empty() || !order.active.empty()) begin(*own, std::move(order));
}

// What changed in a revision since the earlier messages.
std::string AlertService::change_of(const alert::Message& m) const {
  if (m.kind != alert::Message::Kind::kRevised) return "";
  const auto known = book_.issues().find(m.issue);
  if (known == book_.issues().end()) return "";
  const auto d = known->second.deliveries.find(m.receiver);
  if (d == known->second.deliveries.end() || !d->second.read) return "";
  const auto reported = alert::issue_from_json(m.body);
  return reported ? alert::change_of(*d->second.read, reported->fault) : "";
}

void AlertService::begin(Channel& channel, DeliveryOrder order) {
  channel.busy = true;
  const auto shared = std::make_shared<DeliveryOrder>(std::move(order));
  const auto outcome = std::make_shared<DeliveryOutcome>();
  channel.worker->submit(
      [shared, outcome, deliver = options_.deliver] {
        crash_point("alerts.before_send");
        *outcome = deliver(*shared);
        crash_point("alerts.after_send");
      },
      [this, shared, outcome] { delivered(*shared, *outcome); });
}

void AlertService::delivered(const DeliveryOrder& order, const DeliveryOutcome& outcome) {
  const std::string& name = order.receiver.name;
  const auto at = channels_.find(name);
  if (at == channels_.end() || stopping_) return;
  Channel& own = at->second;
  own.busy = false;
  std::vector<int64_t> rows, removed;
  for (const alert::Message& m : order.messages) rows.push_back(m.row);
  const TimeNs now = wall();
  std::string trouble;
  if (outcome.kind == DeliveryOutcome::Kind::kSent) {
    removed = outbox_.sent(name, rows, now);
    for (const alert::Message& m : order.messages) {
      book_.settled(name, m.issue, false);
      const auto reported =
          m.issue.empty() ? Result<alert::Issue>(tl::unexpected(Error{})) : alert::issue_from_json(m.body);
      if (reported) book_.delivered(name, m.issue, reported->fault, m.change);
    }
    if (outcome.rejected > 0) outbox_.rejected(name, outcome.rejected);
    if (!order.active.empty()) {
      own.resent_ns = mono();
      counters_.resent += order.active.size();
    }
  } else {
    trouble = fmt::format("alert receiver {}: {}", name, outcome.sentence);
    if (outcome.kind == DeliveryOutcome::Kind::kRefused)
      removed = outbox_.refused(name, rows, outcome.sentence, now);
    else
      outbox_.failed(name, outcome.sentence, outcome.retry_after_ns, now);
    if (!removed.empty()) trouble += fmt::format("; dropped after {} refusals", respond::Outbox::kRefusals);
  }
  if (const auto reported =
          own.error_report.look(trouble, fmt::format("alert receiver {}: takes alerts again", name), mono()))
    trouble.empty() ? options_.inform(*reported) : options_.report_error(*reported);
  unwritten_.messages_removed.insert(unwritten_.messages_removed.end(), removed.begin(), removed.end());
  keep_receivers();  // stores the receivers' state together with the issues
  flush();
}

std::vector<std::string> AlertService::troubles() const {
  std::vector<std::string> out;
  if (!store_trouble_.empty()) out.push_back(store_trouble_);
  for (const auto& [name, line] : outbox_.lines())
    if (!line.trouble.empty())
      out.push_back(fmt::format(
          "receiver {} gets nothing since {} and {} for it{}: {}", name, format_time(line.failing_ns),
          line.waiting.size() == 1 ? "1 message waits" : fmt::format("{} messages wait", line.waiting.size()),
          line.next_ns == kNoTime ? "" : ", next try at " + format_time(line.next_ns), line.trouble));
  return out;
}

// ---- tests

void AlertService::test(const std::string& receiver,
                        std::function<void(Result<std::vector<Tested>>)> answer) {
  std::vector<std::pair<AlertConfig, bool>> chosen;
  for (const AlertConfig& a : options_.config->alert)
    if (receiver.empty() || a.name == receiver) chosen.emplace_back(a, false);
  if (!options_.config->otlp.endpoint.empty() && (receiver.empty() || receiver == kOtlpReceiver))
    chosen.emplace_back(otlp_receiver(*options_.config), true);
  if (chosen.empty())
    return answer(fail(ErrorCode::kNotFound,
                       receiver.empty() ? "no receiver of alerts is configured" : "no receiver " + receiver));
  const auto results = std::make_shared<std::vector<Tested>>();
  const auto left = std::make_shared<size_t>(chosen.size());
  for (const auto& [to, otlp] : chosen) {
    outbox_.try_now(to.name);
    Channel* own = channel(to.name);
    if (!own) {
      results->push_back({to.name, "no thread can be started for it", false});
      if (--*left == 0) answer(*results);
      continue;
    }
    const auto outcome = std::make_shared<DeliveryOutcome>();
    own->worker->submit([outcome, order = order_for(to, otlp)] { *outcome = deliver_test(order); },
                        [results, left, outcome, name = to.name, answer] {
                          const bool sent = outcome->kind == DeliveryOutcome::Kind::kSent;
                          results->push_back({name, outcome->sentence, sent});
                          if (--*left == 0) answer(*results);
                        });
  }
  kick_all();
}

}  // namespace culprit::app
