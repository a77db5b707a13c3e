#include "core/detect/logs/pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "base/hash.h"
#include "base/text.h"
#include "core/detect/logs/view.h"

namespace culprit::detect {
namespace {

constexpr std::string_view kMagic = "culprit.pool/2";

bool by_hash(const PoolForm& a, const PoolForm& b) { return a.hash < b.hash; }

template <class Number>
bool parse(std::string_view text, Number& value, int base = 10) {
  const char* end = text.data() + text.size();
  if constexpr (std::is_floating_point_v<Number>) {
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    return error == std::errc() && stop == end;
  } else {
    const auto [stop, error] = std::from_chars(text.data(), end, value, base);
    return error == std::errc() && stop == end;
  }
}

bool has_form(const std::vector<PoolForm>& forms, uint64_t hash) {
  const auto at = std::lower_bound(forms.begin(), forms.end(), hash,
                                   [](const PoolForm& f, uint64_t h) { return f.hash < h; });
  return at != forms.end() && at->hash == hash;
}

// Templates whose form is that of an alarm.
std::set<logs::ClusterId> alarms_of(const logs::JobLog& log) {
  std::set<logs::ClusterId> out;
  for (const logs::JobLog::FormStats& form : log.forms())
    if (form.alarm) out.insert(form.cluster);
  return out;
}

// from_chars accepts "nan" and "inf" as numbers.
bool is_amount(double value) { return std::isfinite(value) && value >= 0; }

}  // namespace

bool Pool::resembles(const logs::JobLog& log) const {
  size_t of_job = 0, of_both = 0;
  for (const auto& form : log.forms()) {
    if (form.count == 0) continue;
    ++of_job;
    of_both += has_form(forms, form.hash);
  }
  return of_both * 5 >= std::min(of_job, forms.size());
}

bool Pool::resembles(const Pool& other) const {
  size_t of_both = 0;
  for (const PoolForm& form : other.forms) of_both += has_form(forms, form.hash);
  return of_both * 5 >= std::min(other.forms.size(), forms.size());
}

void Pool::add(const logs::JobLog& log) {
  const View view = make_view(log);
  Pool one;
  one.jobs = 1;
  // JobLog counts per template and host. Each form gets a share, so the shares add up in any template that
  // the forms join later.
  struct FormCounts {
    double most = 0, share = 0, events = 0;
  };
  std::map<logs::ClusterId, FormCounts> known;
  for (const logs::JobLog::FormStats& form : log.forms())
    known[form.cluster].events += static_cast<double>(form.count);
  for (auto& [id, k] : known) {
    const auto counts = count_by(log.templates()[id], view.host_of_writer);
    uint64_t most = counts.empty() ? log.templates()[id].count : 0;
    for (const UnitCount& c : counts) most = std::max(most, c.count);
    const double hosts = static_cast<double>(std::max<size_t>(1, view.hosts.size()));
    k.most = static_cast<double>(most);
    k.share = counts.empty() ? 1.0 : static_cast<double>(counts.size()) / hosts;
  }
  const std::set<logs::ClusterId> alarms = learned ? alarms_of(log) : std::set<logs::ClusterId>();
  for (const logs::JobLog::FormStats& form : log.forms()) {
    if (form.count == 0 || alarms.contains(form.cluster)) continue;
    const FormCounts& k = known[form.cluster];
    const double most = k.most * static_cast<double>(form.count) / k.events;
    const uint32_t words = words_class(log.templates()[form.cluster]);
    one.forms.push_back({form.hash, form.text, 1, most, k.share, words});
  }
  std::sort(one.forms.begin(), one.forms.end(), by_hash);
  merge(one);
}

void Pool::merge(const Pool& other) {
  std::vector<PoolForm> all;
  all.reserve(forms.size() + other.forms.size());
  std::merge(forms.begin(), forms.end(), other.forms.begin(), other.forms.end(), std::back_inserter(all),
             by_hash);
  forms.clear();
  for (PoolForm& f : all) {
    if (forms.empty() || forms.back().hash != f.hash) {
      forms.push_back(std::move(f));
      continue;
    }
    PoolForm& to = forms.back();
    to.jobs += f.jobs;
    to.host_max = std::max(to.host_max, f.host_max);
    to.hosts_share = std::max(to.hosts_share, f.hosts_share);
    to.words = std::max(to.words, f.words);
  }
  jobs += other.jobs;
}

Result<std::string> Pool::save(size_t limit) const {
  std::string out = fmt::format("{}\t{}\n", kMagic, jobs);
  for (const PoolForm& f : forms) {
    std::string text = f.text;
    std::replace(text.begin(), text.end(), '\n', ' ');
    out += fmt::format("{}\t{}\t{:.6g}\t{:.4g}\t{}\t{}\n", hex64(f.hash), f.jobs, f.host_max, f.hosts_share,
                       f.words, text);
    if (out.size() > limit)
      return fail(ErrorCode::kLimit, fmt::format("the pool would be larger than {}: build it of fewer jobs",
                                                 format_bytes(limit)));
  }
  return out;
}

Result<Pool> Pool::load(std::string_view text, std::string_view name) {
  Pool pool;
  size_t number = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    ++number;
    const auto bad = [&](std::string_view what) {
      return fail(ErrorCode::kInvalid, fmt::format("{}:{}: {}", name, number, what));
    };
    const std::vector<std::string_view> cell = split(line, '\t');
    if (number == 1) {
      if (cell.size() != 2 || cell[0] != kMagic || !parse(cell[1], pool.jobs))
        return bad("is no pool made by `culprit pool build`");
      continue;
    }
    PoolForm f;
    if (cell.size() < 6 || !parse(cell[0], f.hash, 16) || !parse(cell[1], f.jobs) ||
        !parse(cell[2], f.host_max) || !parse(cell[3], f.hosts_share) || !parse(cell[4], f.words) ||
        f.words > 2 || !is_amount(f.host_max) || !is_amount(f.hosts_share))
      return bad("is no row of a pool");
    if (!pool.forms.empty() && f.hash <= pool.forms.back().hash) return bad("is out of order");
    f.text = line.substr(static_cast<size_t>(cell[5].data() - line.data()));
    pool.forms.push_back(std::move(f));
  }
  if (number == 0) return fail(ErrorCode::kInvalid, fmt::format("{}: is empty", name));
  return pool;
}

}  // namespace culprit::detect
