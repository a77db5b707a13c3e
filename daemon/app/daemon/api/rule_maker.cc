#include "app/daemon/api/rule_maker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "app/confirm/work.h"
#include "model/json_text.h"
#include "model/report_json_read.h"

namespace culprit::app {

namespace fs = std::filesystem;

// The loop answers the thread's requests; `removed`: requests get no answer any more.
struct RuleMaker::Link {
  Link(io::Env& e, serve::ApiSource& s) : env(e), source(s) {}

  io::Env& env;                                             // used only under the mutex and before removal
  serve::ApiSource& source;                                 // the loop's
  std::unique_ptr<serve::EvidenceReader> reader = nullptr;  // the loop's
  std::mutex mutex = {};
  std::condition_variable changed = {};
  bool removed = false, running = true;

  void leave() {
    std::lock_guard lock(mutex);
    removed = true;
    changed.notify_all();
  }
  bool is_removed() {
    std::lock_guard lock(mutex);
    return removed;
  }
  bool is_running() {
    std::lock_guard lock(mutex);
    return running;
  }
  void finish() {
    std::lock_guard lock(mutex);
    running = false;
  }
};

namespace {

using SharedLink = std::shared_ptr<RuleMaker::Link>;

constexpr uint64_t kEvidenceBytes = 32u << 20;  // limit per job
constexpr size_t kOtherJobs = 4;                // limit per kind

std::string reason(const std::string& path) {
  return fmt::format("{}: {}", path, std::generic_category().message(errno));
}

Error left() { return {ErrorCode::kIo, "it took too long, or the daemon ends"}; }

// Runs `ask` on the loop and waits for its answer.
template <class T>
Result<T> wait_for(const SharedLink& link,
                   std::function<void(const SharedLink&, std::function<void(Result<T>)>)> ask) {
  const auto slot = std::make_shared<std::optional<Result<T>>>();
  std::unique_lock lock(link->mutex);
  if (link->removed) return tl::unexpected(left());
  link->env.post([link, slot, ask = std::move(ask)] {
    if (link->is_removed()) return;
    ask(link, [link, slot](Result<T> answer) {
      std::lock_guard answered(link->mutex);
      *slot = std::move(answer);
      link->changed.notify_all();
    });
  });
  link->changed.wait(lock, [&] { return link->removed || slot->has_value(); });
  return slot->has_value() ? std::move(**slot) : tl::unexpected(left());
}

using Text = std::function<void(Result<std::string>)>;

class StoredHere final : public StoredJobs {
 public:
  explicit StoredHere(SharedLink link) : link_(std::move(link)) {}

  std::string name() const override { return "this daemon"; }
  Result<std::string> jobs() override {
    return ask([](serve::ApiSource& s, Text answer) { s.jobs(std::move(answer)); });
  }
  Result<std::string> sources(const std::string& job) override {
    return ask([job](serve::ApiSource& s, Text answer) { s.sources(job, std::move(answer)); });
  }
  Result<std::string> pool() {
    return ask([](serve::ApiSource& s, Text answer) { s.pool(std::move(answer)); });
  }
  Result<std::string> report(const serve::JobRun& of) {
    return ask([of](serve::ApiSource& s, Text answer) { s.report({of}, std::move(answer)); });
  }
  Status read(const std::string& job, const std::string& host, const std::string& path,
              const std::function<bool(std::string_view)>& take) override {
    const Result<bool> opened = wait_for<bool>(link_, [=](const SharedLink& link, auto answer) {
      using Reader = Result<std::unique_ptr<serve::EvidenceReader>>;
      link->source.evidence({job, host, path}, [link, answer = std::move(answer)](Reader reader) {
        if (reader && !link->is_removed()) link->reader = std::move(*reader);
        answer(reader ? Result<bool>(true) : tl::unexpected(reader.error()));
      });
    });
    if (!opened) return tl::unexpected(opened.error());
    Status status;
    for (bool more = true; more && status;) {
      const auto chunk = wait_for<serve::EvidenceChunk>(link_, [](const SharedLink& link, auto answer) {
        if (!link->reader) return answer(tl::unexpected(left()));
        link->reader->next(std::move(answer));
      });
      if (!chunk) status = tl::unexpected(chunk.error());
      more = chunk && take(chunk->bytes) && !chunk->last;
    }
    // The next source needs this source's space.
    (void)wait_for<bool>(link_, [](const SharedLink& link, auto answer) {
      link->reader.reset();
      answer(true);
    });
    return status;
  }

