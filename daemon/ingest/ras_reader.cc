#include "ingest/ras_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.h"
#include "base/text.h"
#include "ingest/decompress.h"

namespace culprit::ingest {

std::string_view after_ras_replies(std::string_view session) {
  constexpr size_t kReplies = 8;  // more commands than there are
  for (size_t i = 0; i < kReplies; ++i) {
    const size_t begin = std::min(session.find_first_not_of(" \t\r\n"), session.size());
    const size_t end = session.find('\n', begin);
    if (end == session.npos) return session;
    const std::string_view line = trim(session.substr(begin, end - begin));
    if (line != "OK" && !line.starts_with("SERVER PROTOCOL ")) return session;
    session.remove_prefix(end + 1);
  }
  return session;
}

Result<RasAnswer> parse_ras(std::string_view answer) {
  answer = after_ras_replies(answer);
  const size_t first = answer.find_first_not_of(" \t\r\n");
  if (first == answer.npos) return fail(ErrorCode::kInvalid, "is empty");
  return answer[first] == '{' ? parse_ras_json(answer) : parse_ras_text(answer);
}

Result<RasAnswer> read_ras(const SourceFile& file) {
  auto reader = Decompressor::open(file);
  if (!reader) return tl::unexpected(reader.error());
  std::string bytes;
  (void)reader->read_up_to(limits::kRasBytes + 1, bytes);  // the parser refuses what is larger
  if (reader->problem()) return fail(ErrorCode::kInvalid, file.path + ": " + reader->problem()->what);
  auto out = parse_ras(bytes);
  if (!out) return fail(out.error().code, fmt::format("{}: {}", file.path, out.error().text));
  return out;
}

}  // namespace culprit::ingest
