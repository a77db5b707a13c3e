// People's requests for the stacks of a job: POST /v1/jobs/JOB/capture.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "app/daemon/api/api_json.h"
#include "app/daemon/api/daemon_api.h"
#include "base/text.h"

namespace culprit::app {

std::string who(const serve::Actor& by) {
  const std::string proven = by.uid ? fmt::format("uid {}", *by.uid) : fmt::format("token {}", by.token);
  return by.name.empty() ? proven : fmt::format("{} ({})", by.name, proven);
}

void DaemonApi::capture(const std::string& job, uint32_t rounds, const serve::Actor& by, Answer answer) {
  const auto order = std::make_shared<Result<CaptureOrder>>();
  parts_.engine->query(
      [order, job, rounds](LiveJobs& live, TimeNs now) { *order = live.order_capture(job, rounds, now); },
      [this, order, job, person = who(by), answer = std::move(answer)] {
        if (!*order) return answer(tl::unexpected(order->error()));
        const CaptureOrder& o = **order;
        if (parts_.inform)
          parts_.inform(
              fmt::format("job {}: {} of stacks asked for by {}", job, counted(o.rounds, "round"), person));
        std::vector<std::string> hosts = o.hosts;
        if (o.here) hosts.push_back(parts_.config->host.name);
        std::sort(hosts.begin(), hosts.end());
        answer(dump({{"job", job},
                     {"run", o.run},
                     {"sample", o.sample},
                     {"rounds", o.rounds},
                     {"every_ns", o.every_ns},
                     {"asked_ns", o.asked_ns},
                     {"hosts", hosts}}));
      });
}

}  // namespace culprit::app
