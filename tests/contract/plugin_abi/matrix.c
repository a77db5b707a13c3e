/* A plugin that reports what it sees of its host: built for this version and for the next minor one. */
#include <culprit/plugin.h>
#include <stdlib.h>
#include <string.h>

typedef struct matrix {
  culprit_detector base;
  const culprit_host* host;
} matrix;

static int32_t observe(culprit_detector* detector, const culprit_event* const* events, uint64_t count) {
  matrix* self = (matrix*)detector;
  const culprit_event* last = events[count - 1];
  const culprit_line* line = (const culprit_line*)last->body;
#ifdef CULPRIT_TEST_GROWN
  const int host_grown = CULPRIT_HAS(self->host, culprit_host, grown);
  const int event_grown = CULPRIT_HAS(last, culprit_event, grown);
  const double grown = host_grown + 2 * event_grown;
#else
  const double grown = 0;
#endif
  const culprit_value minor = {sizeof minor, "minor", CULPRIT_ABI_MINOR},
                      seen = {sizeof seen, "grown", grown},
                      events_seen = {sizeof events_seen, "events", (double)count};
  const culprit_value* values[] = {&minor, &seen, &events_seen};
  culprit_detector_finding finding;
  memset(&finding, 0, sizeof finding);
  finding.size = sizeof finding;
  finding.id = "matrix.seen";
  finding.title = self->host->option(self->host, "title");
  finding.text = line->text;
  finding.job = last->job;
  finding.host = last->host;
  finding.rank = last->rank;
  finding.device = last->device;
  finding.time_ns = last->time_ns;
  finding.confidence = 0.25;
  finding.values = values;
  finding.value_count = 3;
  return self->host->emit(self->host, &finding);
}

static void destroy(culprit_detector* detector) { free(detector); }

static culprit_detector* create(const culprit_host* host) {
  matrix* self = (matrix*)calloc(1, sizeof *self);
  if (!self) return NULL;
  self->base.size = sizeof self->base;
  self->base.observe = observe;
  self->base.destroy = destroy;
  self->host = host;
  return &self->base;
}

static const culprit_description* describe(void) {
  static const culprit_option title = {sizeof title,        "title", "a title", "Of the finding.", 0, 0,
                                       CULPRIT_OPTION_TEXT, 0};
  static const culprit_option* const options[] = {&title};
  static culprit_description description;
  description.size = sizeof description;
  description.abi_major = CULPRIT_ABI_MAJOR;
  description.abi_minor = CULPRIT_ABI_MINOR;
  description.name = "matrix";
  description.version = "1";
  description.events = CULPRIT_BIT(CULPRIT_EVENT_LOG);
  description.options = options;
  description.option_count = 1;
  return &description;
}

CULPRIT_EXPORT const culprit_plugin* culprit_plugin_entry_v1(void) {
  static const culprit_plugin plugin = {sizeof plugin, describe, create};
  return &plugin;
}
