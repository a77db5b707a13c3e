#include "sim/comm_file.h"

#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "sim/files.h"
#include "sim/random.h"

namespace culprit::sim {

CommFiles::CommFiles(const CommJobOptions& options, const CommSite& site,
                     const std::vector<uint32_t>& retained, std::string folder)
    : options_(options), site_(site), folder_(std::move(folder)), hosts_(site.hosts) {
  Random random(mix64(options.seed, 0x656c6966));
  epoch_ns_ = (1'763'690'000 + random.below(2'000'000)) * 1'000'000'000ull;
  if (options.epoch_ns != 0) epoch_ns_ = options.epoch_ns;
  if (!options.plain && random.chance(60)) lost_per_100k_ = static_cast<uint32_t>(random.below(100));
  // Clock skew, from synchronised within microseconds to unsynchronised: 2^10 .. 2^31 ns.
  const int64_t skew = int64_t{1} << random.range(10, 31);
  for (Host& host : hosts_) {
    if (options.plain) continue;
    host.offset_ns = random.range(-skew, skew);
    host.drift = random.range(-86'000, 86'000);  // 20 parts in a million
  }
  std::vector<uint32_t> may;
  for (uint32_t h = 0; h < site.hosts; ++h)
    if (std::find(retained.begin(), retained.end(), h) == retained.end()) may.push_back(h);
  for (uint32_t i = 0; i < options.missing_hosts && may.size() > 1; ++i) {
    const uint64_t at = random.below(may.size());
    hosts_[may[at]].missing = true;
    may.erase(may.begin() + static_cast<int64_t>(at));
  }
}

uint64_t CommFiles::local(const Host& host, uint64_t ns) const {
  const int64_t drifted = static_cast<int64_t>((static_cast<__int128>(ns) * host.drift) >> 32);
  return epoch_ns_ + ns + static_cast<uint64_t>(host.offset_ns + drifted);
}

void CommFiles::mark(CommRecord& one) const {
  one.flags = site_.device_times ? kCommDeviceTimes : uint8_t{0};
  one.device = one.rank % site_.ranks_per_host;
  if (options_.unknown_groups) one.group = CommGroup::kUnknown;
  if (options_.unknown_bytes) one.bytes = 0;
  one.step = options_.unknown_steps || one.op == CommOp::kJoin ? kCommUnknown : one.step + site_.first_step;
}

std::string CommFiles::joins(uint32_t host) const {
  std::string out;
  const uint32_t first = host * site_.ranks_per_host;
  for (uint32_t r = first; r < std::min(first + site_.ranks_per_host, site_.world); ++r) {
    for (uint8_t kind = 1; kind < kCommGroups; ++kind) {
      const CommGroups& groups = site_.groups[kind];
      const uint32_t n = groups.of_rank[r];
      if (groups.size(n) < 2) continue;
      CommRecord one;
      one.start_ns = one.end_ns = local(hosts_[host], 0) - 1'000'000'000 + 10'000ull * r;
      one.comm = site_.id(static_cast<CommGroup>(kind), n);
      one.rank = r;
      one.comm_size = groups.size(n);
      one.group = static_cast<CommGroup>(kind);
      mark(one);
      out.append(reinterpret_cast<const char*>(&one), sizeof one);
    }
  }
  return out;
}

Status CommFiles::append(uint32_t host, std::string_view bytes) const {
  const std::string path = fmt::format("{}/{}.comm", folder_, site_.host_names[host]);
  std::ofstream file(path, std::ios::binary | std::ios::app);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) return fail(ErrorCode::kIo, path + ": cannot be written");
  return {};
}

std::string CommFiles::job_toml() const {
  std::string names;
  for (const std::string& name : site_.host_names)
    names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", name);
  return fmt::format(
      "[job]\nid = \"{}\"\nhosts = [{}]\nranks_per_host = {}\n[parallel]\ntp = {}\ncp = {}\ndp = {}\n"
      "pp = {}\nep = {}\n",
      site_.job, names, site_.ranks_per_host, site_.tp, site_.cp, site_.dp, site_.pp, site_.ep);
}

Status CommFiles::begin() {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) return fail(ErrorCode::kIo, folder_ + ": " + error.message());
  if (Status status = write_text(folder_ + "/job.toml", job_toml()); !status) return status;
  for (uint32_t h = 0; h < site_.hosts; ++h) {
    if (hosts_[h].missing) continue;
    std::string bytes = comm_header_bytes({site_.host_names[h], site_.job});
    if (!options_.no_joins) bytes += joins(h);
    if (Status status = append(h, bytes); !status) return status;
  }
  return {};
}

void CommFiles::add_host(uint32_t host, const CommWorld& world) {
  batch_.clear();
  const uint32_t first = host * site_.ranks_per_host;
  for (uint32_t r = first; r < std::min(first + site_.ranks_per_host, site_.world); ++r) {
    const uint64_t key = mix64(mix64(options_.seed, phase_), r);
    for (const CommRecord& record : world.records(r)) {
      if (record.comm_size < 2) continue;
      if (mix64(key, record.seq ^ record.comm) % 100'000 < lost_per_100k_) continue;
      CommRecord one = record;
      one.start_ns = local(hosts_[host], one.start_ns);
      if (one.end_ns != 0) one.end_ns = local(hosts_[host], one.end_ns);
      mark(one);
      batch_.push_back(one);
    }
  }
  const auto done = [](const CommRecord& one) { return one.end_ns != 0 ? one.end_ns : ~uint64_t{0}; };
  std::stable_sort(batch_.begin(), batch_.end(),
                   [&](const CommRecord& a, const CommRecord& b) { return done(a) < done(b); });
}

Status CommFiles::add(const CommWorld& world) {
  for (uint32_t h = 0; h < site_.hosts; ++h) {
    if (hosts_[h].missing) continue;
    add_host(h, world);
    const std::string_view bytes(reinterpret_cast<const char*>(batch_.data()),
                                 batch_.size() * sizeof batch_[0]);
    if (Status status = append(h, bytes); !status) return status;
  }
  ++phase_;
  return {};
}

}  // namespace culprit::sim
