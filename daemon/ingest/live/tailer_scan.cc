#include "ingest/live/tailer_scan.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <unordered_set>
#include <utility>

#include "base/text.h"
#include "io/container.h"

namespace culprit::ingest {
namespace {

constexpr size_t kFolders = 16'384;
// A new log usually grows again within this time; if later, the next list finds it.
constexpr TimeNs kOwnNs = 5 * kNsPerSecond;
// After a hint all files of its folder are checked, each at most this often: one busy file among 10,000 idle
// ones costs a hundredth of a core.
constexpr TimeNs kSweepNsPerFile = 100 * kNsPerUs;

std::string folder_name(const std::string& below) {
  const size_t slash = below.rfind('/');
  return slash == below.npos ? "" : below.substr(0, slash);
}

// Whether `a` is an older part than `b`; both of one style. Numbers grow with age in logrotate and fall with
// age in other libraries (log4j's `max`, a counter). The times of the last writes decide which order applies.
bool older_part(const Sibling& a, const Sibling& b) {
  const bool numbers =
      a.form.style == RotatedName::Style::kNumber || a.form.style == RotatedName::Style::kInnerNumber;
  if (numbers && a.look.modified_ns != b.look.modified_ns) return a.look.modified_ns < b.look.modified_ns;
  return older_mark(a.form, b.form);
}

// Inode of the name; 0 if absent.
uint64_t inode_of(const std::vector<Entry>& entries, const std::string& name) {
  const auto at = std::lower_bound(entries.begin(), entries.end(), name,
                                   [](const Entry& entry, const std::string& n) { return entry.name < n; });
  return at == entries.end() || at->name != name ? 0 : at->inode;
}

bool older_sibling(const Sibling& a, const Sibling& b) {
  return a.form.style == b.form.style ? older_part(a, b) : a.form.style < b.form.style;
}

}  // namespace

TailFolder& FolderScan::folder(const std::string& name, WatchGlob::State state) {
  auto& retained = folders_[name];
  if (!retained) {
    retained = std::make_unique<TailFolder>();
    retained->name = name;
    retained->state = std::move(state);
    next_folder_ = 0;
  } else if (retained->removed) {
    retained->removed = retained->failing = retained->watched = retained->asked = retained->settled = false;
    retained->next_list = retained->next_full = next_folder_ = 0;
  }
  return *retained;
}

TailFolder& FolderScan::folder_above(const std::string& name) {
  WatchGlob::State state = tail_.glob.at_root();
  const std::string above = folder_name(name);
  if (!above.empty())
    for (const std::string_view part : split(above, '/')) state = tail_.glob.enter(state, part);
  return folder(above, std::move(state));
}

TailFolder* FolderScan::folder_of_path(const std::string& path) {
  std::string below;
  if (path != tail_.glob.root()) {
    const std::string root = tail_.output.path_of("x");
    if (path.size() < root.size()) return nullptr;
    below = path.substr(root.size() - 1);
  }
  const auto found = folders_.find(below);
  return found == folders_.end() ? nullptr : found->second.get();
}

void FolderScan::add_root() { folder("", tail_.glob.at_root()); }

void FolderScan::take_hints(const TailRound& round) {
  const auto each = [&](const std::vector<std::string>& paths, auto&& act) {
    for (const std::string& path : paths)
      if (TailFolder* found = folder_of_path(path)) act(*found);
  };
  each(round.watched, [&](TailFolder& folder) {
    folder.watched = true;
    // No notification covers the time between the last check and the watch.
    folder.next_list = folder.next_full = next_folder_ = 0;
    for (const uint32_t number : folder.sources) tail_.queue.schedule(tail_.sources[number], tail_.time.mono);
  });
  each(round.changed, [&](TailFolder& folder) {
    folder.hinted = true;
    hot_.insert(&folder);
  });
}

void FolderScan::list_due() {
  const std::set<TailFolder*> hot = hot_;
  for (TailFolder* folder : hot) visit(*folder);
  if (tail_.time.mono < next_folder_) return;
  // Listing adds folders at any position: repeat until none is due.
  for (size_t before = 0; before != folders_.size();) {
    before = folders_.size();
    for (auto& [name, folder] : folders_)
      if (!folder->removed && tail_.time.mono >= folder->next_list) visit(*folder);
  }
  next_folder_ = tail_.time.mono + kSweepNs;
  for (auto& [name, folder] : folders_)
    if (!folder->removed) next_folder_ = std::min(next_folder_, folder->next_list);
  // Lists many folders together.
  next_folder_ = std::max(next_folder_, tail_.time.mono + kFirstLookNs);
}

TimeNs FolderScan::next_time(TimeNs latest) const {
  TimeNs next = std::min(latest, next_folder_);
  for (const TailFolder* folder : hot_) {
    if (folder->hinted) next = std::min(next, folder->next_sweep);
    if (!folder->waiting.empty()) next = std::min(next, tail_.time.mono + kFirstLookNs);
  }
  return next;
}

void FolderScan::visit(TailFolder& folder) {
  if (!folder.removed && list_changed(folder)) list(folder);
  if (folder.hinted) sweep_after_hint(folder);
  if (folder.removed || (!folder.hinted && folder.waiting.empty())) hot_.erase(&folder);
}

void FolderScan::sweep_after_hint(TailFolder& folder) {
  const bool all = tail_.time.mono >= folder.next_sweep;
  // By index: a check may add sources.
  for (size_t i = 0; i < folder.sources.size(); ++i) {
    TailSource& source = tail_.sources[folder.sources[i]];  // ended sources are not in the list
    const bool busy = source.changed_at != 0 && tail_.time.mono - source.changed_at < kSweepNs;
    if (all || busy) follower_.look(source);
  }
  if (!all) return;
  folder.hinted = false;
  folder.next_sweep = tail_.time.mono + static_cast<TimeNs>(folder.sources.size()) * kSweepNsPerFile;
}

// Whether the list may have changed: the modification time of a folder changes with its names.
bool FolderScan::list_changed(TailFolder& folder) {
  const bool due = tail_.time.mono >= folder.next_list;
  if (due) folder.next_list = tail_.time.mono + (folder.watched ? kSweepNs : kPolledLookNs);
  if (tail_.time.mono >= folder.next_full) return true;
  if (!folder.settled || !folder.waiting.empty()) return true;
  Look now;
  return tail_.root.look(folder.name, now) != 0 || now.modified_ns != folder.modified_ns;
}

void FolderScan::list_failed(TailFolder& folder, int error) {
  if (error == ENOENT || error == ENOTDIR) {
    // Its sources detect by themselves that their files are gone.
    if (folder.asked) tail_.output.unwatch(folder.name);
    folder.asked = folder.watched = false;
    folder.removed = !folder.name.empty();
    folder.waiting.clear();
    forget_ended(folder, {});
    for (const uint32_t number : folder.sources) tail_.queue.schedule(tail_.sources[number], tail_.time.mono);
    return;
  }
  if (!folder.failing)
    tail_.output.problem(folder.name, error == EOVERFLOW
                                          ? "holds more than 200000 names: the others are not looked at"
                                          : reason_of(error));
  folder.failing = true;
}

// Forgets ended sources without any file in the folder, under any name.
void FolderScan::forget_ended(TailFolder& folder, const std::vector<Entry>& entries) {
  if (folder.ended.empty()) return;
  std::unordered_set<uint64_t> inodes;
  for (const Entry& entry : entries) inodes.insert(entry.inode);
  std::erase_if(folder.ended, [&](uint32_t number) {
    TailSource& source = tail_.sources[number];
    for (const FilePlace& place : source.past)
      if (inodes.contains(place.inode)) return false;
    tail_.sources.remove(source);
    return true;
  });
}

bool FolderScan::enters(TailFolder& folder, const std::string& name) {
  using Enter = TailOptions::Enter;
  if (!tail_.options.enter) return true;
  const Enter enter = tail_.options.enter(tail_.output.path_of(join_below(folder.name, name)));
  if (enter == Enter::kLater) list_soon(folder);
  return enter == Enter::kYes;
}

void FolderScan::list(TailFolder& folder) {
  folder.next_full = tail_.time.mono + kSweepNs;
  if (!folder.asked && tail_.root.is_local(folder.name)) {
    folder.asked = true;
    tail_.output.watch(folder.name);
  }
  if (folder.names.lists == 0) tail_.lister.read(folder);
  // A copy: checks of sources may read the names again.
  const auto retained = folder.names.entries;
  if (began_ns_ == kNoTime) began_ns_ = tail_.time.now;
  const std::vector<Entry>& entries = *retained;
  const int error = folder.names.error;
  const TimeNs modified_ns = folder.names.modified_ns;
  if (error != 0) list_failed(folder, error);
  if (error != 0 && error != EOVERFLOW) return;
  if (error == 0) folder.failing = false;
  folder.modified_ns = modified_ns;
  folder.settled = tail_.time.now - modified_ns > kSettledNs;
  folder.waiting.clear();
  folder.uncertain.clear();
  if (!folder.ended.empty())
    if (const auto all = tail_.lister.names(folder, 0)) forget_ended(folder, *all);

  FreshNames fresh;
  std::vector<const Entry*> unknown;
  for (const Entry& entry : entries) {
    if (entry.type == Entry::Type::kFolder) {
      WatchGlob::State inner = tail_.glob.enter(folder.state, entry.name);
      if (!inner.empty() && folders_.size() < kFolders && enters(folder, entry.name))
        this->folder(join_below(folder.name, entry.name), std::move(inner));
      continue;
    }
    if (!tail_.glob.takes(folder.state, entry.name) || is_known(folder, entry)) continue;
    fresh.add(entry.name);
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
                       [&](const RotatedName& form) { return fresh.all.contains(form.base); });
  };
  std::stable_partition(unknown.begin(), unknown.end(), [&](const Entry* entry) { return !derived(entry); });
  for (const Entry* entry : unknown) consider(folder, *entry, fresh);
  late_.find(folder, entries);
}

