// The verbs of `culprit`. Each adds its options to the command line, and runs when it was named: its result
// is the exit status (formats.md section 7). What a verb prints goes to standard output, what went wrong to
// standard error.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"

namespace culprit::cli {

constexpr int kDone = 0;
constexpr int kFound = 1;   // with --exit-code: a diagnosis was made; what was to be checked is wrong
constexpr int kUnable = 2;  // usage, or what was asked for could not be done

// Set by a verb's callback; main runs it after the command line was parsed whole.
using Run = std::function<int()>;

void add_diagnose(CLI::App& app, Run& run);
void add_templates(CLI::App& app, Run& run);
void add_pool(CLI::App& app, Run& run);
void add_simulate(CLI::App& app, Run& run);
void add_bench(CLI::App& app, Run& run);
void add_rules(CLI::App& app, Run& run);
void add_doctor(CLI::App& app, Run& run);
// Of a running daemon.
void add_status(CLI::App& app, Run& run);
void add_jobs(CLI::App& app, Run& run);
void add_report(CLI::App& app, Run& run);
void add_watch(CLI::App& app, Run& run);
void add_hosts(CLI::App& app, Run& run);
void add_confirm(CLI::App& app, Run& run);
void add_clear(CLI::App& app, Run& run);
void add_evidence(CLI::App& app, Run& run);
void add_bundle(CLI::App& app, Run& run);

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
