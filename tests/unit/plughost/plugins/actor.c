/* A plugin that does what the log says: its lines are commands. It counts the events that are none. */
#include <culprit/plugin.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef ACTOR_VERSION
#define ACTOR_VERSION "1"
#endif
#ifndef ACTOR_ABI
#define ACTOR_ABI CULPRIT_ABI_MAJOR
#endif

typedef struct actor {
  culprit_detector base;
  const culprit_host* host;
  uint64_t events, ticks, loaded;
} actor;

static int32_t emit(actor* self, const char* id, const char* text, double number) {
  const culprit_value value = {sizeof value, "number", number};
  const culprit_value* values[] = {&value};
  culprit_detector_finding finding;
  memset(&finding, 0, sizeof finding);
  finding.size = sizeof finding;
  finding.id = id;
  finding.title = "The actor was asked";
  finding.text = text;
  finding.rank = finding.device = CULPRIT_NONE;
  finding.time_ns = CULPRIT_NO_TIME;
  finding.confidence = 1;
  finding.values = values;
  finding.value_count = 1;
  return self->host->emit(self->host, &finding);
}

/* A state that began an hour ago. */
static int32_t raise_state(actor* self) {
  culprit_detector_finding finding;
  memset(&finding, 0, sizeof finding);
  finding.size = sizeof finding;
  finding.id = "actor.raised";
  finding.title = "The actor is in a bad state";
  finding.category = "hardware";
  finding.component = "gpu";
  finding.symptom = "crash";
  finding.rank = CULPRIT_NONE;
  finding.device = 3;
  finding.time_ns = (int64_t)(time(NULL) - 3600) * 1000000000;
  finding.confidence = 1;
  finding.severity = CULPRIT_FATAL;
  finding.state = CULPRIT_RAISED;
  return self->host->emit(self->host, &finding);
}

static void hang(void) {
  for (;;) pause();
}

static char* volatile leaked; /* else the compiler leaves it out */

static void leak(size_t megabytes) {
  leaked = malloc(megabytes << 20);
  if (leaked) memset(leaked, 1, megabytes << 20);
}

/* In the process group of the plugin, until it is killed. Its number goes to the log. */
static void fork_and_stay(actor* self) {
  char text[32];
  const pid_t child = fork();
  if (child == 0) hang();
  snprintf(text, sizeof text, "child %d", (int)child);
  self->host->log(self->host, CULPRIT_INFO, text);
}

static int32_t act(actor* self, const char* command) {
  char word[32] = "";
  long number = 0;
  sscanf(command, "%31s %ld", word, &number);
  if (!strcmp(word, "report")) return emit(self, "actor.report", self->host->name, (double)self->events);
  if (!strcmp(word, "ticks")) return emit(self, "actor.ticks", "", (double)self->ticks);
  if (!strcmp(word, "loaded")) return emit(self, "actor.loaded", ACTOR_VERSION, (double)self->loaded);
  if (!strcmp(word, "option")) return emit(self, "actor.option", self->host->option(self->host, "text"), 0);
  if (!strcmp(word, "crash")) raise(SIGSEGV);
  if (!strcmp(word, "exit")) exit((int)number);
  if (!strcmp(word, "hang")) hang();
  if (!strcmp(word, "leak")) leak((size_t)number);
  if (!strcmp(word, "burn"))
    for (volatile long i = 0; i < number * 1000000; ++i) continue;
  if (!strcmp(word, "say"))
    for (; number > 0; --number) self->host->log(self->host, CULPRIT_INFO, "said");
  if (!strcmp(word, "raise")) return raise_state(self);
  if (!strcmp(word, "fork")) fork_and_stay(self);
  if (!strcmp(word, "error")) return CULPRIT_ERROR;
  if (!strcmp(word, "invalid")) emit(self, "Not an id", "", 0);
  if (!strcmp(word, "pretend")) emit(self, "culprit.plugin.crashed", "", 0);
  if (!strcmp(word, "flood"))
    for (; number > 0; --number) emit(self, "actor.flood", "", (double)number);
  if (!strcmp(word, "print"))
    for (; number > 0; --number) printf("line %ld\n", number);
  if (!strcmp(word, "print")) fflush(stdout);
  if (!strcmp(word, "malformed") && write(3, "this is no message of ours", 26) != 26) abort();
  if (!strcmp(word, "close"))
    for (int i = 0; i < 64; ++i) close(i);
  if (!strcmp(word, "environment")) return emit(self, "actor.environment", getenv("SECRET"), 0);
  if (!strcmp(word, "descriptors")) {
    int count = 0;
    for (int i = 5; i < 1024; ++i) count += fcntl(i, F_GETFD) >= 0;
    return emit(self, "actor.descriptors", "", count);
  }
  return CULPRIT_OK;
}

