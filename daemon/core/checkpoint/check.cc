#include "core/checkpoint/check.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <xxhash.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/limits.h"
#include "core/checkpoint/checker.h"

namespace culprit::checkpoint {
namespace {

// Exceeds the time between two writes of a shard on a busy file system.
constexpr TimeNs kQuietNs = 60 * kNsPerSecond;
// Memory of a reader beyond its share per byte: buffers. The check itself holds the rest of kHeldFree.
constexpr uint64_t kReaderFree = limits::kHeldFree / 2;

bool is_marker(std::string_view name) {
  return name.ends_with(".incomplete") || name.ends_with("-unfinished") || name.ends_with(".unfinished") ||
         name.ends_with(".tmp") || name.ends_with(".part");
}

// Computes the digests of one file from its bytes in order.
class Passing {
 public:
  explicit Passing(bool sha256) : xxh_(XXH3_createState()) {
    XXH3_64bits_reset(xxh_.get());
    if (!sha256) return;
    sha_.reset(EVP_MD_CTX_new());
    EVP_DigestInit_ex(sha_.get(), EVP_sha256(), nullptr);
  }
  void add(std::string_view bytes) {
    XXH3_64bits_update(xxh_.get(), bytes.data(), bytes.size());
    if (sha_) EVP_DigestUpdate(sha_.get(), bytes.data(), bytes.size());
  }
  uint64_t hash() const { return XXH3_64bits_digest(xxh_.get()); }
  std::string sha256() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
    unsigned n = 0;
    EVP_DigestFinal_ex(sha_.get(), bytes.data(), &n);
    std::string out;
    for (unsigned i = 0; i < n; ++i) out += fmt::format("{:02x}", bytes[i]);
    return out;
  }

 private:
  struct FreeXxh {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  struct FreeSha {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<XXH3_state_t, FreeXxh> xxh_;
  std::unique_ptr<EVP_MD_CTX, FreeSha> sha_;
};

// Computes checksums of ranges of a file from its bytes in order.
class RangeSums {
 public:
  explicit RangeSums(std::vector<Range>& ranges) : ranges_(ranges) {}
  // The record whose checksum is wrong; null: none in these bytes.
  const Range* add(std::string_view bytes, uint64_t at) {
    const uint64_t end = at + bytes.size();
    const Range* wrong = nullptr;
    while (next_ < ranges_.size() && ranges_[next_].begin < end) {
      const Range& range = ranges_[next_];
      const uint64_t from = std::max(range.begin, at), to = std::min(range.end, end);
      if (from < to)
        crc_ = crc32_z(crc_, reinterpret_cast<const Bytef*>(bytes.data() + (from - at)), to - from);
      if (range.end > end) break;
      if (static_cast<uint32_t>(crc_) != range.crc && !wrong) wrong = &range;
      crc_ = 0;
      ++next_;
    }
    return wrong;
  }

