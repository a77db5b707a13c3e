// Jobs of collectors that share them ([cluster]): what an answer says of where it comes from. Pure.
#pragma once

#include <string>

#include "cli/remote.h"

namespace culprit::cli {

// Of several collectors' lists of jobs: each run once. The owner's answer wins, then the newest one that was
// published. Items of a collector without [cluster] stay.
void keep_best(Json::array_t& items);

// "as of 2026-11-30 19:32:10, from collector-2", of a job or a report that another collector published;
// "unpublished since …" of one that the others cannot see. Empty: the collector's own.
std::string origin_text(const Json& answer, const Zone& zone);
// The column of a list: "now", or as above. Empty: no [cluster].
std::string as_of_field(const Json& job, const Zone& zone);

}  // namespace culprit::cli