static int32_t observe(culprit_detector* detector, const culprit_event* const* events, uint64_t count) {
  actor* self = (actor*)detector;
  int32_t result = CULPRIT_OK;
  for (uint64_t i = 0; i < count && result == CULPRIT_OK; ++i) {
    if (events[i]->kind == CULPRIT_EVENT_LOG)
      result = act(self, ((const culprit_line*)events[i]->body)->text);
    else
      ++self->events;
  }
  return result;
}

static int32_t tick(culprit_detector* detector, int64_t now_ns) {
  (void)now_ns;
  ++((actor*)detector)->ticks;
  return CULPRIT_OK;
}

static int64_t save_state(culprit_detector* detector, void* buffer, uint64_t capacity) {
  actor* self = (actor*)detector;
  if (capacity >= sizeof self->events) memcpy(buffer, &self->events, sizeof self->events);
  return sizeof self->events;
}

static int32_t load_state(culprit_detector* detector, const void* state, uint64_t bytes) {
  actor* self = (actor*)detector;
  if (bytes != sizeof self->events) return CULPRIT_ERROR_INVALID;
  memcpy(&self->events, state, sizeof self->events);
  self->loaded = 1;
  return CULPRIT_OK;
}

static void destroy(culprit_detector* detector) { free(detector); }

static culprit_detector* create(const culprit_host* host) {
  if (!strcmp(host->option(host, "text"), "refuse")) {
    host->log(host, CULPRIT_ERR, "the device is missing");
    return NULL;
  }
  actor* self = calloc(1, sizeof *self);
  if (!self) return NULL;
  self->base.size = sizeof self->base;
  self->base.observe = observe;
  self->base.tick = tick;
  self->base.destroy = destroy;
  self->base.save_state = save_state;
  self->base.load_state = load_state;
  self->host = host;
  if (!strcmp(host->option(host, "text"), "early")) emit(self, "actor.early", "", 0);
  return &self->base;
}

static const culprit_description* describe(void) {
  static const culprit_option text = {sizeof text, "text", "by default",        "A text.",
                                      0,           0,      CULPRIT_OPTION_TEXT, 0};
  static const culprit_option limit = {sizeof limit,           "limit", "5", "A number.", 1, 10,
                                       CULPRIT_OPTION_INTEGER, 0};
  static const culprit_option* const options[] = {&text, &limit};
  static const culprit_description description = {
      sizeof description,
      ACTOR_ABI,
      CULPRIT_ABI_MINOR,
      "actor",
      ACTOR_VERSION,
      "tests",
      "Does what the log says.",
      CULPRIT_BIT(CULPRIT_EVENT_LOG) | CULPRIT_BIT(CULPRIT_EVENT_COUNTER),
      100,
      options,
      2};
  return &description;
}

CULPRIT_EXPORT const culprit_plugin* culprit_plugin_entry_v1(void) {
  static const culprit_plugin plugin = {sizeof plugin, describe, create};
  return &plugin;
}
