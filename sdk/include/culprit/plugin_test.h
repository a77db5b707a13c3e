/* Tests of detectors without the daemon: loads one, feeds it events, collects what it finds. C11 and C++11,
 * header only, needs libc (and -ldl before glibc 2.34).
 *
 *   const char* options[] = {"limit=3", NULL};
 *   culprit_test* test = culprit_test_open("./fan_watch.so", options);
 *   culprit_test_line(test, 0, "fan 2: 0 rpm");
 *   culprit_test_tick(test, INT64_C(1000000000));
 *   CULPRIT_TEST_CHECK(culprit_test_count(test) == 1);
 *   CULPRIT_TEST_CHECK(strcmp(culprit_test_finding(test, 0)->id, "fan.stopped") == 0);
 *   culprit_test_close(test);
 *
 * It refuses what the daemon refuses: options that are not described, findings that are invalid; and words
 * that plugin.h does not list, which the daemon takes as unknown. A mistake of the plugin or the test ends
 * the program with a sentence on standard error: a test has nothing to save. One thread. Findings and texts
 * belong to the test, until culprit_test_close. */
#ifndef CULPRIT_PLUGIN_TEST_H
#define CULPRIT_PLUGIN_TEST_H

#include <culprit/plugin.h>

#include <dlfcn.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define CULPRIT_TEST_FN __attribute__((unused)) static
#else
#define CULPRIT_TEST_FN static
#endif

/* Holds in release builds too, unlike assert. */
#define CULPRIT_TEST_CHECK(condition) \
  ((condition) ? (void)0 : culprit_test_fail("%s:%d: %s does not hold", __FILE__, __LINE__, #condition))

typedef struct culprit_test_entry {
  culprit_detector_finding finding; /* its texts and values are copies */
  struct culprit_test_entry* next;
} culprit_test_entry;

typedef struct culprit_test {
  culprit_host host;
  void* library; /* NULL: of culprit_test_start */
  const culprit_plugin* plugin;
  const culprit_description* description;
  culprit_detector* detector;
  const char** options; /* "name=value", by the index in the description; NULL: the default */
  culprit_test_entry *first, *last;
  uint64_t count;
  uint64_t log_lines;
  char log[1024]; /* the last line */
} culprit_test;

CULPRIT_TEST_FN void culprit_test_fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  exit(1);
}

CULPRIT_TEST_FN void* culprit_test_memory(size_t bytes) {
  void* memory = calloc(1, bytes ? bytes : 1);
  if (!memory) culprit_test_fail("out of memory");
  return memory;
}

CULPRIT_TEST_FN const char* culprit_test_copy(const char* text) {
  size_t bytes = text ? strlen(text) + 1 : 1;
  char* copy = (char*)culprit_test_memory(bytes);
  if (text) memcpy(copy, text, bytes);
  return copy;
}

/* ---- The host that the detector sees ---- */

CULPRIT_TEST_FN culprit_test* culprit_test_of(const culprit_host* host) {
  return (culprit_test*)host->context;
}

CULPRIT_TEST_FN void culprit_test_log(const culprit_host* host, uint32_t severity, const char* text) {
  culprit_test* test = culprit_test_of(host);
  ++test->log_lines;
  snprintf(test->log, sizeof test->log, "%s", text ? text : "");
  if (getenv("CULPRIT_TEST_LOG")) fprintf(stderr, "log %u: %s\n", severity, test->log);
}

CULPRIT_TEST_FN const char* culprit_test_why_invalid(const culprit_detector_finding* f) {
  size_t id = f->id ? strlen(f->id) : 0;
  if (!CULPRIT_HAS(f, culprit_detector_finding, value_count)) return "its size is too small";
  if (id < 1 || id > 64 || strspn(f->id, "abcdefghijklmnopqrstuvwxyz0123456789._-") != id) {
    return "its id is not 1 to 64 of [a-z0-9._-]";
  }
  if (strncmp(f->id, "culprit.", 8) == 0) return "its id begins with culprit.";
  if (!f->title || !*f->title) return "it has no title";
  if (f->severity > CULPRIT_FATAL) return "its severity is out of range";
  if (f->state > CULPRIT_CLEARED) return "its state is out of range";
  if (!(f->confidence >= 0 && f->confidence <= 1)) return "its confidence is not 0 to 1";
  if (f->rank < CULPRIT_NONE || f->device < CULPRIT_NONE) return "its rank or device is below -1";
  if (f->device > 63) return "its device is above 63";
  if (f->value_count > 64) return "it has more than 64 values";
  for (uint64_t i = 0; i < f->value_count; ++i) {
    if (!f->values[i] || !f->values[i]->name || !*f->values[i]->name) return "a value has no name";
    for (uint64_t j = 0; j < i; ++j) {
      if (strcmp(f->values[i]->name, f->values[j]->name) == 0) return "two values have one name";
    }
  }
  return NULL;
}

/* ---- Words: those of the table in plugin.h ---- */

CULPRIT_TEST_FN const char* const culprit_test_categories[] = {"hardware", "user",    "framework",
                                                               "platform", "unknown", NULL};
CULPRIT_TEST_FN const char* const culprit_test_components[] = {
    "gpu",         "gpu_memory", "nvlink",     "pcie",         "network", "nccl_comm", "host_memory",
    "host_kernel", "storage",    "cpu",        "cuda_runtime", "driver",  "framework", "user_code",
    "user_config", "user_data",  "dependency", "platform",     "numeric", "unknown",   NULL};
CULPRIT_TEST_FN const char* const culprit_test_symptoms[] = {"launch_failure", "crash", "hang", "slowdown",
                                                             "numeric",        "other", NULL};
CULPRIT_TEST_FN const char* const culprit_test_actions[] = {
    "isolate", "check", "restart", "rollback", "retry", "mitigate", "fix", "none", NULL};
CULPRIT_TEST_FN const char* const culprit_test_restarts[] = {"never", "elsewhere", "older", "later",
                                                             "same",  "unknown",   NULL};

/* How many bytes of a text must change to make the other one of it; texts of at most 63 bytes. */
CULPRIT_TEST_FN size_t culprit_test_distance(const char* a, const char* b) {
  size_t row[64], length = strlen(b);
  if (length > 63) return length;
  for (size_t j = 0; j <= length; ++j) row[j] = j;
  for (size_t i = 0; a[i]; ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < length; ++j) {
      size_t changed = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      if (row[j] + 1 < changed) changed = row[j] + 1;
      if (diagonal + 1 < changed) changed = diagonal + 1;
      row[j + 1] = changed;
    }
  }
  return row[length];
}

