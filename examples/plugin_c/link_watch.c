/* A detector in C: the fabric of this site logs "link N retrained"; more than `limit` of these within a
 * minute mean a bad cable. Raised once, and cleared after a minute without any.
 *
 *   cc -O2 -fPIC -shared -fvisibility=hidden -I<sdk>/include link_watch.c -o link_watch.so */
#include <culprit/plugin.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MINUTE = 60 };

typedef struct {
  culprit_detector face;    /* what the daemon sees; first, so that both have one address */
  const culprit_host* host; /* lives until destroy ends */
  long limit;
  int64_t window_s; /* the minute that `count` belongs to */
  long count;
  int raised;
} link_watch;

/* A finding borrows its texts: emit copies what it keeps. */
static int32_t emit(link_watch* self, uint32_t state, const char* text) {
  culprit_value value = {sizeof value, "retrains_per_minute", (double)self->count};
  const culprit_value* const values[] = {&value};
  culprit_detector_finding finding = {.size = sizeof finding,
                                      .id = "example.link_retrains",
                                      .title = "Fabric link retrains often",
                                      .text = text,
                                      .category = "hardware",
                                      .component = "network",
                                      .symptom = "slowdown",
                                      .action = "check",
                                      .remedy = "Reseat the cable of the link.",
                                      .rank = CULPRIT_NONE,
                                      .device = CULPRIT_NONE,
                                      .time_ns = CULPRIT_NO_TIME,
                                      .confidence = 0.8,
                                      .severity = CULPRIT_WARNING,
                                      .state = state,
                                      .values = values,
                                      .value_count = 1};
  self->raised = state == CULPRIT_RAISED;
  return self->host->emit(self->host, &finding);
}

static int32_t observe(culprit_detector* detector, const culprit_event* const* events, uint64_t count) {
  link_watch* self = (link_watch*)detector;
  for (uint64_t i = 0; i < count; ++i) {
    const culprit_line* line = events[i]->body; /* only lines were asked for */
    int64_t minute_s = events[i]->time_ns / 1000000000 / MINUTE * MINUTE;
    if (!strstr(line->text, "retrained")) continue;
    if (minute_s != self->window_s) self->count = 0;
    self->window_s = minute_s;
    if (++self->count > self->limit && !self->raised) {
      int32_t error = emit(self, CULPRIT_RAISED, line->text);
      if (error && error != CULPRIT_ERROR_LIMIT) return error;
    }
  }
  return CULPRIT_OK;
}

static int32_t tick(culprit_detector* detector, int64_t now_ns) {
  link_watch* self = (link_watch*)detector;
  if (!self->raised || now_ns / 1000000000 < self->window_s + 2 * MINUTE) return CULPRIT_OK;
  self->count = 0;
  return emit(self, CULPRIT_CLEARED, "no link retrained for a minute");
}

static void destroy(culprit_detector* detector) { free(detector); }

static culprit_detector* create(const culprit_host* host) {
  link_watch* self = calloc(1, sizeof *self);
  if (!self) return NULL;
  self->host = host;
  self->limit = strtol(host->option(host, "limit"), NULL, 10); /* the daemon has checked it */
  self->face =
      (culprit_detector){.size = sizeof self->face, .observe = observe, .tick = tick, .destroy = destroy};
  return &self->face;
}

static const culprit_option limit_option = {
    sizeof(culprit_option), "limit", "3", "Retrains within a minute that are still normal.", 1, 1000,
    CULPRIT_OPTION_INTEGER, 0};
static const culprit_option* const options[] = {&limit_option};

static const culprit_description description = {.size = sizeof description,
                                                .abi_major = CULPRIT_ABI_MAJOR,
                                                .abi_minor = CULPRIT_ABI_MINOR,
                                                .name = "link_watch",
                                                .version = "1.0",
                                                .vendor = "Example",
                                                .about = "Finds fabric links that retrain often.",
                                                .events = CULPRIT_BIT(CULPRIT_EVENT_LOG),
                                                .tick_ms = 10000,
                                                .options = options,
                                                .option_count = 1};
static const culprit_description* describe(void) { return &description; }

static const culprit_plugin plugin = {sizeof plugin, describe, create};
CULPRIT_EXPORT const culprit_plugin* culprit_plugin_entry_v1(void) { return &plugin; }
