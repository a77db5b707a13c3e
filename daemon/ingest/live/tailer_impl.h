// Internals of the tailer: walked folders, followed sources, and the time of the next check of each. Parts:
// tailer.cc (a round, its schedule), tailer_scan.cc (folders, new names), tailer_follow.cc and
// tailer_rotated.cc (rotation), tailer_take.cc and tailer_late.cc (bytes). Owned by Tailer; its worker's
// thread only, except `stats`.
//
// Invariant of rotation: a check first opens the file at the path, then reads all names of the folder. The
// path must be unchanged after all names were checked. So every file that was at the path since the last
// known one is among the names. A file is identified by its open descriptor, never by a name that was checked
// earlier.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "ingest/live/generation.h"
#include "ingest/live/rotated_name.h"
#include "ingest/live/safe_open.h"
#include "ingest/live/tailer.h"
#include "ingest/live/watch_glob.h"

namespace culprit::ingest {

struct TailFolder;

// The file at a path, independent of its name.
struct AtPath {
  bool there = false;  // a regular file
  Look look;
  Descriptor file;     // closed if it may not be read
  uint64_t asked = 0;  // Impl::asked_ before the open
};

// The names of a folder, valid for one round.
struct FolderNames {
  std::shared_ptr<const std::vector<Entry>> entries;
  uint64_t begun = 0;  // Impl::asked_ before the list was read; 0: not read yet
  int lists = 0;       // lists read in this round
  int error = 0;
  bool settled = false;  // the folder was unchanged for a while before and during the read
  bool sound = false;    // settled, or two reads were equal: one consistent state without a missed file
  TimeNs modified_ns = kNoTime;
};

// An earlier file of a source, checked for late bytes.
struct LateFile {
  Generation generation;
  TimeNs until = 0;
  bool lost = false;  // its content changed, or it is unreadable
};

// One path. Its unfinished generations, oldest first; the last one is at the path.
struct TailSource {
  StreamInfo info;
  uint32_t number = 0;  // in Impl::sources_
  std::string name;     // below the root
  TailFolder* folder = nullptr;
  uint64_t size = 0;  // of the evidence
  std::vector<Generation> chain;
  std::vector<FilePlace> past;
  std::vector<LateFile> late;   // the latest last
  bool late_failing = false;    // the last read late file was unreadable
  TimeNs late_at = 0;           // when a file was left or a late file had grown
  TimeNs next_late = 0;         // time of the next check of all past files
  std::optional<AtPath> ahead;  // opened at the start of this round, before any names were read
  bool pending = false;         // in Impl::pending_
  uint64_t foreign_device = 0, foreign_inode = 0;  // the file at the path, if it belongs to another source
  TimeNs next_look = 0, queued_at = 0, interval = 0;
  TimeNs changed_at = 0;  // when the file last grew or was replaced
  std::optional<TimeNs> absent_since;
  TimeNs next_search = 0;        // of the search for its last generation under another name
  TimeNs searched_ns = kNoTime;  // modification time of the folder at the last search
  TimeNs not_before = 0;         // no read before this time, after a failure
  uint64_t lag = 0;
  std::optional<Gap> gap;  // not reported yet: precedes the next piece, or is reported alone at a later check
  TimeNs gap_at = 0;
  bool ended = false, ready = false, failing = false;
  size_t descriptors = 0;
  std::optional<std::list<uint32_t>::iterator> held;  // in Impl::open_order_
};

struct TailFolder {
  std::string name;  // below the root, "" the root itself
  WatchGlob::State state;
  bool watched = false, asked = false, gone = false, hinted = false, failing = false;
  bool settled = false;  // a change of its list would change its modification time
  TimeNs modified_ns = kNoTime;
  TimeNs next_list = 0, next_full = 0;  // next_list: if the modification time changed; next_full: in any case
  TimeNs next_sweep = 0;                // of all its sources after a hint
  std::vector<uint32_t> sources;
  std::vector<uint32_t> ended;  // sources with files that may be in this folder
  FolderNames names;
  // Matched names that are no source, with the file at that time.
  struct Ignored {
    uint64_t inode = 0;
    std::optional<uint64_t> size{};  // its size, if rotated only by name; a source if it grows
    TimeNs since = 0;
  };
  std::unordered_map<std::string, Ignored> ignored;
  std::set<std::string> waiting;  // matched names, not identified yet
};

// A file that may be a generation of a source, now or earlier.
struct Sibling {
  bool rotated() const { return !form.base.empty(); }
  std::string name;  // below the root
  uint64_t inode = 0;
  RotatedName form;  // no base: the name is not that of a rotated file
  Compression compression = Compression::kNone;
  bool seen = false;  // `look` is valid
  Look look;
  bool operator==(const Sibling& other) const { return name == other.name && inode == other.inode; }
};

// Whether `a` is an older part than `b`; both of one style. Numbers grow with age in logrotate and fall with
// age in other libraries (log4j's `max`, a counter). The times of the last writes decide which order applies.
bool older_part(const Sibling& a, const Sibling& b);

class Tailer::Impl {
 public:
  Impl(TailOptions options, WatchGlob glob);
  void restore(const std::vector<StreamState>& known);
  TailOutcome round(const TailRound& round);

