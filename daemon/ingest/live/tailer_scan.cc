#include <algorithm>
#include <cerrno>
#include <limits>
#include <unordered_set>

#include "base/hash.h"
#include "base/text.h"
#include "ingest/live/tailer_impl.h"

namespace culprit::ingest {
namespace {

// Names per folder. A list of this size takes a tenth of a second; further names are reported.
constexpr size_t kEntries = 200'000;
constexpr size_t kFolders = 16'384;
// Lists of one folder per round, for all its sources: one to find new names, one to prove that nothing moved
// meanwhile, and two more attempts.
constexpr int kLists = 4;
// A new log usually grows again within this time; if later, the next list finds it.
constexpr TimeNs kOwnNs = 5 * kNsPerSecond;

uint64_t key_of(uint64_t device, uint64_t inode) { return mix64(device, inode); }

std::string folder_name(const std::string& below) {
  const size_t slash = below.rfind('/');
  return slash == below.npos ? "" : below.substr(0, slash);
}

std::string join(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder + "/" + name;
}

bool same(const FilePlace& place, const Look& look) {
  return place.device == look.device && place.inode == look.inode;
}

}  // namespace

bool older_part(const Sibling& a, const Sibling& b) {
  const bool numbers =
      a.form.style == RotatedName::Style::kNumber || a.form.style == RotatedName::Style::kInnerNumber;
  if (numbers && a.look.modified_ns != b.look.modified_ns) return a.look.modified_ns < b.look.modified_ns;
  return older_mark(a.form, b.form);
}

TailFolder& Tailer::Impl::folder(const std::string& name, WatchGlob::State state) {
  auto& kept = folders_[name];
  if (!kept) {
    kept = std::make_unique<TailFolder>();
    kept->name = name;
    kept->state = std::move(state);
    next_folder_ = 0;
  } else if (kept->gone) {
    kept->gone = kept->failing = kept->watched = kept->asked = kept->settled = false;
    kept->next_list = kept->next_full = next_folder_ = 0;
  }
  return *kept;
}

TailFolder& Tailer::Impl::folder_above(const std::string& name) {
  WatchGlob::State state = glob_.at_root();
  const std::string above = folder_name(name);
  if (!above.empty())
    for (const std::string_view part : split(above, '/')) state = glob_.enter(state, part);
  return folder(above, std::move(state));
}

TailFolder* Tailer::Impl::folder_of_path(const std::string& path) {
  std::string below;
  if (path != glob_.root()) {
    const std::string root = path_of("x");
    if (path.size() < root.size()) return nullptr;
    below = path.substr(root.size() - 1);
  }
  const auto found = folders_.find(below);
  return found == folders_.end() ? nullptr : found->second.get();
}

// Whether the list may have changed: the modification time of a folder changes with its names.
bool Tailer::Impl::list_changed(TailFolder& folder) {
  const bool due = mono_ >= folder.next_list;
  if (due) folder.next_list = mono_ + (folder.watched ? kSweepNs : kPolledLookNs);
  if (mono_ >= folder.next_full) return true;
  if (!folder.settled || !folder.waiting.empty()) return true;
  Look now;
  return root_.look(folder.name, now) != 0 || now.modified_ns != folder.modified_ns;
}

void Tailer::Impl::list_failed(TailFolder& folder, int error) {
  if (error == ENOENT || error == ENOTDIR) {
    // Its sources detect by themselves that their files are gone.
    if (folder.asked) out_->unwatch.push_back(path_of(folder.name));
    folder.asked = folder.watched = false;
    folder.gone = !folder.name.empty();
    folder.waiting.clear();
    forget_ended(folder, {});
    for (const uint32_t number : folder.sources) schedule(*sources_[number], mono_);
    return;
  }
  if (!folder.failing)
    problem(folder.name, error == EOVERFLOW ? "holds more than 200000 names: the others are not looked at"
                                            : reason_of(error));
  folder.failing = true;
}

void Tailer::Impl::read_names(TailFolder& folder) {
  FolderNames& kept = folder.names;
  if (kept.lists++ == 0) named_.push_back(&folder);
  const uint64_t begun = ++asked_;
  Look before, after;
  auto entries = std::make_shared<std::vector<Entry>>();
  kept.error = root_.look(folder.name, before);
  if (kept.error == 0) kept.error = root_.list(folder.name, kEntries, *entries);
  kept.settled = kept.error == 0 && now_ - before.modified_ns > kSettledNs &&
                 root_.look(folder.name, after) == 0 && after.modified_ns == before.modified_ns;
  kept.sound = kept.settled || (kept.entries && *kept.entries == *entries);
  kept.entries = std::move(entries);
  kept.begun = begun;
  kept.modified_ns = before.modified_ns;
}

// The names in one consistent state, read after `since` (a value of asked_); null: not possible in this
// round.
std::shared_ptr<const std::vector<Entry>> Tailer::Impl::names(TailFolder& folder, uint64_t since) {
  FolderNames& kept = folder.names;
  Look now;
  if (kept.sound && kept.begun > since) return kept.entries;
  if (kept.settled && root_.look(folder.name, now) == 0 && now.modified_ns == kept.modified_ns)
    return kept.entries;
  while (kept.lists < kLists) {
    read_names(folder);
    // A folder that may not be listed has no names, now or later.
    const bool ours =
        kept.error == EMFILE || kept.error == ENFILE || kept.error == ENOMEM || kept.error == EIO;
    if (ours) return nullptr;
    if (kept.sound) return kept.entries;
  }
  return nullptr;
}

void Tailer::Impl::forget_names() {
  for (TailFolder* folder : named_) folder->names = {};
  named_.clear();
}

// Forgets ended sources without any file in the folder, under any name.
void Tailer::Impl::forget_ended(TailFolder& folder, const std::vector<Entry>& entries) {
  if (folder.ended.empty()) return;
  std::unordered_set<uint64_t> inodes;
  for (const Entry& entry : entries) inodes.insert(entry.inode);
  std::erase_if(folder.ended, [&](uint32_t number) {
    TailSource& source = *sources_[number];
    for (const FilePlace& place : source.past)
      if (inodes.contains(place.inode)) return false;
    for (const FilePlace& place : std::exchange(source.past, {})) unindex(source, place);
    const auto named = by_name_.find(source.name);
    if (named != by_name_.end() && named->second == number) by_name_.erase(named);
    sources_[number].reset();
    free_.push_back(number);
    return true;
  });
}

void Tailer::Impl::list(TailFolder& folder) {
  folder.next_full = mono_ + kSweepNs;
  if (!folder.asked && root_.is_local(folder.name)) {
    folder.asked = true;
    out_->watch.push_back(path_of(folder.name));
  }
  if (folder.names.lists == 0) read_names(folder);
  // A copy: checks of sources may read the names again.
  const auto kept = folder.names.entries;
  const std::vector<Entry>& entries = *kept;
  const int error = folder.names.error;
  const TimeNs modified_ns = folder.names.modified_ns;
  if (error != 0) list_failed(folder, error);
  if (error != 0 && error != EOVERFLOW) return;
  if (error == 0) folder.failing = false;
  folder.modified_ns = modified_ns;
  folder.settled = now_ - modified_ns > kSettledNs;
  folder.waiting.clear();
  if (!folder.ended.empty())
    if (const auto all = names(folder, 0)) forget_ended(folder, *all);

  std::set<std::string> fresh;
  std::vector<const Entry*> unknown;
  for (const Entry& entry : entries) {
    if (entry.type == Entry::Type::kFolder) {
      WatchGlob::State inner = glob_.enter(folder.state, entry.name);
      if (!inner.empty() && folders_.size() < kFolders)
        this->folder(join(folder.name, entry.name), std::move(inner));
      continue;
    }
    if (!glob_.takes(folder.state, entry.name) || is_known(folder, entry)) continue;
    fresh.insert(entry.name);
    unknown.push_back(&entry);
  }
  std::erase_if(folder.ignored, [&](const auto& item) {
    const auto at =
        std::lower_bound(entries.begin(), entries.end(), item.first,
                         [](const Entry& entry, const std::string& name) { return entry.name < name; });
    return at == entries.end() || at->name != item.first;
  });
  // Base names come before their rotated forms: app.log before app.1.log.
  const auto derived = [&](const Entry* entry) {
    const auto forms = rotated_forms(entry->name);
    return std::any_of(forms.begin(), forms.end(),
                       [&](const RotatedName& form) { return fresh.contains(form.base); });
  };
  std::stable_partition(unknown.begin(), unknown.end(), [&](const Entry* entry) { return !derived(entry); });
  for (const Entry* entry : unknown) consider(folder, *entry, fresh);
  find_late(folder, entries);
}

// Checks a source whose file was replaced, so that its generations are known before new names are judged.
bool Tailer::Impl::is_known(TailFolder& folder, const Entry& entry) {
  const auto ignored = folder.ignored.find(entry.name);
  if (ignored != folder.ignored.end() && ignored->second.inode == entry.inode)
    return !has_grown(folder, entry.name);
  TailSource* source = source_at(join(folder.name, entry.name));
  if (source == nullptr || source->ended) return false;
  const bool its_own = !source->chain.empty() && source->chain.back().place.inode == entry.inode;
  if (!its_own && source->foreign_inode != entry.inode) look(*source);
  return true;
}

// A file with a rotated name that is still written and is no copy is a separate log, such as worker-0.log
// next to worker.log.
bool Tailer::Impl::has_grown(TailFolder& folder, const std::string& name) {
  TailFolder::Ignored& ignored = folder.ignored[name];
  if (!ignored.size) return false;
  Look at;
  if (root_.look(join(folder.name, name), at) != 0) return false;
  const bool grown = *ignored.size > 0 && at.size > *ignored.size;
  // Growth from an empty file may be a copy.
  if (!grown) ignored.size = at.size;
  if (!grown && mono_ - ignored.since < kOwnNs) folder.waiting.insert(name);
  return grown;
}

TailSource* Tailer::Impl::source_at(const std::string& name) {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : sources_[found->second].get();
}

void Tailer::Impl::refuse(TailFolder& folder, const std::string& name, const std::string& what) {
  problem(join(folder.name, name), what);
  ++refused;
}

void Tailer::Impl::consider(TailFolder& folder, const Entry& entry, const std::set<std::string>& fresh) {
  const std::string name = join(folder.name, entry.name);
  const auto ignore = [&] { folder.ignored[entry.name] = {.inode = entry.inode}; };
  if (entry.type != Entry::Type::kFile) {
    ignore();
    refuse(folder, entry.name,
           entry.type == Entry::Type::kLink ? "is a link, which is not followed" : "is no regular file");
    return;
  }
  const auto forms = rotated_forms(entry.name);
  std::vector<TailSource*> bases;
  for (const RotatedName& form : forms) {
    TailSource* base = source_at(join(folder.name, form.base));
    if (base == nullptr) continue;
    // A rotation after the last check of the base may have given it this name.
    if (!base->ended) look(*base);
    bases.push_back(base);
  }
  Look at;
  if (root_.look(name, at) != 0 || !at.regular) return;
  if (owner_of(name, at) != nullptr) return ignore();
  if (compression_of_name(entry.name) != Compression::kNone) {
    ignore();
    if (bases.empty())
      problem(name, "is compressed and no rotated part of a log that is followed: left alone");
    return;
  }
  for (TailSource* base : bases)
    if (is_copy(*base, name, at)) return ignore();
  const auto seen = folder.ignored.find(entry.name);
  const bool grown = seen != folder.ignored.end() && seen->second.inode == entry.inode;
  if (grown) folder.ignored.erase(seen);
  // A rotated name of a log that was followed before belongs to that log.
  const auto followed = [&](const TailSource* base) {
    return !fresh.contains(base->name.substr(folder.name.empty() ? 0 : folder.name.size() + 1));
  };
  if (!grown && std::any_of(bases.begin(), bases.end(), followed)) {
    folder.ignored[entry.name] = {entry.inode, at.size, mono_};
    folder.waiting.insert(entry.name);
    hot_.insert(&folder);
    return;
  }
  if (files >= options_.files_max) {
    ignore();
    ++refused;
    if (!full_) problem(name, "is not followed: as many files as are allowed are");
    full_ = true;
    return;
  }
  create(folder, name, older_at_first_sight(folder, name, fresh));
}

// Parts rotated before the daemon first saw the log are the beginning of the log, if the glob matches them. A
// file that was still written after the log began is no rotated part of it, whatever its name.
std::vector<Sibling> Tailer::Impl::older_at_first_sight(TailFolder& folder, const std::string& name,
                                                        const std::set<std::string>& fresh) {
  std::vector<Sibling> older;
  const TimeNs born = root_.born_ns(name);
  if (born == kNoTime) return older;
  const std::string base = folder.name.empty() ? name : name.substr(folder.name.size() + 1);
  for (const std::string& other : fresh) {
    if (compression_of_name(other) != Compression::kNone) continue;
    for (const RotatedName& form : rotated_forms(other)) {
      if (form.base != base) continue;
      Sibling sibling;
      sibling.name = join(folder.name, other);
      sibling.form = form;
      if (root_.look(sibling.name, sibling.look) != 0 || !sibling.look.regular) continue;
      if (sibling.look.size == 0 || sibling.look.modified_ns > born) continue;
      if (owner_of(sibling.name, sibling.look) == nullptr) older.push_back(std::move(sibling));
      break;
    }
  }
  std::sort(older.begin(), older.end(), [](const Sibling& a, const Sibling& b) {
    if (a.form.style == b.form.style) return older_part(a, b);
    return a.form.style < b.form.style;
  });
  return older;
}

TailSource* Tailer::Impl::create(TailFolder& folder, const std::string& name,
                                 const std::vector<Sibling>& older) {
  auto made = std::make_unique<TailSource>();
  TailSource& source = *made;
  source.number = free_.empty() ? static_cast<uint32_t>(sources_.size()) : free_.back();
  source.name = name;
  source.folder = &folder;
  source.info.id = options_.allocate();
  source.info.kind = options_.kind;
  source.info.path = path_of(name);
  source.info.job = options_.job_of ? options_.job_of(source.info.path) : "";
  source.info.opened_ns = now_;
  source.queued_at = std::numeric_limits<TimeNs>::max();
  source.changed_at = mono_;
  out_->batch.opened.push_back(source.info);
  if (free_.empty()) {
    sources_.push_back(std::move(made));
  } else {
    free_.pop_back();
    sources_[source.number] = std::move(made);
  }
  by_name_[name] = source.number;
  folder.sources.push_back(source.number);
  ++files;
  for (const Sibling& sibling : older) {
    Generation generation;
    generation.name = sibling.name;
    generation.place.device = sibling.look.device;
    generation.place.inode = sibling.look.inode;
    generation.seen = sibling.look.size;
    push(source, std::move(generation));
  }
  look(source);
  return &source;
}

// The source that has this file as a generation, by identity and beginning.
TailSource* Tailer::Impl::owner_of(const std::string& name, const Look& look) {
  Descriptor file;
  const auto is = [&](const FilePlace& place) {
    if (!same(place, look) || look.size < place.offset) return false;
    if (!file.is_open() && root_.open_file(name, file) != 0) return false;
    return begins_as(beginning_of(file, Compression::kNone), place) &&
           reaches(file, Compression::kNone, place) == Reach::kWhole;
  };
  const auto [first, last] = by_inode_.equal_range(key_of(look.device, look.inode));
  for (auto at = first; at != last; ++at) {
    TailSource* source = sources_[at->second].get();
    if (source == nullptr) continue;
    for (const Generation& generation : source->chain)
      if (same(generation.place, look) && (generation.file.is_open() || is(generation.place))) return source;
    for (const LateFile& late : source->late)
      if (same(late.generation.place, look)) return source;
    for (const FilePlace& place : source->past)
      if (place.offset > 0 && is(place)) return source;
  }
  return nullptr;
}

// copytruncate: whether the file is a copy of the file at the path, or of its content before a truncation.
// For a log that is rotated by renaming, each part has its own inode, and no copies are searched.
bool Tailer::Impl::is_copy(TailSource& base, const std::string& name, const Look& look) {
  Descriptor file;
  if (base.chain.empty() || root_.open_file(name, file) != 0) return false;
  const std::string beginning = beginning_of(file, Compression::kNone);
  const FilePlace& now = base.chain.back().place;
  const auto is = [&](const FilePlace& place) {
    return place.fingerprint_bytes > 0 && place.inode == now.inode && place.inode != look.inode &&
           begins_as(beginning, place);
  };
  if (is(now) || std::any_of(base.past.begin(), base.past.end(), is)) return true;
  Descriptor path;
  return root_.open_file(base.name, path) == 0 && begins_and_ends_as(file, path);
}

void Tailer::Impl::index(TailSource& source, const FilePlace& place) {
  const uint64_t key = key_of(place.device, place.inode);
  const auto [first, last] = by_inode_.equal_range(key);
  if (std::none_of(first, last, [&](const auto& item) { return item.second == source.number; }))
    by_inode_.emplace(key, source.number);
}

// Unless another generation of the source has that inode.
void Tailer::Impl::unindex(const TailSource& source, const FilePlace& place) {
  const auto has = [&](const FilePlace& other) {
    return other.device == place.device && other.inode == place.inode;
  };
  if (std::any_of(source.past.begin(), source.past.end(), has)) return;
  for (const Generation& generation : source.chain)
    if (has(generation.place)) return;
  const auto [first, last] = by_inode_.equal_range(key_of(place.device, place.inode));
  for (auto at = first; at != last; ++at) {
    if (at->second != source.number) continue;
    by_inode_.erase(at);
    return;
  }
}

}  // namespace culprit::ingest
