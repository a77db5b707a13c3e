#include "model/copies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/text.h"
#include "model/message_body.h"

namespace culprit::copies {
namespace {

constexpr ProtocolMark kMark = {{'C', 'C'}, "what came is no message about copies"};
constexpr size_t kHostBytes = 253, kSentenceBytes = 1024, kFormatBytes = 32, kIdBytes = 64,
                 kAddressBytes = 300;
constexpr size_t kPeers = 64;
constexpr uint64_t kTotalBytes = uint64_t{1} << 50;

template <class Io, class S>
void path_text(Io& io, S& text) {
  io.text(text, kPathBytes, "a path is too long");
}
template <class Io, class T>
void time_since_1970(Io& io, T& time_ns) {
  io.number(time_ns);
  io.require(time_ns >= 0, "a time is before 1970");
}
bool is_root(std::string_view path) {
  return path.starts_with('/') && (path.size() == 1 || is_safe_path(path.substr(1)));
}

template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, Manifest>
void fields(Io& io, M& m) {
  path_text(io, m.root);
  path_text(io, m.path);
  io.text(m.format, kFormatBytes, "the format's name is too long");
  io.number(m.step);
  time_since_1970(io, m.changed_ns);
  io.require(is_root(m.root), "its folder is no usable path");
  io.require(m.path.empty() || is_safe_path(m.path), "it is at no usable path");
  uint64_t total = 0, names = 0;
  io.list(m.files, kFiles, [&](auto& file) {
    path_text(io, file.path);
    io.require(is_safe_path(file.path), "a file has no usable path");
    io.number(file.size);
    io.require(file.size <= kFileBytes, "a file is too large");
    time_since_1970(io, file.modified_ns);
    io.number(file.mode);
    io.require((file.mode & ~0777u) == 0, "a file has odd permissions");
    io.number(file.uid);
    io.number(file.gid);
    for (auto& byte : file.digest) io.number(byte);
    total += file.size;
    names += file.path.size();
    io.require(total <= kTotalBytes && names <= kPathsBytes, "it has too much");
  });
  io.require(!m.files.empty(), "it has no files");
  io.list(m.pointers, kPointers, [&](auto& pointer) {
    path_text(io, pointer.path);
    io.require(is_safe_path(pointer.path), "a file has no usable path");
    io.text(pointer.text, kPointerBytes, "a file that names it is too long");
  });
  if constexpr (!std::is_const_v<M>) {
    std::vector<std::string_view> paths;
    for (const File& file : m.files) paths.push_back(file.path);
    std::ranges::sort(paths);
    io.require(std::ranges::adjacent_find(paths) == paths.end(), "a file appears twice");
  }
}

template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, Hello>
void fields(Io& io, M& m) {
  io.number(m.version);
  io.text(m.host, kHostBytes, "the host's name is too long");
  io.number(m.uid);
  io.text(m.to, kAddressBytes, "the address is too long");
}
template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, Welcome>
void fields(Io& io, M& m) {
  io.number(m.version);
  io.text(m.host, kHostBytes, "the host's name is too long");
}
template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, Refused>
void fields(Io& io, M& m) {
  io.flag(m.full);
  io.text(m.sentence, kSentenceBytes, "a sentence is too long");
}
template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, Offer> || std::is_same_v<std::remove_const_t<M>, Found>
void fields(Io& io, M& m) { fields(io, m.manifest); }
template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, Accepted>
void fields(Io& io, M& m) {
  io.flag(m.complete);
  io.list(m.have, kFiles, [&](auto& have) { io.number(have); });
}
template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, Data>
void fields(Io& io, M& m) {
  io.number(m.file);
  io.number(m.offset);
  io.bytes(m.bytes);
  io.require(!m.bytes.empty() && m.bytes.size() <= kDataBytes, "it has no bytes, or too many");
}
template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, FileEnd>
void fields(Io& io, M& m) {
  io.number(m.file);
  for (auto& byte : m.digest) io.number(byte);
}
template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, FileStored>
void fields(Io& io, M& m) {
  io.number(m.file);
  io.flag(m.equal);
}
template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, Ack>
void fields(Io& io, M& m) { io.number(m.bytes); }
template <class Io, class M>
requires std::is_empty_v<M>
void fields(Io&, M&) {}
template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, Listing>
void fields(Io& io, M& m) {
  io.list(m.entries, kEntries, [&](auto& entry) {
    io.text(entry.id, kIdBytes, "a copy's name is too long");
    io.text(entry.host, kHostBytes, "the host's name is too long");
    path_text(io, entry.root);
    path_text(io, entry.path);
    io.text(entry.format, kFormatBytes, "the format's name is too long");
    io.number(entry.step);
    io.number(entry.changed_ns);
    io.number(entry.stored_ns);
    io.number(entry.order);
    io.number(entry.files);
    io.number(entry.bytes);
  });
}
template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, Get>
void fields(Io& io, M& m) {
  io.text(m.host, kHostBytes, "the host's name is too long");
  io.text(m.id, kIdBytes, "a copy's name is too long");
}
template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, Fetch> || std::is_same_v<std::remove_const_t<M>, Reading>
void fields(Io& io, M& m) { io.number(m.file); }
template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, Answer>
void fields(Io& io, M& m) {
  io.list(m.peers, kPeers, [&](auto& peer) { io.text(peer, kAddressBytes, "the address is too long"); });
  io.list(m.copies, kEntries, [&](auto& copied) {
    path_text(io, copied.root);
    path_text(io, copied.path);
    io.text(copied.to, kAddressBytes, "the address is too long");
    io.text(copied.state, kSentenceBytes, "a sentence is too long");
    io.number(copied.at_ns);
  });
}
template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, Unknown>
void fields(Io&, M&) {}

constexpr const char* kNames[] = {
    "unknown message", "hello",       "welcome", "refusal",  "offer",  "acceptance",     "data",
    "end of a file",   "stored file", "ack",     "commit",   "stored", "list request",   "list",
    "request",         "manifest",    "fetch",   "question", "answer", "sign of reading"};
static_assert(std::size(kNames) == std::variant_size_v<Message>);

template <class T>
Result<T> read_body(std::string_view body, const char* name) {
  T value;
  BodyReader reader(body);
  fields(reader, value);
  if (const char* wrong = reader.wrong())
    return fail(ErrorCode::kInvalid, fmt::format("a {} cannot be read: {}", name, wrong));
  return value;
}

template <size_t I = 1>
Result<Message> decode_as(uint16_t type, std::string_view body) {
  if constexpr (I == std::variant_size_v<Message>) {
    return Unknown{type};
  } else {
    if (type != I) return decode_as<I + 1>(type, body);
    auto value = read_body<std::variant_alternative_t<I, Message>>(body, kNames[I]);
    if (!value) return tl::unexpected(value.error());
    return std::move(*value);
  }
}

}  // namespace

uint64_t bytes_of(const Manifest& manifest) {
  uint64_t out = 0;
  for (const File& file : manifest.files) out += file.size;
  return out;
}

std::optional<uint32_t> owner_of(const Manifest& manifest) {
  if (manifest.files.empty()) return std::nullopt;
  const uint32_t uid = manifest.files.front().uid;
  const bool same = std::ranges::all_of(manifest.files, [&](const File& file) { return file.uid == uid; });
  return same ? std::optional(uid) : std::nullopt;
}

std::string series_of(const Manifest& manifest) {
  const size_t slash = manifest.path.rfind('/');
  if (slash == std::string::npos) return manifest.root;
  return manifest.root + "/" + manifest.path.substr(0, slash);
}

bool is_safe_path(std::string_view path) {
  if (path.empty() || path.size() > kPathBytes) return false;
  while (true) {
    const size_t end = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, end);
    const bool odd = std::ranges::any_of(part, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
    if (part.empty() || part.size() > 255 || part == "." || part == ".." || odd) return false;
    if (end == path.size()) return true;
    path.remove_prefix(end + 1);
  }
}

const char* name_of(const Message& message) { return kNames[message.index()]; }

std::string encode(const Message& message) {
  const auto* data = std::get_if<Data>(&message);
  std::string out =
      begin_message(kMark, static_cast<uint16_t>(message.index()), data ? data->bytes.size() : 0);
  BodyWriter writer(out);
  std::visit([&](const auto& value) { fields(writer, value); }, message);
  end_message(out);
  return out;
}

Result<Message> decode(uint16_t type, std::string_view body) { return decode_as(type, body); }

std::string to_bytes(const Manifest& manifest) {
  std::string out;
  BodyWriter writer(out);
  fields(writer, manifest);
  return out;
}

Result<Manifest> manifest_from(std::string_view bytes) { return read_body<Manifest>(bytes, "manifest"); }

Splitter::Splitter() : MessageBuffer(kMark, kFirstMessageBytes) {}

Result<std::optional<Message>> Splitter::next() {
  const auto framed = next_frame();
  if (!framed) return tl::unexpected(framed.error());
  if (!*framed) return std::optional<Message>();
  auto message = decode((*framed)->type, (*framed)->body);
  if (!message) return tl::unexpected(message.error());
  return std::optional<Message>(std::move(*message));
}

}  // namespace culprit::copies
