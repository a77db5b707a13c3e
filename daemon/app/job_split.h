// Which jobs lie under some paths: a folder with a job.toml is one. Where there is none, the names of files
// and folders decide, with the times in the files. Blocks: walks the folders, and reads the beginnings and
// ends of some files where names do not decide.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace culprit::app {

struct JobPaths {
  std::vector<std::string> paths;
  std::set<std::string> files;  // of those below the paths only these, as they are listed; empty: all
  std::string id;               // that the names of its files tell; empty: none
  std::string note;             // what speaks against reading it as one job; empty: nothing
};

// In the order of their names. What belongs to none of several jobs is one more, the last.
std::vector<JobPaths> split_jobs(const std::vector<std::string>& paths);

}  // namespace culprit::app
