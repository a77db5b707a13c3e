/* A plugin with the fault that its option names, for `culprit plugin check`. */
#include <culprit/plugin.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct shaky {
  culprit_detector base;
  const culprit_host* host;
  const char* mode;
  uint64_t events;
} shaky;

static char* volatile leaked; /* else the compiler leaves it out */

static int32_t emit(shaky* self, double number) {
  const culprit_value value = {sizeof value, "number", number};
  const culprit_value* values[] = {&value};
  culprit_detector_finding finding;
  memset(&finding, 0, sizeof finding);
  finding.size = sizeof finding;
  finding.id = "shaky.finding";
  finding.title = "A finding";
  if (!strcmp(self->mode, "word")) finding.component = "gpux";
  finding.rank = finding.device = CULPRIT_NONE;
  finding.time_ns = CULPRIT_NO_TIME;
  finding.confidence = 1;
  finding.values = values;
  finding.value_count = 1;
  return self->host->emit(self->host, &finding);
}

static int32_t observe(culprit_detector* detector, const culprit_event* const* events, uint64_t count) {
  shaky* self = (shaky*)detector;
  const uint64_t before = self->events;
  self->events += count;
  if (!strcmp(self->mode, "flood")) emit(self, 0), emit(self, 1);
  if (!strcmp(self->mode, "leak")) {
    leaked = malloc(4096);
    if (leaked) memset(leaked, 1, 4096);
  }
  if (!strcmp(self->mode, "unchecked")) {
    char* bytes = malloc(16);
    bytes[events[0]->kind] = 1;
    leaked = bytes;
    free(bytes);
  }
  if (before != 0) return CULPRIT_OK;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return emit(self, strcmp(self->mode, "clock") ? 1 : (double)now.tv_nsec + 1e9 * (double)now.tv_sec);
}

static int64_t save_state(culprit_detector* detector, void* buffer, uint64_t capacity) {
  (void)buffer, (void)capacity;
  return strcmp(((shaky*)detector)->mode, "state") ? 0 : 2 << 20;
}

static void destroy(culprit_detector* detector) {
  if (!strcmp(((shaky*)detector)->mode, "destroy")) abort();
  free(detector);
}

static culprit_detector* create(const culprit_host* host) {
  shaky* self = calloc(1, sizeof *self);
  if (!self) return NULL;
  self->base.size = sizeof self->base;
  self->base.observe = observe;
  self->base.destroy = destroy;
  self->base.save_state = save_state;
  self->host = host;
  self->mode = host->option(host, "mode");
  return &self->base;
}

static const culprit_description* describe(void) {
  static const culprit_option mode = {sizeof mode, "mode", "", "The fault.", 0, 0, CULPRIT_OPTION_TEXT, 0};
  static const culprit_option* const options[] = {&mode};
  static const culprit_description description = {sizeof description,
                                                  CULPRIT_ABI_MAJOR,
                                                  CULPRIT_ABI_MINOR,
                                                  "shaky",
                                                  "1",
                                                  "tests",
                                                  "Has a fault.",
                                                  CULPRIT_BIT(CULPRIT_EVENT_LOG),
                                                  0,
                                                  options,
                                                  1};
  return &description;
}

CULPRIT_EXPORT const culprit_plugin* culprit_plugin_entry_v1(void) {
  static const culprit_plugin plugin = {sizeof plugin, describe, create};
  return &plugin;
}

#ifdef SHAKY_SYMBOL
CULPRIT_EXPORT int shaky_helper(void);
int shaky_helper(void) { return 1; }
#endif
