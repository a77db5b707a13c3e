#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/plugin_verbs.h"

namespace culprit::cli {
namespace {

constexpr const char* kPluginNewExamples = R"(
The folder has a detector in C, its test, a CMakeLists.txt and a README.md. It needs the SDK (culprit/plugin.h)
and no daemon. The SDK is the package culprit-dev, or -DCULPRIT_SDK=FOLDER: its prefix, or sdk/ of a clone.

Examples:
  culprit plugin new fan_watch
  cmake -S fan_watch -B fan_watch/build && cmake --build fan_watch/build && ctest --test-dir fan_watch/build)";

constexpr size_t kPluginNameMax = 64;

constexpr const char* kCMake = R"(cmake_minimum_required(VERSION 3.16)
project(@NAME@ C)

# The SDK is found where it is installed, else by -DCULPRIT_SDK=PREFIX or -DCULPRIT_SDK=CLONE/sdk.
set(CULPRIT_SDK "" CACHE PATH "Prefix of an installed SDK, or sdk/ of a clone")
find_package(culprit QUIET HINTS ${CULPRIT_SDK})
if(NOT culprit_FOUND)
  message(FATAL_ERROR "The SDK of Culprit is not found: install culprit-dev, or give -DCULPRIT_SDK=FOLDER")
endif()

# @NAME@.so: the file has the name of the plugin, and exports culprit_plugin_entry_v1 alone.
culprit_add_plugin(@NAME@ src/@NAME@.c)

enable_testing()
add_executable(@NAME@_test test/@NAME@_test.c)
target_link_libraries(@NAME@_test PRIVATE culprit::plugin ${CMAKE_DL_LIBS})
add_test(NAME @NAME@ COMMAND @NAME@_test $<TARGET_FILE:@NAME@>)

# The program `culprit` tries the plugin as the daemon will run it.
find_program(CULPRIT culprit)
if(CULPRIT)
  add_test(NAME @NAME@_check COMMAND ${CULPRIT} plugin check $<TARGET_FILE:@NAME@>)
endif()
)";

constexpr const char* kSource =
    R"(/* @NAME@: reports each line of a log or of the kernel that has the phrase of the option in it. The header
 * tells what each call may do. */
#include <culprit/plugin.h>
#include <stdlib.h>
#include <string.h>

typedef struct @NAME@ {
  culprit_detector base; /* first: the daemon's pointer is ours */
  const culprit_host* host;
  const char* phrase;
} @NAME@;

static int32_t report(@NAME@* self, const culprit_event* event, const char* text) {
  culprit_detector_finding finding;
  memset(&finding, 0, sizeof finding);
  finding.size = sizeof finding;
  finding.id = "@NAME@.seen";
  finding.title = "What happened, in a few words";
  finding.text = text;
  finding.category = "hardware";
  finding.component = "unknown";
  finding.symptom = "other";
  finding.action = "check";
  finding.remedy = "What to do, in a sentence.";
  finding.host = event->host;
  finding.job = event->job;
  finding.rank = event->rank;
  finding.device = event->device;
  finding.time_ns = event->time_ns;
  finding.confidence = 0.5;
  finding.severity = CULPRIT_WARNING;
  finding.state = CULPRIT_HAPPENED;
  /* Over the limit of findings: the daemon has counted it, there is nothing to do. */
  int32_t error = self->host->emit(self->host, &finding);
  return error == CULPRIT_ERROR_LIMIT ? CULPRIT_OK : error;
}

static int32_t observe(culprit_detector* detector, const culprit_event* const* events, uint64_t count) {
  @NAME@* self = (@NAME@*)detector;
  for (uint64_t i = 0; i < count; ++i) {
    const culprit_line* line = (const culprit_line*)events[i]->body; /* of both kinds that are described */
    if (!strstr(line->text, self->phrase)) continue;
    int32_t error = report(self, events[i], line->text);
    if (error < 0) return error;
  }
  return CULPRIT_OK;
}

static void destroy(culprit_detector* detector) { free(detector); }

static culprit_detector* create(const culprit_host* host) {
  @NAME@* self = (@NAME@*)calloc(1, sizeof *self);
  if (!self) return NULL;
  self->base.size = sizeof self->base;
  self->base.observe = observe;
  self->base.destroy = destroy;
  self->host = host;
  self->phrase = host->option(host, "phrase"); /* lives as long as the host */
  return &self->base;
}

static const culprit_description* describe(void) {
  static const culprit_option phrase = {
      sizeof phrase, "phrase", "fan failed", "Lines that have this in them are reported.", 0, 0, CULPRIT_OPTION_TEXT, 0};
  static const culprit_option* const options[] = {&phrase};
  static const culprit_description description = {
      sizeof description,
      CULPRIT_ABI_MAJOR,
      CULPRIT_ABI_MINOR,
      "@NAME@",
      "0.1.0",
      "Your name",
      "What it finds, in a sentence.",
      CULPRIT_BIT(CULPRIT_EVENT_LOG) | CULPRIT_BIT(CULPRIT_EVENT_KERNEL),
      0, /* no ticks */
      options,
      sizeof options / sizeof *options};
  return &description;
}

