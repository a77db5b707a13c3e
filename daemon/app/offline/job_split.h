// Finds the jobs below some paths. Each folder with a job.toml is a job. Without a job.toml, the names of
// files and folders and the times in the files decide. Blocks: walks the folders, and reads the start and end
// of some files if names do not decide. Any thread.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace culprit::app {

struct JobPaths {
  std::vector<std::string> paths;
  std::set<std::string> files;  // the job's files below the paths, as listed; empty: all
  std::string id;               // derived from the names of its files; empty: none
  std::string note;             // why it may be several jobs; empty: no doubt
};

// Sorted by name. Files outside of several jobs form one more job, the last one.
std::vector<JobPaths> split_jobs(const std::vector<std::string>& paths);

}  // namespace culprit::app