CULPRIT_TEST_FN void culprit_test_check_word(const char* id, const char* member, const char* word,
                                             const char* const* words) {
  const char* nearest = NULL;
  size_t least = 0;
  if (!word || !*word) return;
  for (; *words; ++words) {
    size_t distance = culprit_test_distance(word, *words);
    if (distance == 0) return;
    if (!nearest || distance < least) nearest = *words, least = distance;
  }
  if (nearest && least <= (strlen(word) + 2) / 3) {
    culprit_test_fail("finding %s: %s '%s' is no word of culprit/plugin.h; did you mean '%s'?", id, member,
                      word, nearest);
  }
  culprit_test_fail("finding %s: %s '%s' is no word of culprit/plugin.h", id, member, word);
}

CULPRIT_TEST_FN int32_t culprit_test_emit(const culprit_host* host, const culprit_detector_finding* from) {
  culprit_test* test = culprit_test_of(host);
  const char* why = culprit_test_why_invalid(from);
  if (why) culprit_test_fail("finding %s is invalid: %s", from->id ? from->id : "(null)", why);
  culprit_test_check_word(from->id, "category", from->category, culprit_test_categories);
  culprit_test_check_word(from->id, "component", from->component, culprit_test_components);
  culprit_test_check_word(from->id, "symptom", from->symptom, culprit_test_symptoms);
  culprit_test_check_word(from->id, "action", from->action, culprit_test_actions);
  if (CULPRIT_HAS(from, culprit_detector_finding, restart))
    culprit_test_check_word(from->id, "restart", from->restart, culprit_test_restarts);
  culprit_test_entry* entry = (culprit_test_entry*)culprit_test_memory(sizeof *entry);
  culprit_detector_finding* to = &entry->finding;
  memcpy(to, from, sizeof *to < from->size ? sizeof *to : from->size);
  const char** texts[] = {&to->id,      &to->title,  &to->text,   &to->category, &to->component,
                          &to->symptom, &to->action, &to->remedy, &to->host,     &to->job,
                          &to->peer,    &to->part,   &to->restart};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) *texts[i] = culprit_test_copy(*texts[i]);
  const culprit_value** values =
      (const culprit_value**)culprit_test_memory(from->value_count * sizeof(culprit_value*));
  for (uint64_t i = 0; i < from->value_count; ++i) {
    culprit_value* value = (culprit_value*)culprit_test_memory(sizeof *value);
    *value = *from->values[i];
    value->name = culprit_test_copy(value->name);
    values[i] = value;
  }
  to->values = values;
  if (test->last) {
    test->last->next = entry;
  } else {
    test->first = entry;
  }
  test->last = entry;
  ++test->count;
  return CULPRIT_OK;
}

