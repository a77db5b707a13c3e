// Parses an answer of NCCL's RAS service, in the text form (2.24 on) or as JSON (2.28.7 on). Pure except for
// read_ras(), which reads the file; any thread. Answers are untrusted and may be cut anywhere: cut JSON is an
// error; cut text is parsed if its communicator table is complete.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/limits.h"
#include "base/status.h"
#include "ingest/source_list.h"
#include "model/ras.h"

namespace culprit::ingest {

// Skips the replies to earlier commands that a saved session contains: "SERVER PROTOCOL 2", "OK".
std::string_view after_ras_replies(std::string_view session);

// Whether a text begins like a RAS answer or session.
bool is_ras_text(std::string_view head);

// Ranks and sizes beyond this limit are invalid.
constexpr uint32_t kRasSizeMost = 1 << 24;

// The next bytes of an answer, valid until the next call; empty: the end.
using NextBytes = std::function<std::string_view()>;

// Limits of what is kept of an answer. Communicators larger than the job, and ranks beyond the size of their
// communicator, are dropped.
struct RasBounds {
  size_t bytes = limits::kRasBytes;
  uint64_t held = limits::kRasHeld;  // bytes of memory
  size_t ranks = limits::kRasRanks;  // ranks over all communicators; also the limit of processes
  size_t comms = limits::kRasComms;
  uint32_t size = kRasSizeMost;  // size of a communicator
};
// Bounds for a job whose processes report `world` ranks; 0: unknown.
RasBounds ras_bounds(uint32_t world);

// Parses an answer as it arrives: JSON is never held as text. Memory is bounded by the bytes (ReadBudget) and
// by the bounds. The error says what is wrong, without a subject: "is cut off or damaged".
Result<RasAnswer> parse_ras(const NextBytes& next, const RasBounds& bounds = {});
Result<RasAnswer> parse_ras(std::string_view answer);
// The error is a sentence with the path as its subject.
Result<RasAnswer> read_ras(const SourceFile& file);

// The two forms; parse_ras() chooses. The JSON text is `first` followed by the bytes from `next`.
Result<RasAnswer> parse_ras_json(std::string_view first, const NextBytes& next, const RasBounds& bounds);
Result<RasAnswer> parse_ras_text(std::string_view answer, const RasBounds& bounds = {});

}  // namespace culprit::ingest
