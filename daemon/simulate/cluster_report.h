// The results of `culprit simulate cluster` as text, JSON and a picture.
#pragma once

#include <string>

#include "sim/cluster/study.h"

namespace culprit::cli {

std::string text_of(const sim::ClusterStudy& study, const sim::StudyResult& result);
std::string json_of(const sim::ClusterStudy& study, const sim::StudyResult& result);
// An SVG document: where the time goes, and the ETTR with each rule left out and each parameter changed.
std::string plot_of(const sim::ClusterStudy& study, const sim::StudyResult& result);
// Parameters, incidents, rules and thresholds with their sources.
std::string list_of(const sim::ClusterStudy& study);

}  // namespace culprit::cli
