#include "ingest/live/tailer_rotated.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/limits.h"

namespace culprit::ingest {
namespace {

// Rotated parts per check: half a year of hourly ones. Earlier bytes are reported as a gap.
constexpr size_t kNewer = 4096;
// Open descriptors among them; the others are opened again later.
constexpr size_t kNewerOpen = 64;

bool is_plain(const Sibling& sibling) { return sibling.compression == Compression::kNone; }

}  // namespace

std::vector<Sibling> siblings_of(const TailSource& source, const std::vector<Entry>& entries) {
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
    sibling.name = join_below(source.folder->name, entry.name);
    sibling.inode = entry.inode;
    sibling.compression = compression_of_name(entry.name);
    found.push_back(std::move(sibling));
  }
  return found;
}

bool is_copied(const SafeFolder& root, const RotationPlan& plan, const TailSource& source,
               const Sibling& sibling) {
  const TimeNs path = plan.at_path ? root.born_ns(source.name) : kNoTime;
  if (path == kNoTime) return plan.rewritten;
  const TimeNs born = is_plain(sibling) ? root.born_ns(sibling.name) : sibling.look.modified_ns;
  return born != kNoTime && born > path;
}

TimeNs left_path_ns(const Look& part, TimeNs born, TimeNs next_born) {
  return std::max({part.modified_ns, born, std::min(part.changed_ns, next_born)});
}

bool is_copy_of(const SafeFolder& root, const TailSource& base, const std::string& name, const Look& look) {
  Descriptor file;
  if (base.chain.empty() || root.open_file(name, file) != 0) return false;
  const std::string beginning = beginning_of(file, Compression::kNone);
  const FilePlace& now = base.chain.back().place;
  const auto is = [&](const FilePlace& place) {
    return place.fingerprint_bytes > 0 && place.inode == now.inode && place.inode != look.inode &&
           begins_as(beginning, place);
  };
  if (is(now) || std::any_of(base.past.begin(), base.past.end(), is)) return true;
  Descriptor path;
  return root.open_file(base.name, path) == 0 && begins_and_ends_as(file, path);
}

struct RotationSearch::Row {
  std::vector<Sibling*> parts;
  std::vector<Sibling*> unknown;
  bool cut = false;  // more parts may exist
};

// Examines a file. Called only if needed: for a few of a thousand rotated parts.
bool RotationSearch::see(Sibling& sibling) {
  if (!sibling.seen) sibling.seen = root_.look(sibling.name, sibling.look) == 0 && sibling.look.regular;
  return sibling.seen;
}

// Whether numbers grow with time. logrotate counts from the youngest, others (log4j2) from the oldest. The
// modification times of the two parts with the most distant numbers decide. Plain parts are preferred, as a
// compressor may change the time.
bool RotationSearch::counts_up(const std::vector<Sibling*>& row) {
  const bool two_plain = std::ranges::count_if(row, [](const Sibling* s) { return is_plain(*s); }) > 1;
  Sibling *youngest = nullptr, *oldest = nullptr;
  for (Sibling* sibling : row) {
    const RotatedName::Style style = sibling->form.style;
    if (style != RotatedName::Style::kNumber && style != RotatedName::Style::kInnerNumber) return false;
    if (two_plain && !is_plain(*sibling)) continue;
    if (youngest == nullptr || older_mark(youngest->form, sibling->form)) youngest = sibling;
    if (oldest == nullptr || older_mark(sibling->form, oldest->form)) oldest = sibling;
  }
  return youngest != nullptr && see(*youngest) && see(*oldest) &&
         youngest->look.modified_ns < oldest->look.modified_ns;
}

// Sorts, the youngest first.
void RotationSearch::order(std::vector<Sibling*>& row) {
  const bool up = counts_up(row);
  std::stable_sort(row.begin(), row.end(), [&](const Sibling* a, const Sibling* b) {
    return up ? older_mark(a->form, b->form) : older_mark(b->form, a->form);
  });
}