void FolderScan::FreshNames::add(const std::string& name) {
  all.insert(name);
  if (compression_of_name(name) != Compression::kNone) return;
  for (const RotatedName& form : rotated_forms(name)) rotated[form.base].insert(name);
}

// Checks a source whose file was replaced, so that its generations are known before new names are judged.
bool FolderScan::is_known(TailFolder& folder, const Entry& entry) {
  const auto ignored = folder.ignored.find(entry.name);
  if (ignored != folder.ignored.end() && ignored->second.inode == entry.inode)
    return !has_grown(folder, entry.name);
  TailSource* source = tail_.sources.at(join_below(folder.name, entry.name));
  if (source == nullptr || source->ended) return false;
  const bool its_own = !source->chain.empty() && source->chain.back().place.inode == entry.inode;
  if (!its_own && source->foreign_inode != entry.inode) follower_.look(*source);
  return true;
}

// A file with a rotated name that is still written and is no copy is a separate log, such as worker-0.log
// next to worker.log.
bool FolderScan::has_grown(TailFolder& folder, const std::string& name) {
  TailFolder::Ignored& ignored = folder.ignored[name];
  if (!ignored.size) return false;
  Look at;
  if (tail_.root.look(join_below(folder.name, name), at) != 0) return false;
  const bool grown = *ignored.size > 0 && at.size > *ignored.size;
  // Growth from an empty file may be a copy.
  if (!grown) ignored.size = at.size;
  if (!grown && tail_.time.mono - ignored.since < kOwnNs) folder.waiting.insert(name);
  return grown;
}

