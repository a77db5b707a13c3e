// The verbs of `culprit`. Each verb adds its options to the command line and runs if chosen. It returns the
// exit status (formats.md section 7). Output goes to standard output, errors to standard error.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "cli/command.h"

namespace culprit::cli {

constexpr int kDone = 0;
constexpr int kFound = 1;   // with --exit-code: there is a diagnosis, or a check failed
constexpr int kUnable = 2;  // usage error, or the request failed

// Set by a verb's callback; main runs it after the whole command line is parsed.
using Run = std::function<int()>;

constexpr const char* kAboutCulprit =
    "Tells why a large training job failed, hangs, slowed down or went numerically wrong,\n"
    "and which host, device or link to take out.";

// All verbs, examples and the version.
void add_verbs(Command& app, Run& run);

void add_run_command(Command& app, Run& run);
void add_diagnose(Command& app, Run& run);
void add_templates(Command& app, Run& run);
void add_stacks(Command& app, Run& run);
void add_pool(Command& app, Run& run);
void add_simulate(Command& app, Run& run);
void add_bench(Command& app, Run& run);
void add_rules(Command& app, Run& run);
void add_plugin(Command& app, Run& run);
void add_node_check(Command& app, Run& run);
void add_doctor(Command& app, Run& run);
// Verbs that query a running daemon.
void add_status(Command& app, Run& run);
void add_cluster(Command& app, Run& run);
void add_jobs(Command& app, Run& run);
void add_report(Command& app, Run& run);
void add_diff(Command& app, Run& run);
void add_mcp(Command& app, Run& run);
void add_watch(Command& app, Run& run);
void add_hosts(Command& app, Run& run);
void add_confirm(Command& app, Run& run);
void add_clear(Command& app, Run& run);
void add_advise(Command& app, Run& run);
void add_alert(Command& app, Run& run);
void add_maintenance(Command& app, Run& run);
void add_recover(Command& app, Run& run);
void add_page(Command& app, Run& run);
void add_checkpoint(Command& app, Run& run);
void add_evidence(Command& app, Run& run);
void add_bundle(Command& app, Run& run);

// Prints "culprit: SENTENCE" on standard error with control characters escaped.
void report_error(const std::string& sentence);

// Writes the whole text to standard output. On failure (a full disk) prints an error and returns false. A
// closed pipe is no failure, for example with `head`.
[[nodiscard]] bool print(const std::string& text);

// Writes a temporary file and renames it, so readers never see a partial file.
Status write_file(const std::string& path, const std::string& text);

}  // namespace culprit::cli