// Whether a shorter file that begins like the bytes read up to `place` is a partial copy of it. Logs may
// begin with the same banner, so an existing original decides. If the original was deleted or rewritten, the
// beginning decides, but only for a file that was truncated in place; renamed files are never partial copies.
bool RotationSearch::is_part_of(const Descriptor& file, const FilePlace& place) {
  if (plan_.at_path && same_file(place, plan_.path)) return true;
  for (Sibling& other : plan_.found) {
    Descriptor whole;
    if (other.inode != place.inode || !see(other) || !same_file(place, other.look)) continue;
    if (root_.open_file(other.name, whole) == 0) return begins_and_ends_as(file, whole);
  }
  return false;
}

// Whether the file was completely read earlier. A beginning shorter than a fingerprint may be a banner of all
// parts.
bool RotationSearch::is_taken(const Descriptor& file, const Sibling& sibling) {
  const std::string beginning = beginning_of(file, sibling.compression);
  const auto is = [&](const FilePlace& place) {
    if (place.fingerprint_bytes == 0 || !begins_as(beginning, place)) return false;
    const bool whole = place.fingerprint_bytes == limits::kFingerprintBytes ||
                       beginning.size() == std::max<uint64_t>(place.offset, place.fingerprint_bytes);
    if (!whole) return false;
    const Reach reach = reaches(file, sibling.compression, place);
    return reach == Reach::kWhole || (reach == Reach::kShorter && is_part_of(file, place));
  };
  if (std::any_of(source_.past.begin(), source_.past.end(), is)) return true;
  return source_.chain.size() > 1 &&
         std::any_of(source_.chain.begin(), source_.chain.end() - 1, [&](const Generation& generation) {
           if (generation.place.offset > 0) return is(generation.place);
           const FilePlace now = place_by_now(generation);
           return is(now.fingerprint_bytes > 0 ? now : generation.peek);
         });
}

// The role of a file. A file with the read position is opened in the plan.
RotationSearch::Part RotationSearch::what_is(Sibling& sibling) {
  Descriptor file;
  const bool plain = is_plain(sibling);
  if (plan_.at_path && plain && sibling.inode == plan_.path.inode) return Part::kElsewhere;
  const int error = root_.open_file(sibling.name, file);
  sibling.seen = error == 0 && look_at(file.get(), sibling.look) == 0;
  plan_.torn = plan_.torn || error == ENOENT || (sibling.seen && sibling.look.inode != sibling.inode);
  if (!sibling.seen) return Part::kElsewhere;
  const std::string beginning = beginning_of(file, sibling.compression);
  if (beginning.empty()) return Part::kElsewhere;
  const TailSource* owner = plain ? sources_.owner_of(sibling.name, sibling.look) : nullptr;
  if (owner != nullptr && owner != &source_) return Part::kElsewhere;
  if (!source_.chain.empty()) {
    if (plan_.place.offset < limits::kFingerprintBytes && is_taken(file, sibling)) return Part::kTaken;
    const bool begins = plan_.place.fingerprint_bytes > 0 && begins_as(beginning, plan_.place);
    const Reach it = begins ? reaches(file, sibling.compression, plan_.place) : Reach::kOther;
    if (it == Reach::kWhole) {
      if (!plan_.position) plan_.file = std::move(file);
      return Part::kPosition;
    }
    // A copy made before all bytes were read, even if the bytes read are fewer than a fingerprint.
    const Generation& last = source_.chain.back();
    const bool short_copy = beginning.size() < last.head.size() && last.head.starts_with(beginning);
    const bool shorter = owner == nullptr && (it == Reach::kShorter || short_copy);
    const Descriptor& whole = plan_.held ? last.file : plan_.file;
    if (shorter && (!whole.is_open() || begins_and_ends_as(file, whole))) return Part::kTakenCopy;
  }
  if (owner != nullptr || is_taken(file, sibling)) return Part::kTaken;
  // A copytruncate is in progress.
  if (plain && plan_.opened.is_open() && begins_and_ends_as(file, plan_.opened)) return Part::kElsewhere;
  return Part::kUnknown;
}