// Schedules another check of a name that could not be judged because calls failed.
void FolderScan::look_again(TailFolder& folder, const std::string& name) {
  folder.uncertain.insert(name);
  list_soon(folder);
}

void FolderScan::list_soon(TailFolder& folder) {
  const TimeNs soon = tail_.time.mono + kPolledLookNs;
  folder.next_full = std::min(folder.next_full, soon);
  folder.next_list = std::min(folder.next_list, soon);
  next_folder_ = std::min(next_folder_, soon);
}

// Whether the name got another file since the names were read. For a mounted file, and in some FUSE file
// systems, the listed inode always differs from the file's. So a repeated equal difference is no change.
bool FolderScan::is_torn(TailFolder& folder, const std::string& name, uint64_t listed, uint64_t found) {
  if (listed == found) return folder.differing.erase(name), false;
  const std::pair now(listed, found);
  return std::exchange(folder.differing[name], now) != now;
}

void FolderScan::consider(TailFolder& folder, const Entry& entry, const FreshNames& fresh) {
  const std::string name = join_below(folder.name, entry.name);
  const auto ignore = [&] { folder.ignored[entry.name] = {.inode = entry.inode}; };
  if (entry.type != Entry::Type::kFile) {
    ignore();
    ++tail_.counts.refused;
    tail_.output.problem(
        name, entry.type == Entry::Type::kLink ? "is a link, which is not followed" : "is no regular file");
    return;
  }
  const CallWatch calls;
  const auto forms = rotated_forms(entry.name);
  // Parts of an uncertain base must not become sources before the base.
  const auto is_uncertain_base = [&](const RotatedName& form) {
    return folder.uncertain.contains(form.base);
  };
  if (std::any_of(forms.begin(), forms.end(), is_uncertain_base)) return look_again(folder, entry.name);
  std::vector<TailSource*> bases;
  for (const RotatedName& form : forms) {
    TailSource* base = tail_.sources.at(join_below(folder.name, form.base));
    if (base == nullptr) continue;
    // A rotation after the last check of the base may have given it this name.
    if (!base->ended) follower_.look(*base);
    bases.push_back(base);
  }
  Look at;
  if (tail_.root.look(name, at) != 0 || !at.regular) {
    return calls.failed() ? look_again(folder, entry.name) : void();
  }
  if (tail_.sources.owner_of(name, at) != nullptr) return ignore();
  if (compression_of_name(entry.name) != Compression::kNone) {
    ignore();
    if (bases.empty())
      tail_.output.problem(name, "is compressed and no rotated part of a log that is followed: left alone");
    return;
  }
  for (TailSource* base : bases)
    if (is_copy_of(tail_.root, *base, name, at)) return ignore();
  if (calls.failed()) return look_again(folder, entry.name);
  const auto seen = folder.ignored.find(entry.name);
  const bool grown = seen != folder.ignored.end() && seen->second.inode == entry.inode;
  if (grown) folder.ignored.erase(seen);
  // A rotated name of a log that was followed before belongs to that log.
  const auto followed = [&](const TailSource* base) {
    return !fresh.all.contains(base->name.substr(folder.name.empty() ? 0 : folder.name.size() + 1));
  };
  if (!grown && std::any_of(bases.begin(), bases.end(), followed)) {
    folder.ignored[entry.name] = {entry.inode, at.size, tail_.time.mono};
    folder.waiting.insert(entry.name);
    hot_.insert(&folder);
    return;
  }
  if (tail_.counts.files >= tail_.options.files_max) {
    ignore();
    ++tail_.counts.refused;
    ++tail_.counts.left_out;
    if (!full_) tail_.output.problem(name, "is not followed: as many files as are allowed are");
    full_ = true;
    return;
  }
  full_ = false;
  const std::vector<Sibling> older = older_when_first_seen(folder, name, fresh);
  // Rotated since the names were read: the parts would not be in order, or not all of them.
  bool torn = is_torn(folder, entry.name, entry.inode, at.inode);
  for (const Sibling& part : older)
    torn = is_torn(folder, name_in(part.name), part.inode, part.look.inode) || torn;
  if (torn || calls.failed()) return look_again(folder, entry.name);
  create(folder, name, at.uid, older);
}

