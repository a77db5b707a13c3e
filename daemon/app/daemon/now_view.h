// The list of jobs for a page: those that need a person first, each with what is known of its verdict, in few
// bytes. Pure.
#pragma once

#include <vector>

#include "app/daemon/api_json.h"
#include "serve/api.h"
#include "store/index.h"

namespace culprit::app {

// Runs whose verdict is listed with its details; beyond, a verdict has its title alone.
constexpr size_t kNowVerdicts = 5'000;

// {"items", "total", "counts": {"all", "running", "failed", "ended", "verdict"}}. `jobs`: the items of GET
// /v1/jobs. `verdicts`: rows of Index::verdicts. `now`: wall clock; a job that failed within a day before it
// comes before the jobs that run well. `total` counts the jobs with the query's words and state, `counts`
// those with its words.
json now_page(const json& jobs, const std::vector<store::DiagnosisRow>& verdicts,
              const serve::NowQuery& query, TimeNs now);

}  // namespace culprit::app