// Finds the last generation by its inode, under any name.
void RotationSearch::find_by_inode() {
  if (plan_.rewritten) return;
  for (Sibling& sibling : plan_.found) {
    if (sibling.inode != plan_.place.inode || !see(sibling) || !same_file(plan_.place, sibling.look))
      continue;
    // If its beginning was never seen, there is nothing to compare: the name decides.
    const bool unseen = plan_.place.offset == 0 && plan_.place.fingerprint_bytes == 0;
    const bool is =
        plan_.held || (unseen ? sibling.rotated() && is_plain(sibling) : what_is(sibling) == Part::kPosition);
    if (!is) continue;
    if (!plan_.held && !plan_.file.is_open() && root_.open_file(sibling.name, plan_.file) != 0) continue;
    plan_.position = sibling;
    return;
  }
}

// Whether the part was at the path after the source was first seen.
bool RotationSearch::left_while_followed(const Row& row, const Sibling& sibling) {
  const TimeNs since = source_.info.opened_ns - kFileClockNs;
  if (sibling.look.modified_ns > since) return true;
  const auto at = std::find(row.parts.begin(), row.parts.end(), &sibling);
  const bool youngest = at == row.parts.begin();
  if (at == row.parts.end() || (youngest ? !plan_.at_path : !is_plain(**(at - 1)))) return false;
  const TimeNs next_born = root_.born_ns(youngest ? source_.name : (*(at - 1))->name);
  return left_path_ns(sibling.look, kNoTime, next_born) > since;
}

