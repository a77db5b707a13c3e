#include "ingest/ras_reader.h"

#include <fmt/format.h>

#include "base/limits.h"
#include "ingest/decompress.h"

namespace culprit::ingest {

Result<RasAnswer> parse_ras(std::string_view answer) {
  const size_t first = answer.find_first_not_of(" \t\r\n");
  if (first == answer.npos) return fail(ErrorCode::kInvalid, "is empty");
  return answer[first] == '{' ? parse_ras_json(answer) : parse_ras_text(answer);
}

Result<RasAnswer> read_ras(const SourceFile& file) {
  auto reader = Decompressor::open(file);
  if (!reader) return tl::unexpected(reader.error());
  constexpr size_t kStep = 1 << 20;
  std::string bytes;
  size_t got = 0;
  do {
    bytes.resize(bytes.size() + kStep);
    got = reader->read(bytes.data() + bytes.size() - kStep, kStep);
    bytes.resize(bytes.size() - kStep + got);
  } while (got == kStep && bytes.size() <= limits::kRasBytes);
  if (reader->problem()) return fail(ErrorCode::kInvalid, file.path + ": " + reader->problem()->what);
  auto out = parse_ras(bytes);
  if (!out) return fail(out.error().code, fmt::format("{}: {}", file.path, out.error().text));
  return out;
}

}  // namespace culprit::ingest
