#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>

#include "app/checkpoint/comm_groups.h"
#include "app/config/options.h"
#include "base/text.h"
#include "cli/checkpoint_copies.h"
#include "cli/layout.h"
#include "cli/remote.h"
#include "cli/rules.h"
#include "core/checkpoint/copy_plan.h"
#include "model/json_writer.h"

namespace culprit::cli {
namespace {

constexpr const char* kPlanExamples = R"(
A copy is on a host outside all tensor, context, data and pipeline groups of its owner, where there is one: a
whole group may be taken out at once. Each line is copies.to of a host.

job.toml has `hosts` and `ranks_per_host` below [job]; `tp`, `cp`, `dp` and `pp` below [parallel], 1 where absent.

Examples:
  culprit checkpoint plan job.toml
  culprit checkpoint plan traces/     # groups and hosts from communication traces
  culprit checkpoint plan job.toml --bytes 8GiB --rate 64MiB --format json

Exit status: 0; 1 where hosts share a group with their copy; 2 where there is no plan.)";

struct PlanVerb {
  std::string job, bytes, rate = "64MiB", format = "text";
  uint32_t port = 7444;
};

struct Plan {
  std::vector<std::string> hosts;
  std::vector<checkpoint::HostGroup> groups;
  checkpoint::CopyPlan plan;
  uint64_t bytes = 0, rate = 0;  // of one host; bytes in a second
};

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

std::string plan_text(const Plan& p, uint32_t port) {
  std::vector<std::vector<std::string>> rows{{"HOST", "COPIES.TO", "SHARED GROUPS"}};
  for (size_t i = 0; i < p.plan.partners.size(); ++i) {
    const checkpoint::CopyPartner& partner = p.plan.partners[i];
    rows.push_back({to_terminal(p.hosts[i]), to_terminal(fmt::format("{}:{}", p.hosts[partner.to], port)),
                    partner.shared.empty() ? "none" : joined(partner.shared)});
  }
  std::string out = table(rows, wants_color());
  out +=
      fmt::format("{}; {} on a host at most; {} share a group with their copy\n",
                  counted(p.plan.partners.size(), "host"), p.plan.receives_most == 1 ? "1 copy" : "2 copies",
                  p.plan.sharing == 0 ? "none" : std::to_string(p.plan.sharing));
  if (p.bytes > 0)
    out +=
        fmt::format("{} of each host: {:.0f} s at {} a second, and {} of disk on each host that stores one\n",
                    format_bytes(p.bytes), static_cast<double>(p.bytes) / static_cast<double>(p.rate),
                    format_bytes(p.rate), format_bytes(p.bytes * 2 * p.plan.receives_most));
  return out;
}

std::string plan_json(const Plan& p, uint32_t port) {
  JsonWriter w;
  w.object([&] {
    w.field("schema", "culprit.copy.plan/1");
    w.field("receives_most", uint64_t{p.plan.receives_most});
    w.field("sharing", uint64_t{p.plan.sharing});
    if (p.bytes > 0) {
      w.field("bytes", p.bytes);
      w.field("seconds", static_cast<double>(p.bytes) / static_cast<double>(p.rate));
    }
    size_t i = 0;
    w.list("hosts", p.plan.partners, [&](const checkpoint::CopyPartner& partner) {
      w.object([&] {
        w.field("host", p.hosts[i++]);
        w.field("to", fmt::format("{}:{}", p.hosts[partner.to], port));
        w.values("shared", partner.shared);
      });
    });
  });
  return w.finish() + "\n";
}

Result<std::string> read_job_text(const std::string& path) {
  constexpr size_t kBytes = 16 << 20;
  std::ifstream file(path, std::ios::binary);
  std::string out(kBytes + 1, '\0');
  if (!file) return fail(ErrorCode::kNotFound, path + ": cannot be read");
  file.read(out.data(), static_cast<std::streamsize>(out.size()));
  out.resize(static_cast<size_t>(file.gcount()));
  if (out.size() > kBytes) return fail(ErrorCode::kLimit, path + ": is too large");
  return out;
}

// Of a job.toml, or of a folder of traces.
Status read_groups(const std::string& path, Plan& p) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    auto found = app::read_comm_groups(path);
    if (!found) return tl::unexpected(found.error());
    for (const std::string& problem : found->problems) report_error(problem);
    p.hosts = std::move(found->hosts);
    p.groups = std::move(found->groups);
    return {};
  }
  const auto text = read_job_text(path);
  if (!text) return tl::unexpected(text.error());
  auto job = parse_job_file(*text, path);
  if (!job) return tl::unexpected(job.error());
  auto groups = checkpoint::host_groups(*job);
  if (!groups) return fail(groups.error().code, path + ": " + groups.error().text);
  if (!job->parallel) report_error(path + ": has no [parallel]: hosts that share a group are not known");
  p.hosts = std::move(job->hosts);
  p.groups = std::move(*groups);
  return {};
}

int plan(const PlanVerb& o) {
  Plan p;
  const auto rate = app::parse_size(o.rate);
  const auto bytes = o.bytes.empty() ? std::optional<uint64_t>(0) : app::parse_size(o.bytes);
  if (!rate || *rate == 0 || !bytes || *bytes > uint64_t{1} << 50)
    return report_error("checkpoint plan: --bytes and --rate are sizes such as 8GiB"), kUnable;
  p.rate = *rate;
  p.bytes = *bytes;
  if (const Status known = read_groups(o.job, p); !known) return report_error(known.error().text), kUnable;
  auto made = checkpoint::plan_copies(static_cast<uint32_t>(p.hosts.size()), p.groups);
  if (!made) return report_error(o.job + ": " + made.error().text), kUnable;
  p.plan = std::move(*made);
  if (!print(o.format == "json" ? plan_json(p, o.port) : plan_text(p, o.port))) return kUnable;
  return p.plan.sharing > 0 ? kFound : kDone;
}

}  // namespace

void add_checkpoint_plan(Command& checkpoint, Run& run) {
  auto o = std::make_shared<PlanVerb>();
  Command* verb = checkpoint.add_subcommand("plan", "The host that should store each host's copy");
  verb->footer(kPlanExamples);
  verb->add_option("PATH", o->job,
                   "job.toml with hosts, ranks_per_host and [parallel]; or a folder of communication traces")
      ->required();
  verb->add_option("--bytes", o->bytes, "Bytes that one host writes of a checkpoint")->type_name("SIZE");
  verb->add_option("--rate", o->rate, "copies.rate of the hosts")->type_name("SIZE")->show_default();
  verb->add_option("--port", o->port, "Port of copies.listen")->between(1u, 65'535u)->show_default();
  verb->add_option("--format,-f", o->format, "text or json")->one_of({"text", "json"})->show_default();
  verb->callback([o, &run] { run = [o] { return plan(*o); }; });
}

}  // namespace culprit::cli