// Walks from the youngest part to the first known one; younger parts were never seen. True if a known part
// was found.
bool RotationSearch::walk(Row& row) {
  // With few bytes read, several parts may begin alike: then the oldest of them is the position.
  const bool weak = plan_.place.offset < limits::kFingerprintBytes;
  Sibling* likely = nullptr;
  Sibling* end = nullptr;        // the youngest known part
  std::vector<Sibling*> before;  // parts younger than the likely one
  bool known = false;
  for (Sibling* sibling : row.parts) {
    const auto twin = [&](const Sibling* other) {
      return is_plain(*other) && other->form.mark == sibling->form.mark;
    };
    if (!is_plain(*sibling) && std::any_of(row.parts.begin(), row.parts.end(), twin)) continue;
    const bool by_inode = plan_.position && *sibling == *plan_.position;
    Part part = by_inode ? Part::kPosition : what_is(*sibling);
    if (part == Part::kElsewhere) continue;
    if (part == Part::kPosition && !by_inode && plan_.position && weak) part = Part::kUnknown;
    if (part == Part::kTakenCopy) plan_.taken = !plan_.held && !plan_.position && likely == nullptr;
    known = part != Part::kUnknown && (part != Part::kPosition || by_inode || !weak);
    if (part == Part::kPosition && !plan_.position) {
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
  if (likely != nullptr) plan_.position = *likely;
  // Keeps parts written after the log was first seen or after the known part: parts that existed at first
  // observation may be unread after a kill. Others only have a similar name.
  const auto other = [&](Sibling* sibling) {
    return !left_while_followed(row, *sibling) &&
           (end == nullptr || !see(*end) || sibling->look.modified_ns < end->look.modified_ns);
  };
  std::erase_if(row.unknown, other);
  row.cut = row.cut && !row.unknown.empty();
  return known || likely != nullptr;
}

void RotationSearch::find_parts() {
  if (!source_.chain.empty()) find_by_inode();
  std::vector<Row> rows(static_cast<size_t>(RotatedName::Style::kInnerDate) + 1);
  for (Sibling& sibling : plan_.found)
    if (sibling.rotated()) rows[static_cast<size_t>(sibling.form.style)].parts.push_back(&sibling);
  Row all;
  bool known = false;
  for (Row& row : rows) {
    order(row.parts);
    known = walk(row);
    // A log is rotated in one naming style: files of another style belong to other logs.
    if (known) all.unknown.clear();
    all.unknown.insert(all.unknown.end(), row.unknown.begin(), row.unknown.end());
    all.cut = all.cut || row.cut;
    if (known) break;
  }
  const bool had_bytes = !source_.chain.empty() && source_.chain.back().seen > 0;
  const bool removed = plan_.held && !plan_.position && had_bytes;
  plan_.may_lack = all.cut || (removed && (known || !all.unknown.empty()));
  open_newer(all);
}

void RotationSearch::open_newer(const Row& row) {
  for (size_t i = row.unknown.size(); i > 0; --i) {
    const Sibling& sibling = *row.unknown[i - 1];
    Generation generation;
    generation.name = sibling.name;
    generation.compression = sibling.compression;
    Look look;
    const bool opens =
        root_.open_file(sibling.name, generation.file) == 0 && look_at(generation.file.get(), look) == 0;
    plan_.torn = plan_.torn || !opens || look.inode != sibling.inode;
    if (!opens) continue;
    generation.place.device = look.device;
    generation.place.inode = look.inode;
    generation.seen = look.size;
    generation.peek = peek_of(generation);
    generation.copied = is_copied(root_, plan_, source_, sibling);
    if (plan_.newer.size() >= kNewerOpen) generation.file = Descriptor();
    plan_.newer.push_back(std::move(generation));
  }
}

RotationPlan RotationSearch::plan(AtPath at, const std::vector<Entry>& entries, bool rewritten) {
  plan_.at_path = at.there;
  plan_.path = at.look;
  plan_.opened = std::move(at.file);
  plan_.rewritten = rewritten && source_.chain.empty();
  if (!source_.chain.empty()) {
    const Generation& last = source_.chain.back();
    const bool there = plan_.at_path && same_file(last.place, plan_.path);
    if (!rewritten && there) {
      // The file came back, or never left.
      plan_.held = true;
      return std::move(plan_);
    }
    // Reading of a since renamed file continues under its new name; reading detects changed content.
    plan_.rewritten = rewritten && there;
    plan_.held = !plan_.rewritten && (last.file.is_open() || last.decoder);
    plan_.place = plan_.held ? place_by_now(last) : last.place;
  }
  plan_.found = siblings_of(source_, entries);
  find_parts();
  if (!source_.chain.empty() && !plan_.held && !plan_.position && !plan_.taken) {
    const Generation& last = source_.chain.back();
    // If none of its bytes were read, it is among the newer files, if it still exists.
    const auto is_last = [&](const Generation& newer) {
      if (newer.place.inode == last.place.inode && newer.place.device == last.place.device) return true;
      if (!newer.file.is_open() || last.peek.fingerprint_bytes == 0) return !newer.file.is_open();
      return begins_as(beginning_of(newer.file, newer.compression), last.peek);
    };
    plan_.lost = last.place.offset > 0 ||
                 (last.unread() > 0 && std::none_of(plan_.newer.begin(), plan_.newer.end(), is_last));
  }
  find_at_path();
  return std::move(plan_);
}

// The log with this path as a rotated name, if the file at the path is a copy of that log.
const TailSource* RotationSearch::base_copied() const {
  for (const RotatedName& form : rotated_forms(name_in(source_.name))) {
    const TailSource* base = sources_.at(join_below(source_.folder->name, form.base));
    if (base != nullptr && base != &source_ && is_copy_of(root_, *base, source_.name, plan_.path))
      return base;
  }
  return nullptr;
}

void RotationSearch::find_at_path() {
  if (!plan_.at_path) return;
  Generation generation;
  generation.name = source_.name;
  generation.place.device = plan_.path.device;
  generation.place.inode = plan_.path.inode;
  generation.seen = plan_.path.size;
  generation.modified_ns = plan_.path.modified_ns;
  const TailSource* owner = plan_.rewritten ? nullptr : sources_.owner_of(source_.name, plan_.path);
  if (owner == nullptr && !plan_.rewritten) owner = base_copied();
  if (owner != nullptr) {
    if (owner != &source_) {
      plan_.foreign = true;
      return;
    }
    const bool opens = plan_.opened.is_open();
    const std::string beginning = opens ? beginning_of(plan_.opened, Compression::kNone) : "";
    for (const FilePlace& place : source_.past) {
      if (opens && same_file(place, plan_.path) && begins_as(beginning, place) &&
          reaches(plan_.opened, Compression::kNone, place) == Reach::kWhole)
        generation.place = place;
    }
  }
  generation.file = std::move(plan_.opened);
  if (generation.file.is_open()) generation.peek = peek_of(generation);
  plan_.newer.push_back(std::move(generation));
}

}  // namespace culprit::ingest
