/* A plugin that looks at each event and does nothing more: what is measured is the way to it. */
#include <culprit/plugin.h>

static uint64_t seen;

static int32_t observe(culprit_detector* detector, const culprit_event* const* events, uint64_t count) {
  (void)detector;
  for (uint64_t i = 0; i < count; ++i) {
    seen += events[i]->kind + (uint64_t)events[i]->rank;
    if (events[i]->kind == CULPRIT_EVENT_LOG) seen += ((const culprit_line*)events[i]->body)->text_bytes;
  }
  return CULPRIT_OK;
}

static void destroy(culprit_detector* detector) { (void)detector; }

static culprit_detector* create(const culprit_host* host) {
  static culprit_detector detector;
  (void)host;
  detector.size = sizeof detector;
  detector.observe = observe;
  detector.destroy = destroy;
  return &detector;
}

static const culprit_description* describe(void) {
  static culprit_description description;
  description.size = sizeof description;
  description.abi_major = CULPRIT_ABI_MAJOR;
  description.abi_minor = CULPRIT_ABI_MINOR;
  description.name = "tally";
  description.events = ~UINT64_C(0);
  return &description;
}

CULPRIT_EXPORT const culprit_plugin* culprit_plugin_entry_v1(void) {
  static const culprit_plugin plugin = {sizeof plugin, describe, create};
  return &plugin;
}
