#include "core/replay/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/text.h"
#include "core/replay/host_list.h"
#include "model/json_text.h"

namespace culprit::replay {
namespace {

constexpr uint32_t kPhases = 10'000;

struct Fields {
  uint32_t phase = 0, group = 0;
  std::string result, hosts;  // hosts empty: not named
};

Error bad_line(std::string why) { return {ErrorCode::kInvalid, std::move(why)}; }

std::optional<uint32_t> whole_number(std::string_view text) {
  uint32_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> out;
  for (size_t at = 0; (at = line.find_first_not_of(" \t", at)) != line.npos;) {
    const size_t end = std::min(line.find_first_of(" \t", at), line.size());
    out.push_back(line.substr(at, end - at));
    at = end;
  }
  return out;
}

Result<Fields> fields_of_words(std::string_view line) {
  const std::vector<std::string_view> words = words_of(line);
  if (words.size() < 3 || words.size() > 4)
    return tl::unexpected(bad_line("is not PHASE GROUP ok|failed [HOSTS]"));
  const auto phase = whole_number(words[0]), group = whole_number(words[1]);
  if (!phase || !group) return tl::unexpected(bad_line("phase and group are whole numbers"));
  return Fields{*phase, *group, std::string(words[2]), words.size() > 3 ? std::string(words[3]) : ""};
}

Result<Fields> fields_of_json(std::string_view line) {
  const nlohmann::json json = parse_json(line);
  if (!json.is_object()) return tl::unexpected(bad_line("is no JSON object"));
  Fields out;
  for (const auto& [name, to] : {std::pair{"phase", &out.phase}, {"group", &out.group}}) {
    const auto at = json.find(name);
    if (at == json.end() || !at->is_number_unsigned() || at->get<uint64_t>() > UINT32_MAX)
      return tl::unexpected(bad_line(fmt::format("'{}' is missing or no whole number", name)));
    *to = at->get<uint32_t>();
  }
  const auto result = json.find("result");
  if (result == json.end() || !result->is_string()) return tl::unexpected(bad_line("'result' is missing"));
  out.result = result->get<std::string>();
  const auto hosts = json.find("hosts");
  if (hosts == json.end() || hosts->is_null()) return out;
  if (hosts->is_string()) out.hosts = hosts->get<std::string>();
  if (hosts->is_array())
    for (const auto& host : *hosts)
      if (host.is_string()) out.hosts += (out.hosts.empty() ? "" : ",") + host.get<std::string>();
  if (out.hosts.empty()) return tl::unexpected(bad_line("'hosts' is no list of names"));
  return out;
}

class Reader {
 public:
  explicit Reader(const Plan& plan) : plan_(plan), planned_{groups_of(plan, 1), groups_of(plan, 2)} {
    for (uint32_t x = 0; x < plan.hosts.size(); ++x) index_.emplace(plan.hosts[x], x);
  }

  Result<GroupRun> run_of(std::string_view line) {
    const auto fields = line.front() == '{' ? fields_of_json(line) : fields_of_words(line);
    if (!fields) return tl::unexpected(fields.error());
    GroupRun out{fields->phase, fields->group, fields->result == "failed", {}};
    if (!out.failed && fields->result != "ok")
      return tl::unexpected(
          bad_line(fmt::format("'{}' is neither ok nor failed", to_terminal(fields->result))));
    if (out.phase == 0 || out.phase > kPhases || out.group == 0)
      return tl::unexpected(bad_line("phases and groups count from 1"));
    auto named = hosts_of(fields->hosts);
    if (!named) return tl::unexpected(named.error());
    return out.phase <= 2 ? planned(std::move(out), *named) : further(std::move(out), *named);
  }

 private:
  Result<HostSet> hosts_of(const std::string& list) const {
    HostSet out;
    if (list.empty()) return out;
    const auto names = expand_hosts(list, kHostsMost);
    if (!names) return tl::unexpected(names.error());
    for (const std::string& name : *names) {
      const auto at = index_.find(name);
      if (at == index_.end())
        return tl::unexpected(
            bad_line(fmt::format("{} is not among the hosts of the replay", to_terminal(name))));
      out.push_back(at->second);
    }
    std::ranges::sort(out);
    return out;
  }

  Result<GroupRun> planned(GroupRun run, const HostSet& named) const {
    const std::vector<HostSet>& groups = planned_[run.phase - 1];
    if (run.group > groups.size())
      return tl::unexpected(bad_line(fmt::format("phase {} has {}, no group {}", run.phase,
                                                 counted(groups.size(), "group"), run.group)));
    run.hosts = groups[run.group - 1];
    if (!named.empty() && named != run.hosts)
      return tl::unexpected(
          bad_line(fmt::format("group {} of phase {} has other hosts in the plan; are --hosts and --size "
                               "those of the plan?",
                               run.group, run.phase)));
    return run;
  }

  Result<GroupRun> further(GroupRun run, const HostSet& named) {
    const auto known = further_.find({run.phase, run.group});
    if (named.empty() && known == further_.end())
      return tl::unexpected(
          bad_line(fmt::format("phase {} is not part of the plan: name the hosts", run.phase)));
    if (!named.empty() && known != further_.end() && known->second != named)
      return tl::unexpected(
          bad_line(fmt::format("group {} of phase {} had other hosts before", run.group, run.phase)));
    run.hosts = named.empty() ? known->second : named;
    further_[{run.phase, run.group}] = run.hosts;
    return run;
  }

  const Plan& plan_;
  std::vector<HostSet> planned_[2];
  std::map<std::string, uint32_t, std::less<>> index_;
  std::map<std::pair<uint32_t, uint32_t>, HostSet> further_;
};

}  // namespace

Result<std::vector<GroupRun>> read_results(std::string_view text, const Plan& plan) {
  if (text.size() > kResultBytes) return fail(ErrorCode::kLimit, "the results are larger than 4 MiB");
  std::vector<GroupRun> out;
  Reader reader(plan);
  size_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    if (!line.starts_with('{')) line = line.substr(0, line.find('#'));
    line = trim(line);
    if (line.empty()) continue;
    auto run = reader.run_of(line);
    if (!run) return fail(run.error().code, fmt::format("line {}: {}", number, run.error().text));
    if (out.size() == kResultRuns)
      return fail(ErrorCode::kLimit, fmt::format("the results have more than {} runs", kResultRuns));
    out.push_back(std::move(*run));
  }
  return out;
}

}  // namespace culprit::replay
