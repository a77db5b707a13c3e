// Walks the folders below the root that the glob reaches: finds new names, decides which become sources, and
// checks the sources of a folder after a hint. Owns the folders, which stay as long as the tailer; borrows
// the context, the follower and the late files. The tailer's thread.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ingest/live/tailer_context.h"
#include "ingest/live/tailer_follow.h"
#include "ingest/live/tailer_late.h"

namespace culprit::ingest {

class FolderScan {
 public:
  FolderScan(TailContext& tail, SourceFollower& follower, LateFiles& late)
      : tail_(tail), follower_(follower), late_(late) {}

  // The root is open: perhaps another folder than before.
  void add_root();
  // The folder of a path below the root.
  TailFolder& folder_above(const std::string& name);
  void take_hints(const TailRound& round);
  // Lists the folders that are due or have a hint.
  void list_due();
  // Time of the next list, at most `latest`.
  TimeNs next_time(TimeNs latest) const;

 private:
  // The names of a folder that no source has yet, and which of them are rotated names of a base.
  struct FreshNames {
    std::set<std::string> all;
    std::map<std::string, std::set<std::string>> rotated;  // by base; plain ones
    void add(const std::string& name);
  };

  TailFolder& folder(const std::string& name, WatchGlob::State state);
  TailFolder* folder_of_path(const std::string& path);
  void visit(TailFolder& folder);
  void sweep_after_hint(TailFolder& folder);
  void list(TailFolder& folder);
  bool enters(TailFolder& folder, const std::string& name);
  bool list_changed(TailFolder& folder);
  void list_failed(TailFolder& folder, int error);
  void forget_ended(TailFolder& folder, const std::vector<Entry>& entries);
  bool is_known(TailFolder& folder, const Entry& entry);
  bool has_grown(TailFolder& folder, const std::string& name);
  void look_again(TailFolder& folder, const std::string& name);
  void list_soon(TailFolder& folder);
  static bool is_torn(TailFolder& folder, const std::string& name, uint64_t listed, uint64_t found);
  void consider(TailFolder& folder, const Entry& entry, const FreshNames& fresh);
  void create(TailFolder& folder, const std::string& name, uint32_t uid, const std::vector<Sibling>& older);
  std::vector<Sibling> older_when_first_seen(TailFolder& folder, const std::string& name,
                                             const FreshNames& fresh);
  void add_unstored(TailFolder& folder, const std::string& name, std::vector<Sibling>& older);
  std::vector<Sibling> rotated_parts(TailFolder& folder, const std::string& name);

  TailContext& tail_;
  SourceFollower& follower_;
  LateFiles& late_;
  std::map<std::string, std::unique_ptr<TailFolder>> folders_;
  std::set<TailFolder*> hot_;  // with a hint, or with waiting names
  TimeNs next_folder_ = 0;     // time of the next list of a folder without a hint
  TimeNs began_ns_ = kNoTime;  // wall clock: first list
  bool full_ = false;          // files_max is reached and reported
};

}  // namespace culprit::ingest