 private:
  Result<std::string> ask(std::function<void(serve::ApiSource&, Text)> question) {
    return wait_for<std::string>(link_,
                                 [question = std::move(question)](const SharedLink& link, Text answer) {
                                   question(link->source, std::move(answer));
                                 });
  }

  SharedLink link_;
};

Result<std::optional<detect::Pool>> pool_of(StoredHere& stored) {
  const auto answer = stored.pool();
  if (!answer) return tl::unexpected(answer.error());
  const auto json = parse_json(*answer);
  const auto text = json.is_object() ? json.find("pool") : json.end();
  if (!json.is_object() || text == json.end() || !text->is_string()) return std::optional<detect::Pool>();
  auto pool = detect::Pool::load(text->get<std::string>(), "the normal pool");
  if (!pool) return tl::unexpected(pool.error());
  return std::move(*pool);
}

Result<Report> report_of(StoredHere& stored, const RuleOrder& order) {
  const auto text = stored.report(order.of);
  if (!text) return tl::unexpected(text.error());
  return report_from_json(*text);
}

Result<MadeRule> make_one(const RuleOrder& order, const SharedLink& link) {
  StoredHere stored(link);
  const auto report = report_of(stored, order);
  if (!report) return tl::unexpected(report.error());
  const auto diagnosis = std::find_if(report->diagnoses.begin(), report->diagnoses.end(),
                                      [&](const Diagnosis& d) { return d.id == order.id; });
  if (diagnosis == report->diagnoses.end())
    return fail(ErrorCode::kNotFound, fmt::format("job {} has no diagnosis {}", order.of.job, order.id));
  if (diagnosis->rule && order.words.line.empty())
    return fail(ErrorCode::kInvalid,
                fmt::format("the rule {} knows it already; no new one is needed", *diagnosis->rule));
  auto pool = pool_of(stored);
  if (!pool) return tl::unexpected(pool.error());
  std::vector<Error> unread;
  auto known = rules_or_library(
      order.rules, [link] { return link->is_removed(); }, unread);
  if (!known) return tl::unexpected(left());
  std::error_code error;
  fs::remove_all(order.scratch, error);
  fs::create_directories(order.scratch, error);
  if (error) return fail(ErrorCode::kIo, fmt::format("{}: {}", order.scratch, error.message()));
  ConfirmSources sources{.known = std::move(known), .pool = std::move(*pool), .job = order.of.job};
  sources.fetch = {kEvidenceBytes, order.scratch};
  sources.stored_jobs = kOtherJobs;
  ConfirmWork work(*report, *diagnosis, std::move(sources));
  if (const Status gathered = work.gather(&stored); !gathered) return tl::unexpected(gathered.error());
  if (link->is_removed()) return tl::unexpected(left());
  auto rule = work.make(order.words);
  if (!rule)
    return fail(ErrorCode::kInvalid,
                rule.error().code == ErrorCode::kNotFound
                    ? rule.error().text + "; `culprit confirm --line` takes the line that you say"
                    : rule.error().text);
  MadeRule out{std::move(*rule), work.notes(), folder_for_rules(order.folders)};
  for (const Error& one : unread) out.notes.push_back(one.text);
  for (std::string& sentence : work.remarks(out.rule)) out.notes.push_back(std::move(sentence));
  if (!out.file.empty()) out.file = (fs::path(out.file) / (out.rule.id + ".lua")).string();
  return out;
}

}  // namespace

std::string folder_for_rules(const std::vector<std::string>& paths) {
  for (auto path = paths.rbegin(); path != paths.rend(); ++path) {
    if (path->ends_with(".lua")) continue;
    std::error_code error;
    fs::create_directories(*path, error);
    if (!error && fs::is_directory(*path, error) && access(path->c_str(), W_OK) == 0) return *path;
  }
  return "";
}

// Writes to a name that starts with a dot, which is no rule file, and then creates a link: readers see the
// whole file at once.
Status write_new_file(const std::string& path, const std::string& text) {
  const fs::path at(path);
  std::string part = (at.parent_path() / ("." + at.filename().string() + ".XXXXXX")).string();
  const int file = mkostemp(part.data(), O_CLOEXEC);
  if (file < 0) return fail(ErrorCode::kIo, reason(part));
  Status status;
  for (size_t done = 0; done < text.size() && status;) {
    const ssize_t n = ::write(file, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) status = fail(ErrorCode::kIo, reason(path));
    done += n > 0 ? static_cast<size_t>(n) : 0;
  }
  if (status && (::fchmod(file, 0644) != 0 || ::fsync(file) != 0))
    status = fail(ErrorCode::kIo, reason(path));
  ::close(file);
  if (status && ::link(part.c_str(), path.c_str()) != 0)
    status = errno == EEXIST
                 ? fail(ErrorCode::kInvalid, path + ": there is such a file already; it was not touched")
                 : fail(ErrorCode::kIo, reason(path));
  ::unlink(part.c_str());
  return status;
}

RuleMaker::~RuleMaker() {
  if (link_) link_->leave();
  if (worker_) worker_->abandon();
}

void RuleMaker::run(std::function<void(const std::shared_ptr<Link>&)> work,
                    std::function<void(Status)> done) {
  if (done_ || (link_ && link_->is_running()))
    return done(fail(ErrorCode::kBusy, "a rule is being made already"));
  auto worker = env_.worker("confirm");
  if (!worker) return done(tl::unexpected(worker.error()));
  worker_ = std::move(*worker);
  link_ = std::make_shared<Link>(env_, source_);
  done_ = std::move(done);
  deadline_ = env_.timer([this] {
    worker_->abandon();  // the thread hangs in the disk, or has too much to read
    end(tl::unexpected(left()));
  });
  deadline_->start(kWithinNs);
  worker_->submit(
      [link = link_, work = std::move(work)] {
        work(link);
        link->finish();
      },
      [this] { end({}); });
}

void RuleMaker::end(const Status& status) {
  link_->leave();
  link_->reader.reset();
  deadline_->stop();
  if (const auto done = std::exchange(done_, {})) done(status);
}

void RuleMaker::make(RuleOrder order, std::function<void(Result<MadeRule>)> done) {
  const auto made = std::make_shared<Result<MadeRule>>(tl::unexpected(left()));
  run(
      [order = std::move(order), made](const std::shared_ptr<Link>& link) {
        *made = make_one(order, link);
        std::error_code ignored;
        fs::remove_all(order.scratch, ignored);
      },
      [made, done = std::move(done)](const Status& status) {
        done(status ? std::move(*made) : tl::unexpected(status.error()));
      });
}

void RuleMaker::write(const MadeRule& made, std::function<void(Status)> done) {
  const auto written = std::make_shared<Status>();
  run(
      [file = made.file, text = made.rule.text, written](const std::shared_ptr<Link>& link) {
        if (!link->is_removed()) *written = write_new_file(file, text);
      },
      [written, done = std::move(done)](const Status& status) { done(status ? *written : status); });
}

void RuleMaker::take_away(const MadeRule& made, std::function<void()> done) {
  run([file = made.file](const std::shared_ptr<Link>&) { ::unlink(file.c_str()); },
      [done = std::move(done)](const Status&) { done(); });
}

}  // namespace culprit::app