 private:
  std::vector<Range>& ranges_;
  size_t next_ = 0;
  uLong crc_ = 0;
};

}  // namespace

std::string_view to_string(Fault fault) {
  constexpr std::array<std::string_view, 6> kNames{"missing",    "short",       "damaged",
                                                   "unfinished", "overwritten", "unread"};
  return kNames[static_cast<size_t>(fault)];
}

std::string_view to_string(State state) {
  constexpr std::array<std::string_view, 5> kNames{"whole", "writing", "torn", "damaged", "unread"};
  return kNames[static_cast<size_t>(state)];
}

State state_of(const std::vector<Problem>& problems, TimeNs changed_ns, const CheckOptions& options) {
  if (problems.empty()) return State::kWhole;
  // Clocks of file servers differ slightly, so a modification may appear to be in the future.
  if (!options.settled && options.now != kNoTime && changed_ns > options.now - kQuietNs &&
      changed_ns < options.now + kQuietNs)
    return State::kWriting;
  State out = State::kUnread;
  for (const Problem& problem : problems) {
    if (problem.fault == Fault::kDamaged && out == State::kUnread) out = State::kDamaged;
    if (problem.fault != Fault::kDamaged && problem.fault != Fault::kUnread) out = State::kTorn;
  }
  return out;
}

Checked check(const Found& found, const Tree& tree, ByteSource& source, const CheckOptions& options) {
  return Checker(found, tree, source, options).run();
}

void Checker::report(Fault fault, const std::string& file, std::string text) {
  wrong_.insert(file);
  ++out.problems_total;
  const auto same = std::find_if(out.problems.begin(), out.problems.end(), [&](const Problem& problem) {
    return problem.file == file && problem.fault == fault && problem.text == text;
  });
  if (same != out.problems.end())
    --out.problems_total;
  else if (out.problems.size() < limits::kCheckpointProblems)
    out.problems.push_back({fault, file, std::move(text)});
}

const Entry* Checker::need(const std::string& path, std::string_view why) {
  const Entry* entry = tree.find(path);
  if (entry && entry->kind == EntryKind::kFile) return entry;
  if (!entry)
    report(Fault::kMissing, path, std::string(why));
  else if (entry->kind == EntryKind::kLink)
    report(Fault::kUnread, path, "is a link, and links are not followed");
  else
    report(Fault::kUnread, path, "is no plain file");
  return nullptr;
}

void Checker::within_budget(const Entry& file, const std::function<void()>& read) {
  ReadBudget budget(0, UINT64_MAX, kReaderFree);
  budget_ = &budget;
  const Status done = budget.run([&]() -> Status {
    read();
    return {};
  });
  budget_ = nullptr;
  if (!done) report(Fault::kUnread, file.path, done.error().text);
}

Extent Checker::extent(const Entry& file, uint64_t begin, uint64_t size) {
  return {source, file.path, begin, size, budget_};
}

std::optional<std::string> Checker::text_of(const Entry& file, size_t max) {
  if (file.size > max) {
    report(Fault::kUnread, file.path,
           fmt::format("has {} bytes, more than are read of such a file", file.size));
    return {};
  }
  auto text = extent(file).read(0, file.size);
  if (!text) return report(Fault::kUnread, file.path, text.error().text), std::nullopt;
  return std::move(*text);
}

void Checker::read_bytes(const Entry& file, std::vector<Range> ranges) {
  if (!options.bytes || wrong_.contains(file.path) || !read_.insert(file.path).second) return;
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  const auto manifest = sha256_.find(file.path);
  Passing passing(manifest != sha256_.end());
  RangeSums sums(ranges);
  chunk_.resize(std::max<size_t>(chunk_.size(), std::min<uint64_t>(limits::kChunkBytes, file.size)));
  for (uint64_t at = 0; at < file.size;) {
    const auto got =
        source.read_at(file.path, chunk_.data(), std::min<uint64_t>(chunk_.size(), file.size - at), at);
    if (!got) return report(Fault::kUnread, file.path, got.error().text);
    if (*got == 0) return report(Fault::kShort, file.path, "became shorter while it was read");
    const std::string_view bytes(chunk_.data(), *got);
    passing.add(bytes);
    if (const Range* wrong = sums.add(bytes, at))
      return report(Fault::kDamaged, file.path,
                    fmt::format("the bytes of record {} do not have its checksum", wrong->name));
    at += *got;
    out.bytes_read += *got;
  }
  if (manifest != sha256_.end() && passing.sha256() != manifest->second)
    return report(Fault::kDamaged, file.path, "its bytes do not have the SHA-256 of integrity.json");
  const Digest digest{file.size, file.modified_ns, passing.hash()};
  if (const auto known = options.known ? options.known->find(file.path) : Digests::const_iterator();
      options.known && known != options.known->end() && known->second.size == file.size &&
      known->second.modified_ns == file.modified_ns && known->second.hash != digest.hash)
    return report(Fault::kDamaged, file.path,
                  "its bytes changed since they were first read, its time did not");
  out.digests.emplace_back(file.path, digest);
}

std::vector<Range> Checker::check_file(const Entry& file) {
  const std::string_view name = name_of(file.path);
  if (is_marker(name)) {
    report(Fault::kUnfinished, file.path, "is left of a write that did not finish");
    return {};
  }
  if (name.ends_with(".pt") || name.ends_with(".pth") || name.ends_with(".ckpt") ||
      (name.ends_with(".bin") && (name.starts_with("pytorch_model") || name.starts_with("optimizer") ||
                                  name.starts_with("adapter_model") || name == "training_args.bin")))
    return check_torch(file);
  if (name.ends_with(".safetensors"))
    check_safetensors(file);
  else if (name.ends_with(".index.json"))
    check_index(file);
  else if (name.ends_with(".json"))
    check_json(file);
  return {};
}

std::vector<Range> Checker::ranges_of(const Entry& file) {
  std::vector<Range> ranges;
  within_budget(file, [&] { ranges = check_file(file); });
  return ranges;
}

void Checker::check_known() {
  if (!options.known) return;
  const std::string prefix = found.path.empty() ? "" : found.path + "/";
  const auto first = options.known->lower_bound(prefix);
  auto last = first;
  bool same = false;  // else the whole file was rewritten
  for (; last != options.known->end() && last->first.starts_with(prefix); ++last) {
    const Entry* entry = tree.find(last->first);
    same |= entry && entry->size == last->second.size && entry->modified_ns == last->second.modified_ns;
  }
  for (auto at = first; same && at != last; ++at) {
    const Entry* entry = tree.find(at->first);
    if (!entry)
      report(Fault::kMissing, at->first, "is missing: it was there when the checkpoint was whole");
    else if (entry->size < at->second.size && !wrong_.contains(at->first))
      report(Fault::kShort, at->first,
             fmt::format("is cut: it has {} of the {} bytes that it had when the checkpoint was whole",
                         entry->size, at->second.size));
  }
}

bool Checker::has_below(std::string_view suffix) const {
  for (const Entry& entry : tree.below(found.path))
    if (entry.kind == EntryKind::kFile && entry.path.ends_with(suffix)) return true;
  return false;
}

Checked Checker::run() {
  out.step = found.step;
  out.changed_ns = tree.changed_ns(found.path);
  if (found.is_file) {
    if (const Entry* file = need(found.path)) {
      out.files = 1, out.bytes = file->size;
      read_bytes(*file, ranges_of(*file));
    }
    if (found.format == Format::kLightning) check_lightning();
  } else {
    if (const Entry* manifest = tree.find(join(found.path, "integrity.json")))
      within_budget(*manifest, [&] { check_integrity(*manifest); });
    std::set<std::string, std::less<>> folders{found.path};
    for (const Entry& entry : tree.below(found.path)) {
      if (entry.kind == EntryKind::kFolder) folders.insert(entry.path);
      if (entry.kind == EntryKind::kLink)
        report(Fault::kUnread, entry.path, "is a link, and links are not followed");
      if (entry.kind != EntryKind::kFile) continue;
      ++out.files, out.bytes += entry.size;
      if (auto ranges = ranges_of(entry); !ranges.empty()) read_bytes(entry, std::move(ranges));
    }
    for (const std::string& folder : folders) {
      check_dcp(folder);
      check_ranks(folder);
    }
    check_format();
    check_known();
    for (const Entry& entry : tree.below(found.path))
      if (entry.kind == EntryKind::kFile) read_bytes(entry, {});
  }
  if (out.files == 0 && out.problems.empty()) report(Fault::kMissing, found.path, "has no files");
  out.state = state_of(out.problems, out.changed_ns, options);
  return std::move(out);
}

}  // namespace culprit::checkpoint
