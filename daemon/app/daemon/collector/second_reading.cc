#include "app/daemon/collector/second_reading.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "app/daemon/engine/restore.h"

namespace culprit::app {
namespace {

std::vector<Verdict> verdicts_of_running(records::Records& index) {
  std::vector<Verdict> out;
  for (const records::JobRow& row : index.last_runs().value_or(std::vector<records::JobRow>()))
    if (row.state == records::JobState::kRunning)
      if (auto of_run = index.verdicts({.job = row.id, .run = row.run}))
        std::ranges::move(*of_run, std::back_inserter(out));
  return out;
}

void replace_first(const SecondReading& reading, std::vector<Verdict> verdicts) {
  reading.engine->end_second(std::move(verdicts), [reading](bool replaced) {
    replaced ? reading.info("the condensed logs are read")
             : reading.report_error(
                   "a part of the condensed logs stays unread: there is not enough memory for it "
                   "(engine.memory)");
    reading.collector->go_on();
  });
}

}  // namespace

void read_again(const SecondReading& reading) {
  reading.info("the condensed logs are long: their ends were read first, and now everything is read");
  reading.collector->restore({ended_jobs(*reading.recorder), true}, [reading](bool) {
    const auto verdicts = std::make_shared<std::vector<Verdict>>();
    reading.recorder->query(
        [verdicts](store::Spool&, records::Records& index) { *verdicts = verdicts_of_running(index); },
        [reading, verdicts] {
          if (!reading.stops()) replace_first(reading, std::move(*verdicts));
        });
  });
}

}  // namespace culprit::app
