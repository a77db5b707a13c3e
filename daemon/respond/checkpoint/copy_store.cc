#include "respond/checkpoint/copy_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/bytes.h"
#include "base/crash_point.h"
#include "base/text.h"
#include "io/system_error.h"
#include "model/peer.h"

namespace culprit::respond::checkpoint {
namespace {

constexpr std::string_view kMagic = "CLPCOPY1";
constexpr size_t kIdBytes = 32;
constexpr size_t kPartialsPerHost = 4;
constexpr size_t kReadBytes = 1 << 20;
// Written data is synced at this size, so that a host's memory does not fill with unwritten pages.
constexpr uint64_t kSyncBytes = 32 << 20;
constexpr uint64_t kCatchUpBytes = 64 << 20;  // hashed at once: others are served in between
constexpr uint64_t kSpaceBytes = 16 << 20;    // between two looks at the free space

bool is_id(std::string_view text) {
  return text.size() == kIdBytes &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::string record_of(const copies::Manifest& manifest, TimeNs stored_ns, uint64_t order) {
  std::string out(kMagic);
  put(out, stored_ns);
  put(out, order);
  out += copies::to_bytes(manifest);
  const copies::Digest digest = sha256(out);
  out.append(reinterpret_cast<const char*>(digest.data()), digest.size());
  return out;
}

struct Record {
  copies::Manifest manifest;
  TimeNs stored_ns = 0;
  uint64_t order = 0;
};

Result<Record> read_record(std::string_view bytes) {
  constexpr size_t kFixed = kMagic.size() + sizeof(TimeNs) + sizeof(uint64_t);
  constexpr size_t kEnd = sizeof(copies::Digest);
  if (bytes.size() < kFixed + kEnd || !bytes.starts_with(kMagic))
    return fail(ErrorCode::kInvalid, "is no manifest of a copy");
  const std::string_view body = bytes.substr(0, bytes.size() - kEnd);
  const copies::Digest digest = sha256(body);
  if (std::memcmp(digest.data(), bytes.data() + body.size(), kEnd) != 0)
    return fail(ErrorCode::kInvalid, "is damaged");
  auto manifest = copies::manifest_from(body.substr(kFixed));
  if (!manifest) return tl::unexpected(manifest.error());
  return Record{std::move(*manifest), get_at<TimeNs>(body, kMagic.size()),
                get_at<uint64_t>(body, kMagic.size() + sizeof(TimeNs))};
}

// Written and synced pages are of no use to this host, whose jobs need the memory.
void leave_cache(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return;
  (void)::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  ::close(file);
}

// Only this user may read other users' checkpoints.
Status check_private(const std::string& folder) {
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0) return io::system_failure(folder, errno);
  if (S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() && (info.st_mode & 077) == 0) return {};
  return fail(ErrorCode::kDenied, folder + ": must be a folder of this user with mode 0700");
}

}  // namespace

std::string id_of(const copies::Manifest& manifest) {
  copies::Manifest lasting = manifest;
  lasting.pointers.clear();
  const copies::Digest digest = sha256(copies::to_bytes(lasting));
  std::string out;
  for (size_t i = 0; i < kIdBytes / 2; ++i) out += fmt::format("{:02x}", digest[i]);
  return out;
}

// ---- a copy being received

IncomingCopy::IncomingCopy(CopyStore& store, std::string host, std::string id, copies::Manifest manifest)
    : store_(store),
      host_(std::move(host)),
      id_(std::move(id)),
      manifest_(std::move(manifest)),
      parts_(manifest_.files.size()) {}

IncomingCopy::~IncomingCopy() {
  if (const auto at = store_.partials_.find({host_, id_}); at != store_.partials_.end())
    at->second.active = false;
}

std::string IncomingCopy::path(size_t file) const { return store_.path({host_, id_}, std::to_string(file)); }

std::vector<uint64_t> IncomingCopy::have() const {
  std::vector<uint64_t> out;
  for (const Part& part : parts_) out.push_back(part.size);
  return out;
}

Status IncomingCopy::open(size_t file) {
  if (handle_ && open_file_ == file) return {};
  handle_.reset();
  auto handle = store_.files_.open(path(file), io::OpenFor::kAppend);
  if (!handle && handle.error().code == ErrorCode::kNotFound && parts_[file].size == 0)
    handle = store_.files_.open(path(file), io::OpenFor::kCreate);
  if (!handle) return tl::unexpected(handle.error());
  handle_ = std::move(*handle);
  open_file_ = file;
  return {};
}

Result<bool> IncomingCopy::catch_up(size_t file) {
  if (file >= parts_.size() || parts_[file].hashed == parts_[file].size) return true;
  if (Status opened = open(file); !opened) return tl::unexpected(opened.error());
  Part& part = parts_[file];
  std::string buffer(kReadBytes, '\0');
  for (const uint64_t until = part.hashed + kCatchUpBytes; part.hashed < part.size && part.hashed < until;) {
    const size_t want = static_cast<size_t>(std::min<uint64_t>(buffer.size(), part.size - part.hashed));
    const auto n = handle_->read_at(buffer.data(), want, part.hashed);
    if (!n) return tl::unexpected(n.error());
    if (*n == 0) return fail(ErrorCode::kIo, path(open_file_) + ": became shorter");
    part.hash.add({buffer.data(), *n});
    part.hashed += *n;
  }
  return part.hashed == part.size;
}

Status IncomingCopy::append(const copies::Data& data) {
  if (data.file >= parts_.size()) return fail(ErrorCode::kInvalid, "there is no such file in the offer");
  Part& part = parts_[data.file];
  if (part.done || data.offset != part.size || part.hashed != part.size ||
      data.bytes.size() > manifest_.files[data.file].size - part.size)
    return fail(ErrorCode::kInvalid, "the bytes do not follow those before");
  if (Status opened = open(data.file); !opened) return opened;
  unchecked_ += data.bytes.size();
  if (unchecked_ >= kSpaceBytes) {
    unchecked_ = 0;
    const auto space = store_.files_.space(store_.options_.folder);
    if (space && space->free < store_.options_.min_free)
      return fail(ErrorCode::kLimit,
                  fmt::format("{} of the disk are free, and {} stay free", format_bytes(space->free),
                              format_bytes(store_.options_.min_free)));
  }
  if (Status written = handle_->append(data.bytes); !written) {
    (void)handle_->truncate(part.size);
    return written;
  }
  part.hash.add(data.bytes);
  part.size += data.bytes.size();
  part.hashed = part.size;
  store_.counters_.stored_bytes += data.bytes.size();
  store_.partials_[{host_, id_}].have += data.bytes.size();
  unsynced_ += data.bytes.size();
  if (unsynced_ < kSyncBytes) return {};
  unsynced_ = 0;
  return handle_->sync();
}

Result<bool> IncomingCopy::end_file(const copies::FileEnd& end) {
  if (end.file >= parts_.size() || parts_[end.file].done ||
      parts_[end.file].size != manifest_.files[end.file].size ||
      parts_[end.file].hashed != parts_[end.file].size)
    return fail(ErrorCode::kInvalid, "a file ends where bytes are missing");
  if (Status opened = open(end.file); !opened) return tl::unexpected(opened.error());
  Part& part = parts_[end.file];
  if (part.hash.finish() != end.digest) {
    ++store_.counters_.mismatches;
    part.hashed = 0;
    if (Status discarded = discard(end.file); !discarded) return tl::unexpected(discarded.error());
    return false;
  }
  if (Status synced = handle_->sync(); !synced) return tl::unexpected(synced.error());
  unsynced_ = 0;
  manifest_.files[end.file].digest = end.digest;
  part.done = true;
  handle_.reset();
  leave_cache(path(end.file));
  return true;
}

Status IncomingCopy::discard(size_t file) {
  store_.partials_[{host_, id_}].have -= parts_[file].size;
  parts_[file] = Part{};
  const Status cut = handle_->truncate(0);
  handle_.reset();
  return cut;
}

void IncomingCopy::abandon() {
  handle_.reset();
  store_.remove_partial({host_, id_});
}

Status IncomingCopy::commit(TimeNs now) {
  if (!std::ranges::all_of(parts_, [](const Part& part) { return part.done; }))
    return fail(ErrorCode::kInvalid, "the copy is not complete");
  handle_.reset();
  const CopyStore::Key key{host_, id_};
  const uint64_t order = store_.next_order_++;
  const std::string path = store_.path(key, "copy");
  crash_point("copies.before_manifest");
  if (Status written = store_.write_file(path, record_of(manifest_, now, order)); !written) return written;
  crash_point("copies.after_manifest");
  (void)store_.files_.remove(store_.path(key, "offer"));
  store_.partials_.erase(key);
  store_.load_copy(key);
  if (!store_.copies_.contains(key)) return fail(ErrorCode::kIo, path + ": cannot be read back");
  ++store_.counters_.stored;
  store_.trim_series(host_, store_.copies_[key].series);
  return {};
}

// ---- the store

Result<std::unique_ptr<CopyStore>> CopyStore::open(io::Files& files, CopyStoreOptions options) {
  if (Status made = files.make_folder(options.folder); !made) return tl::unexpected(made.error());
  if (Status checked = check_private(options.folder); !checked) return tl::unexpected(checked.error());
  std::unique_ptr<CopyStore> store(new CopyStore(files, std::move(options)));
  const auto hosts = files.list(store->options_.folder);
  if (!hosts) return tl::unexpected(hosts.error());
  for (const std::string& host : *hosts)
    if (peer::is_host_name(host))
      if (Status loaded = store->load_host(host); !loaded) return tl::unexpected(loaded.error());
  return store;
}

std::string CopyStore::path(const Key& key, const std::string& ending) const {
  return options_.folder + "/" + key.first + "/" + key.second + "." + ending;
}

Status CopyStore::load_host(const std::string& host) {
  const auto names = files_.list(options_.folder + "/" + host);
  if (!names) return {};  // no folder: not ours
  std::map<std::string, std::vector<std::string>> endings;
  for (const std::string& name : *names)
    if (const size_t dot = name.find('.'); dot != name.npos && is_id(name.substr(0, dot)))
      endings[name.substr(0, dot)].push_back(name.substr(dot + 1));
  for (const auto& [id, of] : endings) {
    const Key key{host, id};
    const auto has = [&, &all = of](const char* name) { return std::ranges::find(all, name) != all.end(); };
    if (has("copy.new")) (void)files_.remove(path(key, "copy.new"));
    if (has("offer.new")) (void)files_.remove(path(key, "offer.new"));
    if (has("copy")) {
      if (has("offer")) (void)files_.remove(path(key, "offer"));
      load_copy(key);
    } else if (has("offer")) {
      load_partial(key, of);
    } else {
      remove_files(key);
    }
  }
  return {};
}

void CopyStore::load_copy(const Key& key) {
  const auto text = read_file(path(key, "copy"));
  const auto record = text ? read_record(*text) : Result<Record>(tl::unexpected(text.error()));
  if (!record) return void(++counters_.damaged);
  for (size_t i = 0; i < record->manifest.files.size(); ++i) {
    auto file = files_.open(path(key, std::to_string(i)), io::OpenFor::kRead);
    const auto status = file ? (*file)->status() : Result<io::FileStatus>(tl::unexpected(file.error()));
    if (!status || status->size != record->manifest.files[i].size) return void(++counters_.damaged);
  }
  const copies::Manifest& m = record->manifest;
  Copy copy;
  copy.entry = {key.second,
                key.first,
                m.root,
                m.path,
                m.format,
                m.step,
                m.changed_ns,
                record->stored_ns,
                record->order,
                static_cast<uint32_t>(m.files.size()),
                copies::bytes_of(m)};
  copy.series = copies::series_of(m);
  copy.owner = copies::owner_of(m);
  next_order_ = std::max(next_order_, record->order + 1);
  copies_[key] = std::move(copy);
}

void CopyStore::load_partial(const Key& key, const std::vector<std::string>& names) {
  const auto text = read_file(path(key, "offer"));
  const auto record = text ? read_record(*text) : Result<Record>(tl::unexpected(text.error()));
  if (!record) return remove_files(key);
  Partial partial;
  partial.series = copies::series_of(record->manifest);
  partial.bytes = copies::bytes_of(record->manifest);
  for (const std::string& name : names)
    if (auto file = files_.open(path(key, name), io::OpenFor::kRead); file && name != "offer")
      if (const auto status = (*file)->status()) partial.have += status->size;
  partials_[key] = std::move(partial);
}

Result<std::string> CopyStore::read_file(const std::string& path) const {
  auto file = files_.open(path, io::OpenFor::kRead);
  if (!file) return tl::unexpected(file.error());
  const auto status = (*file)->status();
  if (!status) return tl::unexpected(status.error());
  if (status->size > copies::kMessageBytes) return fail(ErrorCode::kLimit, path + ": is too large");
  std::string out(status->size, '\0');
  const auto n = (*file)->read_at(out.data(), out.size(), 0);
  if (!n) return tl::unexpected(n.error());
  out.resize(*n);
  return out;
}

// The file exists with the whole text or not at all, also after a loss of power.
Status CopyStore::write_file(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".new";
  (void)files_.remove(temporary);
  {
    auto file = files_.open(temporary, io::OpenFor::kCreate);
    if (!file) return tl::unexpected(file.error());
    Status written = (*file)->append(text);
    if (written) written = (*file)->sync();
    if (!written) {
      (void)files_.remove(temporary);
      return written;
    }
  }
  if (Status renamed = files_.rename(temporary, path); !renamed) return renamed;
  return files_.sync_folder(path.substr(0, path.rfind('/')));
}

Result<std::unique_ptr<IncomingCopy>> CopyStore::receive(const std::string& host,
                                                         const copies::Manifest& manifest, TimeNs now) {
  const Key key{host, id_of(manifest)};
  if (copies_.contains(key)) return nullptr;
  const auto known = partials_.find(key);
  if (known != partials_.end() && known->second.active)
    return fail(ErrorCode::kBusy, "another connection sends this copy");
  const std::string series = copies::series_of(manifest);
  // An older incomplete copy of the series is superseded; of several series, the oldest gives way.
  std::vector<std::pair<uint64_t, Key>> others;
  for (const auto& [other, partial] : partials_) {
    if (other.first != host || other == key || partial.active) continue;
    others.emplace_back(partial.series == series ? 0 : partial.order, other);
  }
  std::ranges::sort(others);
  for (size_t i = 0; i < others.size(); ++i)
    if (partials_[others[i].second].series == series || others.size() - i >= kPartialsPerHost)
      remove_partial(others[i].second);
  const uint64_t total = copies::bytes_of(manifest);
  if (Status room = make_room(key, total, now); !room) {
    ++counters_.refused_full;
    return tl::unexpected(room.error());
  }
  std::unique_ptr<IncomingCopy> copy(new IncomingCopy(*this, host, key.second, manifest));
  if (known == partials_.end()) {
    const std::string folder = options_.folder + "/" + host;
    if (Status made = files_.make_folder(folder); !made) return tl::unexpected(made.error());
    if (Status made = write_file(path(key, "offer"), record_of(manifest, 0, 0)); !made)
      return tl::unexpected(made.error());
    (void)files_.sync_folder(options_.folder);
  }
  Partial& partial = partials_[key];
  partial.series = series;
  partial.bytes = total;
  partial.have = 0;
  partial.order = next_order_;
  partial.active = true;
  for (size_t i = 0; i < manifest.files.size(); ++i) {
    auto file = files_.open(path(key, std::to_string(i)), io::OpenFor::kRead);
    if (!file) continue;
    const auto status = (*file)->status();
    if (status && status->size <= manifest.files[i].size)
      copy->parts_[i].size = status->size;
    else if (Status removed = files_.remove(path(key, std::to_string(i))); !removed)
      return tl::unexpected(removed.error());
    partial.have += copy->parts_[i].size;
  }
  return copy;
}

// Age alone removes nothing: a clock that steps would take every copy.
bool CopyStore::is_spare(const Copy& copy, TimeNs now) const {
  if (options_.max_age_ns > 0 && copy.entry.stored_ns < now - options_.max_age_ns) return true;
  return std::ranges::any_of(copies_, [&](const auto& other) {
    return other.first.first == copy.entry.host && other.second.series == copy.series &&
           other.second.entry.order > copy.entry.order;
  });
}

// Removes what may leave only if that suffices.
Status CopyStore::make_room(const Key& key, uint64_t total, TimeNs now) {
  uint64_t used = total, outstanding = total;
  std::vector<std::pair<uint64_t, Key>> spare;  // order, key
  uint64_t reclaimable = 0;
  for (const auto& [of, copy] : copies_) {
    used += copy.entry.bytes;
    if (!is_spare(copy, now)) continue;
    spare.emplace_back(copy.entry.order, of);
    reclaimable += copy.entry.bytes;
  }
  for (const auto& [of, partial] : partials_) {
    if (of == key) {
      outstanding -= std::min(outstanding, partial.have);
      continue;
    }
    used += partial.bytes;
    outstanding += partial.bytes - std::min(partial.bytes, partial.have);
    if (partial.active) continue;
    spare.emplace_back(0, of);
    reclaimable += partial.bytes;  // stored or reserved
  }
  const auto space = files_.space(options_.folder);
  if (!space) return tl::unexpected(space.error());
  const uint64_t over = used > options_.max_bytes ? used - options_.max_bytes : 0;
  const uint64_t wanted = outstanding + options_.min_free;
  const uint64_t lacking = wanted > space->free ? wanted - space->free : 0;
  uint64_t deficit = std::max(over, lacking);
  if (deficit > reclaimable)
    return fail(
        ErrorCode::kLimit,
        over >= lacking
            ? fmt::format("no room for {}: copies.max_size is {}, and only the newest copy of each job "
                          "is left",
                          format_bytes(total), format_bytes(options_.max_bytes))
            : fmt::format("no room for {}: {} of the disk are free, and {} stay free", format_bytes(total),
                          format_bytes(space->free), format_bytes(options_.min_free)));
  std::ranges::sort(spare);
  for (const auto& [order, of] : spare) {
    if (deficit == 0) break;
    const uint64_t bytes = reserved_bytes(of);
    if (copies_.contains(of))
      remove_copy(of);
    else
      remove_partial(of);
    deficit -= std::min(deficit, bytes);
  }
  return {};
}

uint64_t CopyStore::reserved_bytes(const Key& key) const {
  if (const auto at = copies_.find(key); at != copies_.end()) return at->second.entry.bytes;
  const auto at = partials_.find(key);
  return at == partials_.end() ? 0 : at->second.bytes;
}

// The manifest leaves first: a copy is never served in part.
void CopyStore::remove_copy(const Key& key) {
  if (Status removed = files_.remove(path(key, "copy")); !removed) return;
  (void)files_.sync_folder(options_.folder + "/" + key.first);
  crash_point("copies.in_removal");
  copies_.erase(key);
  ++counters_.removed;
  remove_files(key);
}

void CopyStore::remove_partial(const Key& key) {
  partials_.erase(key);
  remove_files(key);
}

void CopyStore::remove_files(const Key& key) {
  const auto names = files_.list(options_.folder + "/" + key.first);
  if (!names) return;
  for (const std::string& name : *names)
    if (name.starts_with(key.second + "."))
      (void)files_.remove(options_.folder + "/" + key.first + "/" + name);
}

void CopyStore::trim_series(const std::string& host, const std::string& series) {
  std::vector<std::pair<uint64_t, Key>> all;
  for (const auto& [key, copy] : copies_)
    if (key.first == host && copy.series == series) all.emplace_back(copy.entry.order, key);
  std::ranges::sort(all, std::greater<>());
  for (size_t i = std::max<size_t>(1, options_.keep); i < all.size(); ++i) remove_copy(all[i].second);
}

std::vector<const CopyStore::Copy*> CopyStore::copies() const {
  std::vector<const Copy*> out;
  for (const auto& [_, copy] : copies_) out.push_back(&copy);
  std::ranges::sort(out, [](const Copy* a, const Copy* b) { return a->entry.order > b->entry.order; });
  return out;
}

const CopyStore::Copy* CopyStore::find(const std::string& host, const std::string& id) const {
  const auto at = copies_.find({host, id});
  return at == copies_.end() ? nullptr : &at->second;
}

Result<copies::Manifest> CopyStore::manifest(const Copy& copy) const {
  const std::string at = path({copy.entry.host, copy.entry.id}, "copy");
  const auto text = read_file(at);
  if (!text) return tl::unexpected(text.error());
  auto record = read_record(*text);
  if (!record) return fail(record.error().code, at + ": " + record.error().text);
  return std::move(record->manifest);
}

Result<std::unique_ptr<io::FileHandle>> CopyStore::open_file(const Copy& copy, size_t file) const {
  return files_.open(path({copy.entry.host, copy.entry.id}, std::to_string(file)), io::OpenFor::kRead);
}

CopyStoreCounters CopyStore::counters() const {
  CopyStoreCounters out = counters_;
  out.copies = copies_.size();
  out.partial = partials_.size();
  for (const auto& [_, copy] : copies_) out.bytes += copy.entry.bytes;
  return out;
}

}  // namespace culprit::respond::checkpoint
