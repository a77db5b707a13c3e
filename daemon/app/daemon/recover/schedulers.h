// The parts of respond/ that the configuration selects for the controller.
#pragma once

#include <functional>
#include <memory>

#include "app/config/config.h"
#include "base/status.h"
#include "respond/executor.h"
#include "respond/scheduler_view.h"

namespace culprit::app {

struct SchedulerParts {
  std::unique_ptr<respond::Backend> backend;                  // null: nothing is carried out
  std::function<Result<respond::SchedulerView>()> look = {};  // blocking; empty: no view
};
SchedulerParts scheduler_parts(const Config& config);

}  // namespace culprit::app
