#include <algorithm>
#include <cerrno>

#include "base/limits.h"
#include "ingest/live/tailer_impl.h"

namespace culprit::ingest {
namespace {

// Rotated parts per check: half a year of hourly ones. Earlier bytes are reported as a gap.
constexpr size_t kNewer = 4096;
// Open descriptors among them; the others are opened again later.
constexpr size_t kNewerOpen = 64;
// Files get the time of the kernel's last tick: at most 10 ms ago, at 100 ticks a second.
constexpr TimeNs kFileClockNs = 10 * kNsPerMs;

bool same(const FilePlace& place, const Look& look) {
  return place.device == look.device && place.inode == look.inode;
}

std::string name_in(const std::string& below) {
  const size_t slash = below.rfind('/');
  return slash == below.npos ? below : below.substr(slash + 1);
}

bool is_plain(const Sibling& sibling) { return sibling.compression == Compression::kNone; }

// The known beginning of a file, read or not.
const FilePlace& known_of(const Generation& generation) {
  return generation.place.offset > 0 ? generation.place : generation.peek;
}

}  // namespace

struct Tailer::Impl::Row {
  std::vector<Sibling*> parts;
  std::vector<Sibling*> unknown;
  bool cut = false;  // more parts may exist
};

// The source's last file under any name in the folder, and all files with rotated names of the source.
std::vector<Sibling> Tailer::Impl::siblings(const TailSource& source, const std::vector<Entry>& entries) {
  std::vector<Sibling> found;
  const std::string own = name_in(source.name);
  const std::string stem =
      own.substr(0, std::max<size_t>(own.rfind('.') == own.npos ? own.size() : own.rfind('.'), 1));
  const uint64_t inode = source.chain.empty() ? 0 : source.chain.back().place.inode;
  for (const Entry& entry : entries) {
    if (entry.type != Entry::Type::kFile || entry.name == own) continue;
    Sibling sibling;
    if (entry.name.starts_with(stem)) {
      for (RotatedName& form : rotated_forms(entry.name)) {
        if (form.base == own) sibling.form = std::move(form);
      }
    }
    if (!sibling.rotated() && entry.inode != inode) continue;
    sibling.name = source.folder->name.empty() ? entry.name : source.folder->name + "/" + entry.name;
    sibling.inode = entry.inode;
    sibling.compression = compression_of_name(entry.name);
    found.push_back(std::move(sibling));
  }
  return found;
}

// Called only if needed: for a few of a thousand rotated parts.
bool Tailer::Impl::see(Sibling& sibling) {
  if (!sibling.seen) sibling.seen = root_.look(sibling.name, sibling.look) == 0 && sibling.look.regular;
  return sibling.seen;
}

// Whether numbers grow with time. logrotate counts from the youngest, others (log4j2) from the oldest. The
// times of the two parts with the most distant numbers decide. Compression may have changed a time.
bool Tailer::Impl::counts_up(const std::vector<Sibling*>& row) {
  Sibling *youngest = nullptr, *oldest = nullptr;
  for (Sibling* sibling : row) {
    const RotatedName::Style style = sibling->form.style;
    if (style != RotatedName::Style::kNumber && style != RotatedName::Style::kInnerNumber) return false;
    if (!is_plain(*sibling)) continue;
    if (youngest == nullptr || older_mark(youngest->form, sibling->form)) youngest = sibling;
    if (oldest == nullptr || older_mark(sibling->form, oldest->form)) oldest = sibling;
  }
  return youngest != nullptr && see(*youngest) && see(*oldest) &&
         youngest->look.modified_ns < oldest->look.modified_ns;
}

// Sorts, the youngest first.
void Tailer::Impl::order(std::vector<Sibling*>& row) {
  const bool up = counts_up(row);
  std::stable_sort(row.begin(), row.end(), [&](const Sibling* a, const Sibling* b) {
    return up ? older_mark(a->form, b->form) : older_mark(b->form, a->form);
  });
}

// Whether a shorter file that begins like the bytes read up to `place` is a partial copy of it. Logs may
// begin with the same banner, so an existing original decides. If the original was deleted or rewritten, the
// beginning decides, but only for a file that was truncated in place; renamed files are never partial copies.
bool Tailer::Impl::is_part_of(Plan& plan, const Descriptor& file, const FilePlace& place) {
  if (plan.at_path && same(place, plan.path)) return true;
  for (Sibling& other : plan.found) {
    Descriptor whole;
    if (other.inode != place.inode || !see(other) || !same(place, other.look)) continue;
    if (root_.open_file(other.name, whole) == 0) return begins_and_ends_as(file, whole);
  }
  return false;
}

// Whether the file was completely read earlier. A beginning shorter than a fingerprint may be a banner of all
// parts.
bool Tailer::Impl::is_taken(Plan& plan, const TailSource& source, const Descriptor& file,
                            const Sibling& sibling) {
  const std::string beginning = beginning_of(file, sibling.compression);
  const auto is = [&](const FilePlace& place) {
    if (place.fingerprint_bytes == 0 || !begins_as(beginning, place)) return false;
    const bool whole = place.fingerprint_bytes == limits::kFingerprintBytes ||
                       beginning.size() == std::max<uint64_t>(place.offset, place.fingerprint_bytes);
    if (!whole) return false;
    const Reach reach = reaches(file, sibling.compression, place);
    return reach == Reach::kWhole || (reach == Reach::kShorter && is_part_of(plan, file, place));
  };
  if (std::any_of(source.past.begin(), source.past.end(), is)) return true;
  return source.chain.size() > 1 &&
         std::any_of(source.chain.begin(), source.chain.end() - 1, [&](const Generation& generation) {
           if (generation.place.offset > 0) return is(generation.place);
           const FilePlace now = place_by_now(generation);
           return is(now.fingerprint_bytes > 0 ? now : generation.peek);
         });
}

// The role of a file; if it is the position, it is opened as that.
Tailer::Impl::Part Tailer::Impl::what_is(Plan& plan, const TailSource& source, Sibling& sibling) {
  Descriptor file;
  const bool plain = is_plain(sibling);
  if (plan.at_path && plain && sibling.inode == plan.path.inode) return Part::kElsewhere;
  const int error = root_.open_file(sibling.name, file);
  sibling.seen = error == 0 && look_at(file.get(), sibling.look) == 0;
  plan.torn = plan.torn || error == ENOENT || (sibling.seen && sibling.look.inode != sibling.inode);
  if (!sibling.seen) return Part::kElsewhere;
  const std::string beginning = beginning_of(file, sibling.compression);
  if (beginning.empty()) return Part::kElsewhere;
  const TailSource* owner = plain ? owner_of(sibling.name, sibling.look) : nullptr;
  if (owner != nullptr && owner != &source) return Part::kElsewhere;
  if (!source.chain.empty()) {
    if (plan.place.offset < limits::kFingerprintBytes && is_taken(plan, source, file, sibling))
      return Part::kTaken;
    const bool begins = plan.place.fingerprint_bytes > 0 && begins_as(beginning, plan.place);
    const Reach it = begins ? reaches(file, sibling.compression, plan.place) : Reach::kOther;
    if (it == Reach::kWhole) {
      if (!plan.position) plan.file = std::move(file);
      return Part::kPosition;
    }
    // A copy from before all its bytes were read, also if those were fewer than a fingerprint.
    const Generation& last = source.chain.back();
    const bool short_copy = beginning.size() < last.head.size() && last.head.starts_with(beginning);
    const bool shorter = owner == nullptr && (it == Reach::kShorter || short_copy);
    const Descriptor& whole = plan.held ? last.file : plan.file;
    if (shorter && (!whole.is_open() || begins_and_ends_as(file, whole))) return Part::kTakenCopy;
  }
  if (owner != nullptr || is_taken(plan, source, file, sibling)) return Part::kTaken;
  // A copytruncate is in progress.
  if (plain && plan.opened.is_open() && begins_and_ends_as(file, plan.opened)) return Part::kElsewhere;
  return Part::kUnknown;
}

// Finds the last generation by its inode, under any name.
void Tailer::Impl::find_by_inode(Plan& plan, const TailSource& source) {
  if (plan.rewritten) return;
  for (Sibling& sibling : plan.found) {
    if (sibling.inode != plan.place.inode || !see(sibling) || !same(plan.place, sibling.look)) continue;
    // No byte was read, so there is nothing to compare: the name decides.
    const bool is = plan.held || (plan.place.offset == 0 ? sibling.rotated() && is_plain(sibling)
                                                         : what_is(plan, source, sibling) == Part::kPosition);
    if (!is) continue;
    if (!plan.held && !plan.file.is_open() && root_.open_file(sibling.name, plan.file) != 0) continue;
    plan.position = sibling;
    return;
  }
}

// Walks from the youngest part to the first known one; younger parts were never seen. True if a known part
// was found.
bool Tailer::Impl::walk(Plan& plan, const TailSource& source, Row& row) {
  // With few bytes read, several parts may begin alike: then the oldest of them is the position.
  const bool weak = plan.place.offset < limits::kFingerprintBytes;
  Sibling* likely = nullptr;
  Sibling* end = nullptr;        // the youngest known part
  std::vector<Sibling*> before;  // parts younger than the likely one
  bool known = false;
  for (Sibling* sibling : row.parts) {
    const auto twin = [&](const Sibling* other) {
      return is_plain(*other) && other->form.mark == sibling->form.mark;
    };
    if (!is_plain(*sibling) && std::any_of(row.parts.begin(), row.parts.end(), twin)) continue;
    const bool by_inode = plan.position && *sibling == *plan.position;
    Part part = by_inode ? Part::kPosition : what_is(plan, source, *sibling);
    if (part == Part::kElsewhere) continue;
    if (part == Part::kPosition && !by_inode && plan.position && weak) part = Part::kUnknown;
    if (part == Part::kTakenCopy) plan.taken = !plan.held && !plan.position && likely == nullptr;
    known = part != Part::kUnknown && (part != Part::kPosition || by_inode || !weak);
    if (part == Part::kPosition && !plan.position) {
      if (likely != nullptr) row.unknown.push_back(likely);
      row.unknown.insert(row.unknown.end(), before.begin(), before.end());
      before.clear();
      likely = sibling;
    }
    if (known) {
      end = sibling;
      break;
    }
    if (part == Part::kPosition) end = sibling;
    if (part != Part::kUnknown || sibling->form.mark.empty()) continue;
    (likely != nullptr ? before : row.unknown).push_back(sibling);
    row.cut = row.unknown.size() + before.size() >= kNewer;
    if (row.cut) break;
  }
  if (likely != nullptr) plan.position = *likely;
  // Keeps parts written after the log was first seen or after the known part: parts that existed at first
  // sight may be unread after a kill. Others only have a similar name.
  const auto other = [&](Sibling* sibling) {
    const TimeNs written = sibling->look.modified_ns;
    return written <= source.info.opened_ns - kFileClockNs &&
           (end == nullptr || !see(*end) || written < end->look.modified_ns);
  };
  std::erase_if(row.unknown, other);
  row.cut = row.cut && !row.unknown.empty();
  return known || likely != nullptr;
}

void Tailer::Impl::find_parts(Plan& plan, const TailSource& source) {
  if (!source.chain.empty()) find_by_inode(plan, source);
  std::vector<Row> rows(static_cast<size_t>(RotatedName::Style::kInnerDate) + 1);
  for (Sibling& sibling : plan.found)
    if (sibling.rotated()) rows[static_cast<size_t>(sibling.form.style)].parts.push_back(&sibling);
  Row all;
  bool known = false;
  for (Row& row : rows) {
    order(row.parts);
    known = walk(plan, source, row);
    // A log is rotated in one naming style: files of another style belong to other logs.
    if (known) all.unknown.clear();
    all.unknown.insert(all.unknown.end(), row.unknown.begin(), row.unknown.end());
    all.cut = all.cut || row.cut;
    if (known) break;
  }
  const bool had_bytes = !source.chain.empty() && source.chain.back().seen > 0;
  const bool gone = plan.held && !plan.position && had_bytes;
  plan.may_lack = all.cut || (gone && (known || !all.unknown.empty()));
  open_newer(plan, source, all);
}

// A renamed file is older than the file that took its path, a copy is younger. Compression keeps the time of
// the last write.
bool Tailer::Impl::is_copied(const Plan& plan, const TailSource& source, const Sibling& sibling) const {
  const TimeNs path = plan.at_path ? root_.born_ns(source.name) : kNoTime;
  if (path == kNoTime) return plan.rewritten;
  const TimeNs born = is_plain(sibling) ? root_.born_ns(sibling.name) : sibling.look.modified_ns;
  return born != kNoTime && born > path;
}

void Tailer::Impl::open_newer(Plan& plan, const TailSource& source, const Row& row) {
  for (size_t i = row.unknown.size(); i > 0; --i) {
    const Sibling& sibling = *row.unknown[i - 1];
    Generation generation;
    generation.name = sibling.name;
    generation.compression = sibling.compression;
    Look look;
    const bool opens =
        root_.open_file(sibling.name, generation.file) == 0 && look_at(generation.file.get(), look) == 0;
    plan.torn = plan.torn || !opens || look.inode != sibling.inode;
    if (!opens) continue;
    generation.place.device = look.device;
    generation.place.inode = look.inode;
    generation.seen = look.size;
    generation.peek = peek_of(generation);
    generation.copied = is_copied(plan, source, sibling);
    if (plan.newer.size() >= kNewerOpen) generation.file = Descriptor();
    plan.newer.push_back(std::move(generation));
  }
}

// Opens a file by its identity, while rotations continue. EAGAIN if names change too fast.
int Tailer::Impl::find_again(TailSource& source, Generation& generation) {
  generation.file = Descriptor();
  generation.decoder.reset();
  const FilePlace& place = known_of(generation);
  // The second attempt reads names again, after the first.
  for (const uint64_t since : {uint64_t{0}, ++asked_}) {
    const auto entries = names(*source.folder, since);
    if (!entries) return EAGAIN;
    std::vector<Sibling> found = siblings(source, *entries);
    std::stable_partition(found.begin(), found.end(),
                          [&](const Sibling& sibling) { return sibling.inode == generation.place.inode; });
    for (const Sibling& sibling : found) {
      Descriptor file;
      Look look;
      if (root_.open_file(sibling.name, file) != 0 || look_at(file.get(), look) != 0) continue;
      if (!same(generation.place, look) && (!sibling.rotated() || place.fingerprint_bytes == 0)) continue;
      if (!begins_as(beginning_of(file, sibling.compression), place)) continue;
      if (reaches(file, sibling.compression, place) != Reach::kWhole) continue;
      generation.name = sibling.name;
      generation.compression = sibling.compression;
      generation.file = std::move(file);
      return 0;
    }
  }
  return ENOENT;
}

}  // namespace culprit::ingest