CULPRIT_TEST_FN const char* culprit_test_option(const culprit_host* host, const char* name) {
  const culprit_test* test = culprit_test_of(host);
  for (uint64_t i = 0; i < test->description->option_count; ++i) {
    const culprit_option* option = test->description->options[i];
    if (strcmp(option->name, name)) continue;
    const char* given = test->options[i];
    return given ? strchr(given, '=') + 1 : option->default_value;
  }
  return NULL;
}

CULPRIT_TEST_FN int32_t culprit_test_budget(const culprit_host* host, culprit_budget* budget) {
  uint64_t size = budget->size;
  (void)host;
  memset(budget, 0, size < sizeof *budget ? size : sizeof *budget); /* 0: no limit */
  budget->size = size;
  return CULPRIT_OK;
}

CULPRIT_TEST_FN const void* culprit_test_extension(const culprit_host* host, const char* id) {
  (void)host, (void)id;
  return NULL;
}

/* ---- Start and end ---- */

CULPRIT_TEST_FN void culprit_test_set_option(culprit_test* test, const char* text) {
  const char* equals = strchr(text, '=');
  size_t length = equals ? (size_t)(equals - text) : 0;
  for (uint64_t i = 0; i < test->description->option_count; ++i) {
    const culprit_option* option = test->description->options[i];
    char* end = NULL;
    if (strlen(option->name) != length || strncmp(option->name, text, length)) continue;
    if (option->type == CULPRIT_OPTION_INTEGER || option->type == CULPRIT_OPTION_NUMBER) {
      double value = strtod(equals + 1, &end);
      if (!equals[1] || *end) culprit_test_fail("option %s is not a number", text);
      if (option->minimum != option->maximum && (value < option->minimum || value > option->maximum)) {
        culprit_test_fail("option %s is not within %g to %g", text, option->minimum, option->maximum);
      }
    } else if (option->type == CULPRIT_OPTION_BOOLEAN && strcmp(equals, "=true") &&
               strcmp(equals, "=false")) {
      culprit_test_fail("option %s is not true or false", text);
    }
    test->options[i] = culprit_test_copy(text);
    return;
  }
  culprit_test_fail("option %s: the plugin describes no such option", text);
}

/* A detector of a plugin that is linked into the test. `options`: "name=value", NULL at the end; or NULL. */
CULPRIT_TEST_FN culprit_test* culprit_test_start(const culprit_plugin* plugin, const char* const* options) {
  culprit_test* test = (culprit_test*)culprit_test_memory(sizeof *test);
  const culprit_description* about = plugin->describe();
  test->plugin = plugin;
  test->description = about;
  if (!about || about->abi_major != CULPRIT_ABI_MAJOR)
    culprit_test_fail("the plugin is not of ABI version 1");
  if (!about->name || !*about->name ||
      strspn(about->name, "abcdefghijklmnopqrstuvwxyz0123456789_") != strlen(about->name)) {
    culprit_test_fail("the plugin's name is not of [a-z0-9_]");
  }
  test->options = (const char**)culprit_test_memory(about->option_count * sizeof(char*));
  for (; options && *options; ++options) culprit_test_set_option(test, *options);
  test->host.size = sizeof test->host;
  test->host.context = test;
  test->host.version = "0.1.0";
  test->host.name = "test-host";
  test->host.log = culprit_test_log;
  test->host.emit = culprit_test_emit;
  test->host.option = culprit_test_option;
  test->host.budget = culprit_test_budget;
  test->host.extension = culprit_test_extension;
  test->detector = plugin->create(&test->host);
  if (!test->detector) culprit_test_fail("create failed: %s", test->log);
  if (about->events && !test->detector->observe) culprit_test_fail("it wants events and has no observe");
  if (about->tick_ms && !test->detector->tick) culprit_test_fail("it wants ticks and has no tick");
  return test;
}

/* A detector of the library at `path`. */
CULPRIT_TEST_FN culprit_test* culprit_test_open(const char* path, const char* const* options) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) culprit_test_fail("%s", dlerror());
  const culprit_plugin* (*entry)(void) = NULL;
  void* symbol = dlsym(library, "culprit_plugin_entry_v1");
  if (!symbol) culprit_test_fail("%s exports no culprit_plugin_entry_v1", path);
  memcpy(&entry, &symbol, sizeof entry); /* ISO C has no cast between them */
  culprit_test* test = culprit_test_start(entry(), options);
  test->library = library;
  return test;
}

