// The files below the arguments of a command, recognised and in a fixed order: that of the arguments, then,
// folder by folder, the natural one of the names (a `job.toml` in the top folder first). Plain values; any
// thread.
//
// Links met on a walk are not followed: what they lead to inside of the folder is met under its own name (and
// is not counted twice), and what lies outside of it is not asked for. The one exception is a `job.toml` in
// the top folder that links to a file inside. A link named as an argument is followed. A file that two
// arguments lead to is listed once, under the first.
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
  kJob,
  kEmpty,
  kUnread  // no text, or a machine's that is not understood: `unread` says what
};
enum class Compression : uint8_t { kNone, kZstd, kGzip, kXz };

struct SourceFile {
  std::string path;   // to open: the argument joined with the path below it; "-" is standard input
  std::string below;  // the path below the argument ('/'-separated); the file's own name for a file argument
  std::string argument;
  FileKind kind = FileKind::kLog;
  UnreadKind unread;
  Compression compression = Compression::kNone;
  uint64_t size = 0;  // on disk when it was listed; 0 for a stream
  TimeNs modified_ns = kNoTime;
  // Of a pipe or standard input only: open since it was listed, and what recognition took from it. It can be
  // read once: copies of this value share it, and the first reader takes it over.
  std::shared_ptr<File> stream;
  std::string head;
};

struct SourceList {
  std::vector<SourceFile> files;
  std::vector<Problem> problems;  // what on the walk could not be read
  // Arguments that are missing, unreadable, or neither file, folder nor pipe: exit status 2; the rest is
  // still of use.
  std::vector<Error> failed_arguments;
};

// Recognition is by content first (formats.md section 1), reading only the beginning of each file. Pipes,
// devices and sockets met on a walk are passed over. A pipe named as an argument is a stream like "-", read
// as far as recognition needs, or until `stop` (borrowed, also by what is listed; null: never) is true;
// devices and sockets fail.
SourceList list_sources(const std::vector<std::string>& arguments, const std::atomic<bool>* stop = nullptr);

}  // namespace culprit::ingest
