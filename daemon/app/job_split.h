// The jobs under some paths. Each folder with a job.toml is a job. Without a job.toml, the names of files and
// folders decide, and the times in the files. Blocks: walks the folders, and reads the beginnings and ends of
// some files where names do not decide.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace culprit::app {

struct JobPaths {
  std::vector<std::string> paths;
  std::set<std::string> files;  // the job's own among those below the paths, as listed; empty: all
  std::string id;               // from the names of its files; empty: none
  std::string note;             // why it may be several jobs; empty: no doubt
};

// In the order of their names. Files that belong to none of several jobs form one more job, the last.
std::vector<JobPaths> split_jobs(const std::vector<std::string>& paths);

}  // namespace culprit::app
