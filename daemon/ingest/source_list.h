// The files below the arguments of a command, recognised and in a fixed order: by argument, then, folder by
// folder, in natural order of the names (a `job.toml` in the top folder first). Plain values; any thread.
//
// Links found on a walk are not followed. A target inside the folder is listed under its own name, once; a
// target outside is not part of the argument. The one exception is a `job.toml` in the top folder that links
// to a file inside. A link named as an argument is followed. A file below two arguments is listed once, under
// the first.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "ingest/unread.h"
#include "model/report.h"

namespace culprit::ingest {

class File;

enum class FileKind : uint8_t {
  kLog,
  kComm,
  kMetrics,
  kStacks,  // as text
  kStacksJson,
  kFlightRecorder,
  kRas,        // an answer of NCCL's RAS
  kInspector,  // operations that NCCL's Inspector wrote
  kProfiler,   // a trace of PyTorch's profiler
  kJob,
  kEmpty,
  kUnread  // binary, or a machine format without a reader; `unread` names it
};
enum class Compression : uint8_t { kNone, kZstd, kGzip, kXz };

struct SourceFile {
  std::string path;   // path to open: the argument joined with the path below it; "-" is standard input
  std::string below;  // the path below the argument ('/'-separated); the file's own name for a file argument
  std::string argument;
  FileKind kind = FileKind::kLog;
  UnreadKind unread;
  Compression compression = Compression::kNone;
  bool wide = false;  // UTF-16 text; readers get UTF-8
  uint64_t size = 0;  // on disk at the time of listing; 0 for a stream
  TimeNs modified_ns = kNoTime;
  // Only for a pipe or standard input: the open stream, with the bytes that recognition read. The stream can
  // be read once: copies of this value share it, and the first reader takes it.
  std::shared_ptr<File> stream;
  std::string head;
};

struct SourceList {
  std::vector<SourceFile> files;
  std::vector<Problem> problems;  // parts of the walk that could not be read
  // Arguments that are missing, unreadable, or of another type than file, folder or pipe: exit status 2.
  // Other arguments are still listed.
  std::vector<Error> failed_arguments;
};

// Recognition is by content first (formats.md section 1) and reads only the beginning of each file. Pipes,
// devices and sockets found on a walk are skipped with a problem. A pipe named as an argument is a stream
// like "-". Recognition reads as much of the pipe as it needs, or until `stop` is true (null: never;
// borrowed, also by listed streams). Devices and sockets as arguments are errors.
SourceList list_sources(const std::vector<std::string>& arguments, const std::atomic<bool>* stop = nullptr);

}  // namespace culprit::ingest