CULPRIT_EXPORT const culprit_plugin* culprit_plugin_entry_v1(void) {
  static const culprit_plugin plugin = {sizeof plugin, describe, create};
  return &plugin;
}
)";

constexpr const char* kTest = R"(/* Runs the detector without a daemon: @NAME@_test FILE.so */
#include <culprit/plugin_test.h>

int main(int argc, char** argv) {
  const char* options[] = {"phrase=fan failed", NULL};
  culprit_test* test = culprit_test_open(argc > 1 ? argv[1] : "./@NAME@.so", options);
  culprit_test_line(test, 1, "fan 2: 4200 rpm");
  CULPRIT_TEST_CHECK(culprit_test_count(test) == 0);
  culprit_test_line(test, 2, "fan failed: 2");
  CULPRIT_TEST_CHECK(culprit_test_count_of(test, "@NAME@.seen", CULPRIT_HAPPENED) == 1);
  CULPRIT_TEST_CHECK(strcmp(culprit_test_finding(test, 0)->text, "fan failed: 2") == 0);
  culprit_test_close(test);
  return 0;
}
)";

constexpr const char* kReadme = R"(# @NAME@

What it finds, in a sentence; which events it reads; which options it has.

```
cmake -B build                              # -DCULPRIT_SDK=FOLDER if the SDK is not installed
cmake --build build
ctest --test-dir build --output-on-failure
culprit plugin check build/@NAME@.so        # as the daemon will run it
sudo install -m 644 build/@NAME@.so /etc/culprit/plugins.d/
culprit plugin list                         # within seconds: running
```

FOLDER is the prefix of an installed SDK, or `sdk/` of a clone of Culprit. Options stand in a file of
`/etc/culprit/conf.d`; `culpritd --check` tries them, `systemctl reload culpritd` applies them:

```
[[plugin]]
name = "@NAME@"
options = { phrase = "fan failed" }
```

What to change:

| what | where |
| --- | --- |
| kinds of events, interval of ticks | `events` and `tick_ms` of the description |
| options | `options` of the description; `host->option` reads one |
| what you look for | `observe`, and `tick` if there are ticks |
| what you report | `report`: a stable `id`, a `title` without numbers, a `text` with them, words of the table in `plugin.h` |

The interface is described in `culprit/plugin.h`. Replace the library by `install` or `mv`, never by writing
into the file: a running process has it mapped.
)";

std::string filled(std::string text, const std::string& name) {
  constexpr std::string_view kPlace = "@NAME@";
  for (size_t at = text.find(kPlace); at != text.npos; at = text.find(kPlace, at + name.size()))
    text.replace(at, kPlace.size(), name);
  return text;
}

// At least two words: one word may be a keyword of C or a name of its library, which would not compile.
bool is_name(const std::string& name) {
  const auto allowed = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return !name.empty() && name.size() <= kPluginNameMax && name[0] >= 'a' && name[0] <= 'z' &&
         name.find('_') != name.npos && std::all_of(name.begin(), name.end(), allowed);
}

int make(const std::string& name) {
  if (!is_name(name))
    return report_error(name +
                        ": the name of a plugin has 1 to 64 of [a-z0-9_], begins with a letter and has two "
                        "words at least, as in fan_watch"),
           kUnable;
  std::error_code error;
  if (std::filesystem::exists(name, error)) return report_error(name + ": it exists already"), kUnable;
  const std::pair<std::string, const char*> files[] = {{"CMakeLists.txt", kCMake},
                                                       {"README.md", kReadme},
                                                       {"src/" + name + ".c", kSource},
                                                       {"test/" + name + "_test.c", kTest}};
  for (const char* folder : {"/src", "/test"})
    if (!std::filesystem::create_directories(name + folder, error))
      return report_error(fmt::format("{}{}: {}", name, folder, error.message())), kUnable;
  for (const auto& [path, text] : files)
    if (const Status written = write_file(name + "/" + path, filled(text, name)); !written)
      return report_error(written.error().text), kUnable;
  return print(fmt::format(
             "{0}/: a detector and its test; build and try it, {0}/README.md goes on from there:\n"
             "  cmake -S {0} -B {0}/build && cmake --build {0}/build\n"
             "  ctest --test-dir {0}/build --output-on-failure\n"
             "If the SDK is not installed: cmake -DCULPRIT_SDK=FOLDER, its prefix or sdk/ of a clone.\n",
             name))
             ? kDone
             : kUnable;
}

}  // namespace

void add_plugin_new(Command& plugin, Run& run) {
  auto name = std::make_shared<std::string>();
  Command* verb =
      plugin.add_subcommand("new", "Make a folder with a detector that builds and passes its test");
  verb->footer(kPluginNewExamples);
  verb->add_option("NAME", *name, "Name of the plugin and of the folder, such as fan_watch")->required();
  verb->callback([name, &run] { run = [name] { return make(*name); }; });
}

}  // namespace culprit::cli
