// The verbs of `culprit`. Each adds its options to the command line, and runs when it was named: its result
// is the exit status (formats.md section 7). What a verb prints goes to standard output, what went wrong to
// standard error.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "cli/command.h"

namespace culprit::cli {

constexpr int kDone = 0;
constexpr int kFound = 1;   // with --exit-code: a diagnosis was made; what was to be checked is wrong
constexpr int kUnable = 2;  // usage, or what was asked for could not be done

// Set by a verb's callback; main runs it after the command line was parsed whole.
using Run = std::function<int()>;

void add_diagnose(Command& app, Run& run);
void add_templates(Command& app, Run& run);
void add_pool(Command& app, Run& run);
void add_simulate(Command& app, Run& run);
void add_bench(Command& app, Run& run);
void add_rules(Command& app, Run& run);
void add_doctor(Command& app, Run& run);
// Of a running daemon.
void add_status(Command& app, Run& run);
void add_jobs(Command& app, Run& run);
void add_report(Command& app, Run& run);
void add_watch(Command& app, Run& run);
void add_hosts(Command& app, Run& run);
void add_confirm(Command& app, Run& run);
void add_clear(Command& app, Run& run);
void add_evidence(Command& app, Run& run);
void add_bundle(Command& app, Run& run);

// "culprit: SENTENCE" on standard error, control characters escaped.
void complain(const std::string& sentence);

// Writes all of it to standard output. False where that fails, and says so (a full disk); a reader that went
// away, as `head` does, has what it wanted.
[[nodiscard]] bool print(const std::string& text);

// Columns: what the environment asks for, else what the terminal has, else what a ticket shows well.
size_t page_width();

// Written beside and renamed, so that a reader never sees half a file.
Status write_file(const std::string& path, const std::string& text);

}  // namespace culprit::cli