// Parts rotated before the daemon first saw the log are the beginning of the log, if the glob matches them. A
// file that was still written after the log began is no rotated part of it, whatever its name.
std::vector<Sibling> FolderScan::older_when_first_seen(TailFolder& folder, const std::string& name,
                                                       const FreshNames& fresh) {
  std::vector<Sibling> older;
  const TimeNs born = tail_.root.born_ns(name);
  const std::string base = folder.name.empty() ? name : name.substr(folder.name.size() + 1);
  const auto rotated = fresh.rotated.find(base);
  const bool none = born == kNoTime || rotated == fresh.rotated.end();
  for (const std::string& other : none ? std::set<std::string>() : rotated->second) {
    for (const RotatedName& form : rotated_forms(other)) {
      if (form.base != base) continue;
      Sibling sibling;
      sibling.name = join_below(folder.name, other);
      sibling.form = form;
      if (tail_.root.look(sibling.name, sibling.look) != 0 || !sibling.look.regular) continue;
      sibling.inode = inode_of(*folder.names.entries, other);
      if (sibling.look.size == 0 || sibling.look.modified_ns > born) continue;
      if (tail_.sources.owner_of(sibling.name, sibling.look) == nullptr) older.push_back(std::move(sibling));
      break;
    }
  }
  add_unstored(folder, name, older);
  std::sort(older.begin(), older.end(), older_sibling);
  return older;
}