  std::atomic<uint64_t> files{0}, slots{0}, open{0}, bytes{0}, lag_bytes{0}, generations{0}, gaps{0},
      gap_bytes{0}, refused{0};

 private:
  struct Plan;  // result of a check: the state of the last generation, and the later ones
  struct Row;   // parts of one naming style, the youngest first
  // The role of a file with a rotated name for a source.
  enum class Part : uint8_t {
    kPosition,   // the file of the read position
    kTakenCopy,  // a copy of its beginning, completely read
    kTaken,      // completely read and left
    kElsewhere,  // belongs to another source, or is also at the path
    kUnknown,
  };

  // tailer.cc
  std::string path_of(const std::string& below) const;
  void problem(const std::string& below, std::string what);
  void schedule(TailSource& source, TimeNs at);
  void look_later(TailSource& source);
  void make_ready(TailSource& source);
  void note_lag(TailSource& source);
  void drain_hints();
  bool stand_on_root();
  void list_due();
  void look_due();
  void visit(TailFolder& folder);
  void look_ahead();
  void sweep_after_hint(TailFolder& folder);
  TimeNs next_time() const;

  // tailer_scan.cc
  TailFolder& folder(const std::string& name, WatchGlob::State state);
  TailFolder& folder_above(const std::string& name);
  TailFolder* folder_of_path(const std::string& path);
  void list(TailFolder& folder);
  bool list_changed(TailFolder& folder);
  void list_failed(TailFolder& folder, int error);
  void read_names(TailFolder& folder);
  std::shared_ptr<const std::vector<Entry>> names(TailFolder& folder, uint64_t since);
  void forget_names();
  void forget_ended(TailFolder& folder, const std::vector<Entry>& entries);
  bool is_known(TailFolder& folder, const Entry& entry);
  bool has_grown(TailFolder& folder, const std::string& name);
  void refuse(TailFolder& folder, const std::string& name, const std::string& what);
  void consider(TailFolder& folder, const Entry& entry, const std::set<std::string>& fresh);
  TailSource* create(TailFolder& folder, const std::string& name, const std::vector<Sibling>& older);
  std::vector<Sibling> older_at_first_sight(TailFolder& folder, const std::string& name,
                                            const std::set<std::string>& fresh);
  TailSource* owner_of(const std::string& name, const Look& look);
  bool is_copy(TailSource& base, const std::string& name, const Look& look);
  TailSource* source_at(const std::string& name);
  void index(TailSource& source, const FilePlace& place);
  void unindex(const TailSource& source, const FilePlace& place);

  // tailer_rotated.cc
  std::vector<Sibling> siblings(const TailSource& source, const std::vector<Entry>& entries);
  bool see(Sibling& sibling);
  bool counts_up(const std::vector<Sibling*>& row);
  void order(std::vector<Sibling*>& row);
  bool is_taken(Plan& plan, const TailSource& source, const Descriptor& file, const Sibling& sibling);
  bool is_part_of(Plan& plan, const Descriptor& file, const FilePlace& place);
  Part what_is(Plan& plan, const TailSource& source, Sibling& sibling);
  void find_by_inode(Plan& plan, const TailSource& source);
  void find_parts(Plan& plan, const TailSource& source);
  bool walk(Plan& plan, const TailSource& source, Row& row);
  void open_newer(Plan& plan, const TailSource& source, const Row& row);
  bool is_copied(const Plan& plan, const TailSource& source, const Sibling& sibling) const;
  int find_again(TailSource& source, Generation& generation);

  // tailer_follow.cc
  void look(TailSource& source);
  void look_same(TailSource& source, const Look& at);
  void look_other(TailSource& source, const Look& at);
  void look_absent(TailSource& source);
  TailSource* base_copied(const TailSource& source, const Look& at);
  bool last_name_stands(const TailSource& source);
  void end(TailSource& source);
  AtPath at_path(const TailSource& source);
  bool stands_at_path(const TailSource& source, const Plan& plan);
  void resolve(TailSource& source, bool rewritten);
  Plan plan(TailSource& source, AtPath at, const std::vector<Entry>& entries, bool rewritten);
  void find_at_path(Plan& plan, TailSource& source);
  void carry_out(TailSource& source, Plan plan);
  void stand_at(TailSource& source, Plan& plan);
  void push(TailSource& source, Generation generation);
  void remember(TailSource& source, const FilePlace& place);
  void leave(TailSource& source);  // leaves the oldest generation, which was read to its end

