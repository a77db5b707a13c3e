// A plugin whose exception crosses the border, which it must not.
#include <culprit/plugin.h>

#include <stdexcept>

namespace {

int32_t observe(culprit_detector*, const culprit_event* const*, uint64_t) {
  throw std::runtime_error("thrown by the plugin");
}
void destroy(culprit_detector*) {}

culprit_detector* create(const culprit_host*) {
  static culprit_detector detector{};
  detector.size = sizeof detector;
  detector.observe = observe;
  detector.destroy = destroy;
  return &detector;
}

const culprit_description* describe() {
  static const culprit_description description = {sizeof description,
                                                  CULPRIT_ABI_MAJOR,
                                                  CULPRIT_ABI_MINOR,
                                                  "thrower",
                                                  "1",
                                                  "tests",
                                                  "Throws.",
                                                  CULPRIT_BIT(CULPRIT_EVENT_LOG),
                                                  0,
                                                  nullptr,
                                                  0};
  return &description;
}

}  // namespace

const culprit_plugin* culprit_plugin_entry_v1(void) {
  static const culprit_plugin plugin = {sizeof plugin, describe, create};
  return &plugin;
}