// The files with rotated names of a log that no source follows, oldest first.
std::vector<Sibling> FolderScan::rotated_parts(TailFolder& folder, const std::string& name) {
  std::vector<Sibling> parts;
  TailSource path;
  path.name = name;
  path.folder = &folder;
  // An ended source of the path may have read the now compressed file.
  const bool again = tail_.sources.at(name) != nullptr;
  for (Sibling& sibling : siblings_of(path, *folder.names.entries)) {
    const bool plain = sibling.compression == Compression::kNone;
    if (plain ? tail_.glob.takes(folder.state, name_in(sibling.name)) : again) continue;
    if (tail_.root.look(sibling.name, sibling.look) != 0 || !sibling.look.regular) continue;
    if (sibling.look.size == 0 || tail_.sources.owner_of(sibling.name, sibling.look) != nullptr) continue;
    parts.push_back(std::move(sibling));
  }
  std::sort(parts.begin(), parts.end(), older_sibling);
  return parts;
}

// Parts that left the path after the last frame of an earlier process, which may have followed them and
// stored nothing. A part left its path when it was copied, or when the file after it was created.
void FolderScan::add_unstored(TailFolder& folder, const std::string& name, std::vector<Sibling>& older) {
  const TimeNs since = tail_.options.stored_until_ns;
  if (since == kNoTime || !folder.names.entries) return;
  const TimeNs path_born = tail_.root.born_ns(name);
  const std::vector<Sibling> parts = rotated_parts(folder, name);
  TimeNs next_born = path_born;  // creation time of the file after the part; kNoTime: unknown
  for (size_t i = parts.size(); i-- > 0;) {
    const Sibling& part = parts[i];
    const bool plain = part.compression == Compression::kNone;
    // During compression, both the plain and the compressed file exist.
    if (!plain && i + 1 < parts.size() && parts[i + 1].form.mark == part.form.mark) continue;
    const TimeNs born = plain ? tail_.root.born_ns(part.name) : kNoTime;
    const bool copied = born != kNoTime && path_born != kNoTime && born > path_born;
    const TimeNs left = left_path_ns(part.look, born, copied ? kNoTime : next_born);
    if (left < since - kFileClockNs) break;
    if (left <= began_ns_ + kOwnNs) older.push_back(part);
    next_born = copied ? path_born : born;
  }
}

void FolderScan::create(TailFolder& folder, const std::string& name, uint32_t uid,
                        const std::vector<Sibling>& older) {
  auto made = std::make_unique<TailSource>();
  made->name = name;
  made->folder = &folder;
  made->info.id = tail_.options.allocate();
  made->info.kind = tail_.options.kind;
  made->info.path = tail_.output.path_of(name);
  made->info.job = tail_.options.job_of ? tail_.options.job_of(made->info.path) : "";
  // The container runtime writes container output as root.
  std::optional<Principal> container;
  if (uid == 0 && tail_.options.container_of) container = tail_.options.container_of(made->info.path);
  if (uid == 0 && !tail_.options.container_of) container = io::container_of_log(made->info.path);
  made->info.uid = container.value_or(uid);
  made->info.opened_ns = tail_.time.now;
  made->queued_at = std::numeric_limits<TimeNs>::max();
  made->changed_at = tail_.time.mono;
  TailSource& source = tail_.sources.add(std::move(made));
  folder.sources.push_back(source.number);
  ++tail_.counts.files;
  for (const Sibling& sibling : older) {
    Generation generation;
    generation.name = sibling.name;
    generation.compression = sibling.compression;
    generation.place.device = sibling.look.device;
    generation.place.inode = sibling.look.inode;
    generation.seen = sibling.look.size;
    tail_.sources.push(source, std::move(generation));
  }
  follower_.look(source);
}

}  // namespace culprit::ingest
