// Messages about copies of checkpoints: between the agents of two hosts, and between `culprit checkpoint
// restore` and the agent of its host. Plain values and their encoding.
//
// A connection carries messages: "CC", type u16, size of the body u32, body; numbers little-endian. The
// connecting side begins with Hello. To store, it offers a manifest, sends what the other side lacks, and
// commits. To restore, it asks for a list and then for one copy, file by file. The receiver of data
// acknowledges it, and the sender keeps at most kWindowBytes unacknowledged.
//
// Values own their data. Pure functions, any thread; a Splitter belongs to one connection. Memory is bounded
// by the received bytes, and no input fails an assertion.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "model/message_frame.h"

namespace culprit::copies {

constexpr uint16_t kVersion = 1;
constexpr size_t kHeaderBytes = kMessageHeaderBytes;
// Files of one checkpoint on one host, and the bytes of their paths together.
constexpr size_t kFiles = 4096;
constexpr size_t kPathsBytes = 512 << 10;
constexpr size_t kPathBytes = 1024;
constexpr size_t kPointers = 8, kPointerBytes = 4096;
constexpr size_t kEntries = 512;  // of a list
constexpr size_t kDataBytes = 1 << 20;
// Bytes of a Data as sent here, and bytes queued in a socket.
constexpr size_t kChunkBytes = 256 << 10, kSocketBytes = 1 << 20;
constexpr uint64_t kFileBytes = uint64_t{1} << 48;
// Data without an acknowledgement: enough for 100 MB/s at 40 ms.
constexpr uint64_t kWindowBytes = 4 << 20;
// Limits of a message: of the first one, and of later ones (a manifest of kFiles files).
constexpr size_t kFirstMessageBytes = 4096;
constexpr size_t kMessageBytes = 1536 << 10;

using Digest = std::array<uint8_t, 32>;  // SHA-256

struct File {
  std::string path;  // relative to the manifest's root; see is_safe_path()
  uint64_t size = 0;
  TimeNs modified_ns = 0;
  uint32_t mode = 0;  // permissions only
  uint32_t uid = 0, gid = 0;
  Digest digest = {};  // zeros in an offer
  bool operator==(const File&) const = default;
};

// A small file that names the newest checkpoint, next to it. It changes with each save, so it is no file of
// the copy: a restore writes it where there is none.
struct Pointer {
  std::string path;  // relative to the manifest's root
  std::string text;
  bool operator==(const Pointer&) const = default;
};

// One checkpoint as it is on one host.
struct Manifest {
  std::string root;  // absolute: the watched folder
  std::string path;  // of the checkpoint, relative to the root; "": the root itself
  std::string format;
  int64_t step = -1;  // -1: unknown
  TimeNs changed_ns = 0;
  std::vector<File> files;
  std::vector<Pointer> pointers = {};
  bool operator==(const Manifest&) const = default;
};

uint64_t bytes_of(const Manifest& manifest);
// The uid of all files; nothing if they differ.
std::optional<uint32_t> owner_of(const Manifest& manifest);
// The root and the folder of the checkpoint: the newest copies of each are retained.
std::string series_of(const Manifest& manifest);
// Relative, without empty parts, "." and "..", and without control characters.
bool is_safe_path(std::string_view path);

// The first message of the connecting side.
struct Hello {
  uint16_t version = kVersion;
  std::string host;  // the name in its certificate; empty on a unix socket
  uint32_t uid = 0;  // of the user who asks; 0: the agent itself, or root. Ignored on a unix socket
  std::string to;    // unix socket only: the address whose copies are meant; empty: this host's
  bool operator==(const Hello&) const = default;
};
struct Welcome {
  uint16_t version = kVersion;
  std::string host;
  bool operator==(const Welcome&) const = default;
};
// Also ends the connection. `full`: there is no room now.
struct Refused {
  bool full = false;
  std::string sentence;
  bool operator==(const Refused&) const = default;
};

struct Offer {
  Manifest manifest;
  bool operator==(const Offer&) const = default;
};
struct Accepted {
  bool complete = false;       // the copy is there already
  std::vector<uint64_t> have;  // stored bytes of each file
  bool operator==(const Accepted&) const = default;
};
struct Data {
  uint32_t file = 0;  // index in the manifest
  uint64_t offset = 0;
  std::string bytes;
  bool operator==(const Data&) const = default;
};
// All bytes of the file were sent.
struct FileEnd {
  uint32_t file = 0;
  Digest digest = {};
  bool operator==(const FileEnd&) const = default;
};
// The answer to FileEnd while storing: false if the stored bytes do not match; they are discarded.
struct FileStored {
  uint32_t file = 0;
  bool equal = false;
  bool operator==(const FileStored&) const = default;
};
struct Ack {
  uint64_t bytes = 0;  // of this connection's Data, all together
  bool operator==(const Ack&) const = default;
};
struct Commit {
  bool operator==(const Commit&) const = default;
};
struct Stored {
  bool operator==(const Stored&) const = default;
};

struct List {
  bool operator==(const List&) const = default;
};
struct Entry {
  std::string id, host, root, path, format;
  int64_t step = -1;
  TimeNs changed_ns = 0, stored_ns = 0;
  uint64_t order = 0;  // rises with each stored copy
  uint32_t files = 0;
  uint64_t bytes = 0;
  bool operator==(const Entry&) const = default;
};
// Copies that the asking user may restore, the latest first.
struct Listing {
  std::vector<Entry> entries;
  bool operator==(const Listing&) const = default;
};
struct Get {
  std::string host, id;
  bool operator==(const Get&) const = default;
};
struct Found {
  Manifest manifest;  // with digests
  bool operator==(const Found&) const = default;
};
// Answered with Data up to the file's end, then FileEnd.
struct Fetch {
  uint32_t file = 0;
  bool operator==(const Fetch&) const = default;
};

// What this host copies, for `culprit checkpoint list`. Unix socket only.
struct Ask {
  bool operator==(const Ask&) const = default;
};
struct Copied {
  std::string root, path;  // of the checkpoint
  std::string to;          // HOST:PORT
  std::string state;       // "copied", "copying", "held", or why there is no copy
  TimeNs at_ns = 0;
  bool operator==(const Copied&) const = default;
};
struct Answer {
  std::vector<std::string> peers;  // addresses that the asking user may name in Hello.to
  std::vector<Copied> copies;
  bool operator==(const Answer&) const = default;
};

struct Unknown {
  uint16_t type = 0;
  bool operator==(const Unknown&) const = default;
};

// The sender still reads what the other side has of a file. A sign of life; earlier programs ignore it.
struct Reading {
  uint32_t file = 0;
  bool operator==(const Reading&) const = default;
};

// The type on the wire is the index: existing entries stay, new ones are appended.
using Message = std::variant<Unknown, Hello, Welcome, Refused, Offer, Accepted, Data, FileEnd, FileStored,
                             Ack, Commit, Stored, List, Listing, Get, Found, Fetch, Ask, Answer, Reading>;
const char* name_of(const Message& message);

// Texts beyond their limit are cut; a list is cut at its limit.
std::string encode(const Message& message);
// An error names the fault in the body, which the peer caused.
Result<Message> decode(uint16_t type, std::string_view body);

// The body of a manifest alone, as stored on disk and hashed for its name.
std::string to_bytes(const Manifest& manifest);
Result<Manifest> manifest_from(std::string_view bytes);

// Cuts the received bytes of a connection into messages.
class Splitter : public MessageBuffer {
 public:
  Splitter();
  // nullopt: more bytes are needed. After an error no message follows.
  Result<std::optional<Message>> next();
};

}  // namespace culprit::copies
