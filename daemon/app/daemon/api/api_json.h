// JSON edited by the APIs of the daemon and the collector: stored documents with additional members. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/principal.h"
#include "base/time.h"

namespace culprit::app {

using nlohmann::json;

// Limit of evidence readers: each occupies one of the unit's 64 tasks while its client reads.
constexpr size_t kEvidenceReaders = 8;

// The uid, or the id of the container, that wrote a source; null: unknown, or the other kind.
inline json uid_json(const std::optional<Principal>& who) {
  const auto uid = who ? who->uid() : std::nullopt;
  return uid ? json(*uid) : json(nullptr);
}
inline json pod_json(const std::optional<Principal>& who) {
  return who && who->is_pod() ? json(who->pod_id()) : json(nullptr);
}

inline json time_or_null(TimeNs time) { return time == kNoTime ? json(nullptr) : json(time); }

// Replaces invalid UTF-8, which texts of logs and names may contain.
inline std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace culprit::app
