#include "app/daemon/api/advice_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/daemon/api/api_json.h"
#include "app/daemon/api/daemon_api.h"
#include "base/text.h"

namespace culprit::app {
namespace {

// Greater than that of every advice before, also after a restart.
uint64_t new_id(TimeNs wall) { return static_cast<uint64_t>(std::max<TimeNs>(wall / kNsPerMs, 1)); }

}  // namespace

Status AdviceApi::allowed() const {
  if (parts_.config->act.advise) return {};
  return fail(ErrorCode::kDenied, "act.advise is off: jobs get no advice from this daemon");
}

void AdviceApi::advise(const serve::AdviceRequest& asked, const serve::Actor& by, Answer answer) {
  peer::Advise request{asked.job, who(by), asked.only_uid.value_or(peer::Advise::kAnyUser), asked.advice};
  request.advice.id = new_id(env_.now(io::Clock::kWall));
  if (const Status sound = check_advice(request.advice); !sound) return answer(tl::unexpected(sound.error()));
  if (!parts_.engine) return send(request, {}, std::move(answer));
  struct Found {
    std::vector<std::string> hosts;
    std::string user, owner;
    bool running = false;
  };
  const auto found = std::make_shared<Found>();
  parts_.engine->query(
      [found, job = asked.job](LiveJobs& live, TimeNs) {
        for (const LiveJobSummary& one : live.jobs())
          if (one.id == job && one.state == JobState::kRunning) found->running = true;
        found->hosts = live.hosts_of_job(job);
        found->user = live.user_of_job(job);
        found->owner = live.owner_of_job(job);
      },
      [this, found, request, only = asked.only_uid, answer = std::move(answer)] {
        const std::string user = only ? fmt::format("user {}", *only) : std::string();
        const bool own = !only || found->user == user || found->owner == user;
        if (!found->running || !own)
          return answer(fail(ErrorCode::kNotFound,
                             only ? fmt::format("no running job {} of uid {} alone", request.job, *only)
                                  : fmt::format("no running job {}", request.job)));
        send(request, found->hosts, answer);
      });
}

size_t AdviceApi::give(const peer::Advise& request, const std::vector<std::string>& hosts) {
  const std::string& own = parts_.config->host.name;
  std::vector<std::string> others;
  std::ranges::copy_if(hosts, std::back_inserter(others),
                       [&](const std::string& host) { return host != own; });
  AdviceService* const here = parts_.here ? parts_.here() : nullptr;
  if (here && others.size() < hosts.size()) here->advise(request);
  return parts_.collector && !others.empty() ? parts_.collector->ask(others, request) : 0;
}

void AdviceApi::send(const peer::Advise& request, const std::vector<std::string>& hosts, Answer answer) {
  std::vector<std::string> others;
  for (const std::string& host : hosts)
    if (host != parts_.config->host.name) others.push_back(host);
  const size_t sent = give(request, others);
  const auto reply = [request, sent, all = others.size(), answer = std::move(answer)](
                         const std::vector<uint32_t>& users, const std::string& why) {
    if (sent == 0 && users.empty())
      return answer(
          fail(ErrorCode::kNotFound, why.empty() ? "no agent of the job's hosts is connected" : why));
    answer(dump({{"job", request.job},
                 {"id", request.advice.id},
                 {"advice", to_string(request.advice.kind)},
                 {"step", request.advice.effective_step},
                 {"lasts_ms", request.advice.lasts_ms},
                 {"agents", sent},
                 {"hosts", all + (users.empty() ? 0 : 1)},
                 {"users_here", users}}));
  };
  AdviceService* const here = parts_.here ? parts_.here() : nullptr;
  if (!here) return reply({}, "");
  here->advise(request, [reply](const Result<std::vector<uint32_t>>& done) {
    done ? reply(*done, "") : reply({}, done.error().text);
  });
}

}  // namespace culprit::app
