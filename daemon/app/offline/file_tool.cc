#include "app/offline/file_tool.h"

#include <filesystem>
#include <fstream>

#include "ingest/recognise.h"

namespace culprit::app {

std::optional<std::string_view> decompressor_of(const std::string& path) {
  constexpr std::streamsize kMagicBytes = 64;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string head(kMagicBytes, '\0');
  file.read(head.data(), kMagicBytes);
  head.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  switch (ingest::compression_of(head)) {
    case ingest::Compression::kZstd:
      return "zstd";
    case ingest::Compression::kGzip:
      return "gzip";
    case ingest::Compression::kXz:
      return "xz";
    case ingest::Compression::kNone:
      break;
  }
  return "";
}

}  // namespace culprit::app
