#include "ingest/comm_file.h"

#include <fmt/format.h>

namespace culprit::ingest {

Result<CommFile> CommFile::open(const SourceFile& file) {
  auto bytes = Decompressor::open(file);
  if (!bytes) return tl::unexpected(std::move(bytes.error()));
  return over(std::move(*bytes), file.path);
}

Result<CommFile> CommFile::over(Decompressor bytes, const std::string& name) {
  std::string head(kCommHeaderBytes, '\0');
  head.resize(bytes.read(head.data(), head.size()));
  auto header = parse_comm_header(head);
  if (!header) return fail(header.error().code, name + ": " + header.error().text);
  return CommFile(std::move(bytes), name, std::move(*header));
}

void CommFile::next(std::vector<CommRecord>& out, size_t most) {
  out.resize(most);
  auto* to = reinterpret_cast<char*>(out.data());
  const size_t have = bytes_.read(to, most * kCommRecordBytes);
  const size_t whole = have / kCommRecordBytes;
  out.resize(whole);
  offset_ += have;
  if (have == most * kCommRecordBytes || problem_) return;
  if (bytes_.problem())
    problem_ = bytes_.problem();
  else if (have % kCommRecordBytes != 0)
    problem_ = Problem{name_, offset_ - have % kCommRecordBytes,
                       fmt::format("the last record is cut off after {} bytes", have % kCommRecordBytes)};
}

}  // namespace culprit::ingest