  // tailer_take.cc
  uint64_t read_source(TailSource& source, uint64_t share);
  bool read_piece(TailSource& source, uint64_t max, uint64_t& taken);
  void begin_again(TailSource& source, Generation& generation);
  void note_gap(TailSource& source, Gap gap);
  Piece& add_piece(TailSource& source, std::string bytes);
  Piece& bare_piece(TailSource& source, std::string bytes);
  bool ensure_open(TailSource& source, Generation& generation);
  void count_open(TailSource& source);
  void close_all(TailSource& source);
  void failed(TailSource& source, int error);

  // tailer_late.cc
  bool late_has_grown(TailSource& source);
  bool read_late(TailSource& source, uint64_t share, uint64_t& taken);
  void drop_late(TailSource& source, const std::function<bool(const LateFile&)>& which);
  void leave_late(TailSource& source, const LateFile& late);
  bool read_late_piece(TailSource& source, LateFile& late, uint64_t max, uint64_t& taken);
  void follow_late(TailSource& source, Generation generation);
  void find_late(TailFolder& folder, const std::vector<Entry>& entries);
  void find_late_of(TailSource& source, const std::unordered_map<uint64_t, const Entry*>& by_inode);
  bool is_followed(const FilePlace& place);

  TailOptions options_;
  WatchGlob glob_;
  SafeFolder root_;
  bool root_missing_ = false;
  TimeNs next_root_ = 0;
  bool full_ = false;  // files_max is reached and reported

  std::vector<std::unique_ptr<TailSource>> sources_;
  std::unordered_map<std::string, uint32_t> by_name_;  // the latest source of a path
  std::unordered_multimap<uint64_t, uint32_t> by_inode_;
  std::map<std::string, std::unique_ptr<TailFolder>> folders_;
  std::set<TailFolder*> hot_;  // with a hint, or with waiting names
  TimeNs next_folder_ = 0;     // time of the next list of a folder without a hint
  using Due = std::pair<TimeNs, uint32_t>;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  std::list<uint32_t> ready_;
  std::vector<uint32_t> free_;      // free indices of sources_
  std::vector<uint32_t> pending_;   // files not identified in the previous round
  std::vector<TailFolder*> named_;  // with names read in this round
  std::list<uint32_t> open_order_;  // sources with open descriptors, the longest unused first
  size_t descriptors_ = 0;

  // Of the current round.
  TimeNs now_ = 0, mono_ = 0;
  uint64_t asked_ = 0;  // counts opens and lists, to order them
  const TailRound* round_ = nullptr;
  TailOutcome* out_ = nullptr;
};

struct Tailer::Impl::Plan {
  bool rewritten = false;  // the file at the path is the same, with another content
  bool held = false;       // the last generation is open and unchanged
  bool taken = false;      // found as a copy without unread bytes
  bool lost = false;       // not found
  bool copied = false;     // its content is in another file
  bool may_lack = false;   // files between the last and the present one may have been deleted
  bool torn = false;       // names changed while they were checked
  std::vector<Sibling> found;
  Descriptor opened;                // the file at the path
  FilePlace place;                  // position in the last generation
  std::optional<Sibling> position;  // present name of the last generation
  Descriptor file;                  // the last generation, opened there
  std::vector<Generation> newer;    // oldest first; the one at the path is last
  bool at_path = false;             // a regular file is at the path
  Look path;
  bool foreign = false;  // the file at the path belongs to another source
};

// Delay of the check of an idle file; without hints only checks find new bytes.
constexpr TimeNs kFirstLookNs = 50 * kNsPerMs;
constexpr TimeNs kPolledLookNs = 1 * kNsPerSecond;
// Files idle for longer are checked less often, with a delay of at most a tenth of the idle time: 10,000 idle
// files then cost a thousand checks a second instead of ten thousand.
constexpr int64_t kIdleShare = 10;
// Interval of checks with a watch: finds changes that hints missed.
constexpr TimeNs kSweepNs = 10 * kNsPerSecond;
// After a hint all files of its folder are checked, each at most this often: one busy file among 10,000 idle
// ones costs a hundredth of a core.
constexpr TimeNs kSweepNsPerFile = 100 * kNsPerUs;
// A path that is empty for this long has ended; rotations take less time.
constexpr TimeNs kGoneNs = 60 * kNsPerSecond;
// An earlier file is kept open for this long after its last byte, for a writer that has not reopened its log.
// This also covers a file that is compressed and removed meanwhile. Later only its size is checked.
constexpr TimeNs kLateNs = 10 * kNsPerSecond;
// Modification times advance in steps of the kernel's clock, some milliseconds; on network mounts, a second.
constexpr TimeNs kSettledNs = 2 * kNsPerSecond;
constexpr TimeNs kRetryNs = 10 * kNsPerSecond;

}  // namespace culprit::ingest
