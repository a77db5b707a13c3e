// The options of core/recover as [act] of the configuration says. Pure.
#pragma once

#include "app/config/config.h"
#include "core/recover/controller.h"

namespace culprit::app {

recover::ControllerOptions controller_options(const Config::Act& act);

}  // namespace culprit::app
