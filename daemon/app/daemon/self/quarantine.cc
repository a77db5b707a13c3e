#include "app/daemon/self/quarantine.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/text.h"
#include "ingest/file.h"
#include "model/json_text.h"
#include "model/json_writer.h"

namespace culprit::app {
namespace {

constexpr size_t kItems = 1000;  // limit of entries; one rule that crashed a daemon is already many
constexpr uint32_t kDeaths = 2;
constexpr TimeNs kTogetherNs = 7 * 24 * 3600 * kNsPerSecond;  // deaths further apart are unrelated
constexpr size_t kFileBytes = 1 << 20;

Error io_error(const std::string& path, const char* what) {
  return {ErrorCode::kIo, fmt::format("{}: {}: {}", path, what, std::strerror(errno))};
}

Status write_all(int descriptor, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return tl::unexpected(io_error(path, "cannot be written"));
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  if (::fsync(descriptor) != 0) return tl::unexpected(io_error(path, "cannot be written"));
  return {};
}

// Atomic: after a power loss the file is the old or the new one.
Status replace_file(const std::string& path, std::string_view text) {
  const std::string next = path + ".new";
  const int descriptor = ::open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0) return tl::unexpected(io_error(next, "cannot be made"));
  Status status = write_all(descriptor, text, next);
  ::close(descriptor);
  if (status && ::rename(next.c_str(), path.c_str()) != 0)
    status = tl::unexpected(io_error(path, "cannot be replaced"));
  if (!status) ::unlink(next.c_str());
  return status;
}

std::optional<Quarantined> item_of(const nlohmann::json& json) {
  Quarantined out;
  const auto text = [&](const char* key, std::string& to) {
    const auto it = json.find(key);
    if (it == json.end() || !it->is_string()) return false;
    to = it->get<std::string>();
    return true;
  };
  std::string hash;
  if (!json.is_object() || !text("kind", out.kind) || !text("id", out.id) || !text("why", out.why) ||
      !text("text_hash", hash) || hash.size() != 16)
    return std::nullopt;
  for (char c : hash) {
    const size_t digit = std::string_view("0123456789abcdef").find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    out.text_hash = out.text_hash << 4 | digit;
  }
  const auto deaths = json.find("deaths");
  if (deaths != json.end() && deaths->is_number_unsigned())
    out.deaths = static_cast<uint32_t>(std::min<uint64_t>(deaths->get<uint64_t>(), kDeaths));
  // Older files list only disabled rules.
  const auto is_active = json.find("stands");
  out.is_active = is_active == json.end() || !is_active->is_boolean() || is_active->get<bool>();
  const auto since = json.find("since_ns");
  if (since != json.end() && since->is_number_integer()) out.since_ns = since->get<int64_t>();
  return out;
}

}  // namespace

Result<Quarantine> Quarantine::read(const std::string& path) {
  Quarantine out(path);
  auto file = ingest::File::open(path);
  if (!file && file.error().code == ErrorCode::kNotFound) return out;
  if (!file) return tl::unexpected(file.error());
  std::string text(kFileBytes + 1, '\0');
  const ingest::ReadOutcome got = file->read_at(text.data(), text.size(), 0);
  if (got.error) return tl::unexpected(ingest::system_error(path, got.error));
  text.resize(got.bytes);
  const nlohmann::json list = parse_json(text);
  const auto damaged = fail(ErrorCode::kInvalid, fmt::format("{}: no list of what is quarantined", path));
  if (text.size() > kFileBytes || !list.is_array() || list.size() > kItems) return damaged;
  for (const nlohmann::json& row : list) {
    auto item = item_of(row);
    if (!item) return damaged;
    out.items_.push_back(std::move(*item));
  }
  return out;
}

Result<bool> Quarantine::add(const BlackBox::Crashed& crashed, TimeNs now) {
  Quarantined item;
  const bool job = crashed.kind == BlackBox::Kind::kJob;
  const bool input = crashed.kind == BlackBox::Kind::kInput;
  item.kind = job ? "job" : input ? "input" : crashed.kind == BlackBox::Kind::kPlugin ? "plugin" : "rule";
  item.id = to_utf8(crashed.id);
  item.text_hash = crashed.text_hash;
  item.since_ns = now;
  const auto same = [&](const Quarantined& q) { return q.kind == item.kind && q.id == item.id; };
  if (const auto known = std::find_if(items_.begin(), items_.end(), same);
      known != items_.end() && known->text_hash == item.text_hash && now - known->since_ns < kTogetherNs)
    item.deaths += known->deaths;
  item.is_active = input || crashed.over_time || item.deaths >= kDeaths;
  item.why = crashed.over_time ? "the daemon stood still in it and was ended"
             : item.is_active  ? "the daemon died twice while it ran"
                               : "the daemon died once while it ran: it is run on";
  if (job)
    item.why = item.is_active
                   ? "the daemon ran out of memory twice while it worked on it: it is evidence only"
                   : "the daemon ran out of memory once while it worked on it";
  if (input) item.why = "the daemon ran out of memory while it read it: it is not read for a week";
  std::erase_if(items_, same);
  if (items_.size() >= kItems) items_.erase(items_.begin());
  items_.push_back(item);
  if (const Status written = write(); !written) return tl::unexpected(written.error());
  return item.is_active;
}

Status Quarantine::keep_only(std::span<const rules::Rule> rules) {
  const size_t removed = std::erase_if(items_, [&](const Quarantined& q) {
    return q.kind == "rule" && std::none_of(rules.begin(), rules.end(), [&](const rules::Rule& rule) {
             return rule.id == q.id && rule.text_hash == q.text_hash;
           });
  });
  return removed > 0 ? write() : Status();
}

std::vector<std::string> Quarantine::plugins() const {
  std::vector<std::string> out;
  for (const Quarantined& q : items_)
    if (q.kind == "plugin") out.push_back(q.id);
  return out;
}

std::vector<std::string> Quarantine::within_a_week(std::string_view kind, TimeNs now) const {
  std::vector<std::string> out;
  for (const Quarantined& q : items_)
    if (q.kind == kind && q.is_active && now - q.since_ns < kTogetherNs) out.push_back(q.id);
  return out;
}

std::vector<std::string> Quarantine::jobs(TimeNs now) const { return within_a_week("job", now); }
std::vector<std::string> Quarantine::inputs(TimeNs now) const { return within_a_week("input", now); }

std::vector<std::string> Quarantine::rules() const {
  std::vector<std::string> out;
  for (const Quarantined& q : items_)
    if (q.kind == "rule" && q.is_active) out.push_back(q.id);
  return out;
}

Status Quarantine::write() const {
  std::string rows;  // one a line
  for (const Quarantined& q : items_) {
    JsonWriter w;
    w.object([&] {
      w.field("kind", q.kind);
      w.field("id", q.id);
      w.field("why", q.why);
      w.field("deaths", q.deaths);
      w.field("stands", q.is_active);
      w.field("since", format_time(q.since_ns));
      w.field("since_ns", q.since_ns);
      w.field("text_hash", hex64(q.text_hash));
    });
    rows += (rows.empty() ? "\n" : ",\n") + w.finish();
  }
  return replace_file(path_, "[" + rows + "\n]\n");
}

}  // namespace culprit::app