CULPRIT_TEST_FN void culprit_test_close(culprit_test* test) {
  test->detector->destroy(test->detector);
  for (culprit_test_entry* entry = test->first; entry;) {
    culprit_test_entry* next = entry->next;
    const culprit_detector_finding* f = &entry->finding;
    const char* texts[] = {f->id,     f->title, f->text, f->category, f->component, f->symptom, f->action,
                           f->remedy, f->host,  f->job,  f->peer,     f->part,      f->restart};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) free((void*)texts[i]);
    for (uint64_t i = 0; i < f->value_count; ++i) {
      free((void*)f->values[i]->name);
      free((void*)f->values[i]);
    }
    free((void*)f->values);
    free(entry);
    entry = next;
  }
  for (uint64_t i = 0; i < test->description->option_count; ++i) free((void*)test->options[i]);
  free(test->options);
  if (test->library) dlclose(test->library);
  free(test);
}

/* ---- Input ---- */

/* Any event. Kinds that the plugin does not want are left out, as the daemon does. */
CULPRIT_TEST_FN int32_t culprit_test_event(culprit_test* test, const culprit_event* event) {
  const culprit_event* batch[1] = {event};
  if (!(test->description->events & CULPRIT_BIT(event->kind))) return CULPRIT_OK;
  return test->detector->observe(test->detector, batch, 1);
}

CULPRIT_TEST_FN culprit_event culprit_test_head(uint32_t kind, const void* body) {
  culprit_event event;
  memset(&event, 0, sizeof event);
  event.size = sizeof event;
  event.kind = kind;
  event.version = 1;
  event.job = "";
  event.host = "test-host";
  event.source = "test";
  event.rank = event.device = CULPRIT_NONE;
  event.body = body;
  return event;
}

/* A line of a log, at a time. Its template is its text. */
CULPRIT_TEST_FN int32_t culprit_test_line(culprit_test* test, int64_t time_ns, const char* text) {
  culprit_line line;
  memset(&line, 0, sizeof line);
  line.size = sizeof line;
  line.text = line.message_template = text;
  line.text_bytes = strlen(text);
  culprit_event event = culprit_test_head(CULPRIT_EVENT_LOG, &line);
  event.time_ns = time_ns;
  return culprit_test_event(test, &event);
}

/* A number of a rank at a step. */
CULPRIT_TEST_FN int32_t culprit_test_metric(culprit_test* test, int64_t rank, int64_t step, const char* name,
                                            double value) {
  culprit_metric metric = {sizeof metric, name, value, step};
  culprit_event event = culprit_test_head(CULPRIT_EVENT_METRIC, &metric);
  event.rank = rank;
  return culprit_test_event(test, &event);
}

/* A number of the host. */
CULPRIT_TEST_FN int32_t culprit_test_counter(culprit_test* test, int64_t time_ns, const char* name,
                                             double value) {
  culprit_counter counter = {sizeof counter, name, value};
  culprit_event event = culprit_test_head(CULPRIT_EVENT_COUNTER, &counter);
  event.time_ns = time_ns;
  return culprit_test_event(test, &event);
}

CULPRIT_TEST_FN int32_t culprit_test_tick(culprit_test* test, int64_t now_ns) {
  return test->detector->tick(test->detector, now_ns);
}

/* ---- Output ---- */

CULPRIT_TEST_FN uint64_t culprit_test_count(const culprit_test* test) { return test->count; }

/* The finding with an index from 0; NULL: there is none. */
CULPRIT_TEST_FN const culprit_detector_finding* culprit_test_finding(const culprit_test* test,
                                                                     uint64_t index) {
  const culprit_test_entry* entry = test->first;
  while (entry && index--) entry = entry->next;
  return entry ? &entry->finding : NULL;
}

/* How many findings have this id and state. */
CULPRIT_TEST_FN uint64_t culprit_test_count_of(const culprit_test* test, const char* id, uint32_t state) {
  uint64_t count = 0;
  for (const culprit_test_entry* entry = test->first; entry; entry = entry->next) {
    count += entry->finding.state == state && strcmp(entry->finding.id, id) == 0;
  }
  return count;
}

/* A value of a finding by its name; NaN: it has none. */
CULPRIT_TEST_FN double culprit_test_value(const culprit_detector_finding* finding, const char* name) {
  for (uint64_t i = 0; i < finding->value_count; ++i) {
    if (strcmp(finding->values[i]->name, name) == 0) return finding->values[i]->value;
  }
  return NAN;
}

#ifdef __cplusplus
}
#endif
#endif
