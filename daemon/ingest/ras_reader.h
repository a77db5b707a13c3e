// Parses an answer of NCCL's RAS service, in the text form (2.24 on) or as JSON (2.28.7 on). Pure except for
// read_ras(), which reads the file; any thread. Answers are untrusted and may be cut anywhere: JSON that is
// cut is an error, text is parsed up to its end if its table of communicators is whole.
#pragma once

#include <string_view>

#include "base/status.h"
#include "ingest/source_list.h"
#include "model/ras.h"

namespace culprit::ingest {

// What follows the replies to the commands before the question, which a saved session keeps:
// "SERVER PROTOCOL 2", "OK".
std::string_view after_ras_replies(std::string_view session);

// Whether the beginning of a text is that of an answer, or of a session.
bool is_ras_text(std::string_view head);

// The error says what is wrong, without a subject: "is cut off or damaged".
Result<RasAnswer> parse_ras(std::string_view answer);
// The error is a sentence with the path as its subject.
Result<RasAnswer> read_ras(const SourceFile& file);

// The two forms; parse_ras() chooses.
Result<RasAnswer> parse_ras_json(std::string_view answer);
Result<RasAnswer> parse_ras_text(std::string_view answer);

}  // namespace culprit::ingest
