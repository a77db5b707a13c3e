#include "core/logs/file_name.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "base/limits.h"

namespace culprit::logs {
namespace {

constexpr size_t kJobDigits = 3;  // after a word, a job's number has three digits or more

// "default_trainer-worker-0_1f6e3c1a-7d0e-4c3b-9a54-0f3a5d1c2b3e": the folder of a pod in Kubernetes, from
// namespace, name and UID.
std::string_view pod_of_folder(std::string_view name) {
  constexpr size_t kNumber = 36;
  if (name.size() < kNumber + 4) return {};
  const std::string_view number = name.substr(name.size() - kNumber);
  for (size_t i = 0; i < kNumber; ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? number[i] != '-' : !digit(number[i]) && !(number[i] >= 'a' && number[i] <= 'f')) return {};
  }
  name.remove_suffix(kNumber);
  const size_t first = name.find('_');
  if (name.back() != '_' || first + 1 >= name.size()) return {};
  return name.substr(first + 1, name.size() - first - 2);
}

// "trainer-worker-0_default_pytorch-<64 hex digits>": the log of a container in Kubernetes.
std::string_view pod_of_container(std::string_view name) {
  constexpr size_t kNumber = 64;
  if (name.size() < kNumber + 6 || name[name.size() - kNumber - 1] != '-') return {};
  for (char c : name.substr(name.size() - kNumber))
    if (!digit(c) && !(c >= 'a' && c <= 'f')) return {};
  const size_t first = name.find('_');
  return name.find('_', first + 1) == std::string_view::npos ? std::string_view() : name.substr(0, first);
}

// A part of a name between separators, with its position.
struct Part {
  size_t begin = 0, end = 0;
};

class Reader {
 public:
  explicit Reader(std::string_view name) : name_(name) {}

  FileName run() {
    for (const std::string_view pod : {pod_of_folder(name_), pod_of_container(name_)})
      if (!pod.empty()) {
        out_.host = pod;
        out_.form = HostForm::kMachine;
        out_.anchored = true;
        return out_;
      }
    size_t begin = 0, end = name_.size();
    const std::optional<NumberedWord> word = read_ranks();
    // "node-3_rank5", "rank5_node-3"
    if (word && word->begin > 0) end = word->begin;
    if (word && word->begin == 0) begin = word->end;
    find_host(begin, end);
    if (word && word->begin > 0 && !out_.host.empty() && host_end() + 1 >= word->begin) out_.anchored = true;
    return out_;
  }

 private:
  // "rank_131", "local_rank_3", "device-3".
  std::optional<NumberedWord> read_ranks() {
    for (std::string_view word : {"local_rank", "localrank", "local-rank"})
      if (const auto found = find_numbered(name_, word); found && !ends_domain(found->begin)) {
        out_.local = found->number;
        return found;
      }
    const auto rank = find_numbered(name_, "rank");
    if (rank) out_.rank = rank->number;
    // Larger numbers after "device" are processes (Ascend's device-<pid>_<time>.log).
    if (const auto device = find_numbered(name_, "device"); device && device->number < limits::kDevicesOfHost)
      out_.local = device->number;
    return rank;
  }

  // "node7.cluster.local_rank0"
  bool ends_domain(size_t local) const {
    if (local == 0 || name_[local - 1] != '.') return false;
    const size_t begin = name_.rfind('_', local) + 1;
    return is_host_name(name_.substr(begin, local + 5 - begin));
  }

  size_t host_begin() const { return static_cast<size_t>(out_.host.data() - name_.data()); }
  size_t host_end() const { return host_begin() + out_.host.size(); }
  std::string_view text(size_t first, size_t last) const {
    return name_.substr(parts_[first].begin, parts_[last].end - parts_[first].begin);
  }
  std::string_view part(size_t i) const { return text(i, i); }

  void find_host(size_t begin, size_t end) {
    n_ = 0;
    for (size_t at = begin; at < end && n_ < parts_.size();) {
      const size_t stop = std::min(name_.find_first_of("-_.", at), end);
      if (stop > at) parts_[n_++] = {at, stop};
      at = stop + 1;
    }
    choose_host();
    if (!out_.host.empty()) read_tail();
    read_job();
  }

  void choose_host() {
    if (n_ > 0 && form_of(0, n_ - 1) == HostForm::kRole) {
      longest_from(0, HostForm::kRole);
      return;
    }
    for (size_t i = 0; i < n_; ++i)
      if (is_pool_word(part(i)) && longest_from(i, HostForm::kMachine)) {
        if (i > 0 && is_job_number(i - 1)) out_.job = part(i - 1);
        break;
      }
    for (size_t i = 0; out_.host.empty() && i + 1 < n_; ++i)
      if (is_job_number(i) && longest_from(i + 1, HostForm::kPossible)) out_.job = part(i);
    out_.anchored = !out_.job.empty();
    if (out_.host.empty())
      for (size_t i = 0; i < n_; ++i) longest_from(i, HostForm::kNumbered);
    // "gpt2_n16_dp1": between '_' and '-', a letter and a number may be anything.
    const bool free = out_.host.empty() || is_free();
    if (out_.form == HostForm::kNumbered && !out_.anchored && !out_.rank && !out_.local && !free) {
      out_.host = {};
      out_.form = HostForm::kNone;
    }
  }

  // Whether the host is the whole name, or has dots on both sides.
  bool is_free() const {
    const size_t begin = host_begin(), end = host_end();
    return (begin == parts_[0].begin || name_[begin - 1] == '.') &&
           (end == parts_[n_ - 1].end || name_[end] == '.');
  }

  // Rejects the numbers in "ip-10-0-2-114.ec2.internal".
  bool is_job_number(size_t i) const {
    if (!all_digits(part(i)) || (i > 0 && part(i).size() < kJobDigits)) return false;
    return i == 0 || before(i) != '-' || name_[parts_[i].end] != '.';
  }
  char before(size_t i) const { return name_[parts_[i].begin - 1]; }

  // A part that never begins a host's name: a word of the job, a number, a size ("70b").
  bool is_lead(size_t i) const {
    const std::string_view word = part(i);
    if (is_ipv6(word)) return false;
    if (digit(word[0])) return i + 3 >= n_ || !is_ipv4(text(i, i + 3));
    if (is_pbs_number(i)) return true;
    return i + 1 < n_ && is_common_word(word);
  }

  // Finds the longest host name from part i on, if its form is more certain than the known one. Only names of
  // pods may begin with a word of the job.
  bool longest_from(size_t i, HostForm least) {
    const bool lead = is_lead(i);
    for (size_t last = n_; last-- > i;) {
      const HostForm form = form_of(i, last);
      if (form < least || form <= out_.form || (lead && form != HostForm::kRole)) continue;
      out_.host = text(i, last);
      out_.form = form;
      return true;
    }
    return false;
  }

  // The form of parts i to last as one name. '_' is allowed only between a word and its number.
  HostForm form_of(size_t i, size_t last) const {
    const std::string_view name = text(i, last);
    const bool pair = last == i + 1 && all_digits(part(last)) && alpha(part(i).back());
    if (name.find('_') != std::string_view::npos && !pair) return HostForm::kNone;
    return host_form(name);
  }

  // Reads the text after the host: a task, or a number that may be one.
  void read_tail() {
    const size_t end = host_end();
    const std::string_view rest = name_.substr(end);
    const bool led = name_.starts_with("log.");  // "log.node-3.5"
    if (rest.size() > 1 && (out_.anchored || led)) {
      if (const auto task = to_number(rest.substr(1))) out_.task = task;
      if (led) out_.anchored = true;
    }
    const size_t dash = out_.host.rfind('-');
    if (dash == std::string_view::npos || out_.task) return;
    const std::string_view number = out_.host.substr(dash + 1);
    const std::string_view shorter = out_.host.substr(0, dash);
    if (!to_number(number) || number.size() > 5 || host_form(shorter) < HostForm::kPossible) return;
    out_.shorter = shorter;
    out_.tail = to_number(number);
    out_.padded = number.size() > 1 && number[0] == '0';
  }

  // "slurm-123", "job_123", "train.o123".
  void read_job() {
    for (size_t i = 1; i < n_; ++i) {
      const std::string_view word = part(i - 1);
      const bool job = word == "slurm" || word == "job" || word == "jobid" || word == "lsf" || word == "pbs";
      const bool pbs = is_pbs_number(i);
      if (!pbs && !(job && all_digits(part(i)))) continue;
      const std::string_view number = part(i).substr(pbs);
      if (out_.job.empty()) out_.job = number;
      out_.job_word |= out_.job == number;
    }
  }

  // "train.o12345"
  bool is_pbs_number(size_t i) const {
    const std::string_view word = part(i);
    return i > 0 && i + 1 == n_ && before(i) == '.' && word.size() > kJobDigits &&
           (word[0] == 'o' || word[0] == 'e') && all_digits(word.substr(1));
  }

  std::string_view name_;
  FileName out_;
  std::array<Part, 24> parts_;
  size_t n_ = 0;
};

}  // namespace

std::optional<uint32_t> to_number(std::string_view text) {
  if (!all_digits(text) || text.size() > 7) return std::nullopt;
  uint32_t n = 0;
  for (char c : text) n = n * 10 + static_cast<uint32_t>(c - '0');
  return n;
}

std::optional<NumberedWord> find_numbered(std::string_view text, std::string_view word) {
  for (size_t at = 0; at + word.size() < text.size(); ++at) {
    bool same = at == 0 || !alpha(text[at - 1]);
    for (size_t i = 0; i < word.size() && same; ++i)
      same = text[at + i] == word[i] || (alpha(word[i]) && (text[at + i] | 0x20) == word[i]);
    if (!same) continue;
    size_t begin = at + word.size();
    if (text[begin] == '_' || text[begin] == '-' || text[begin] == '=' || text[begin] == '.') ++begin;
    size_t end = begin;
    while (end < text.size() && digit(text[end])) ++end;
    if (end < text.size() && alpha(text[end])) continue;
    if (const auto n = to_number(text.substr(begin, end - begin))) return NumberedWord{at, end, *n};
  }
  return std::nullopt;
}

std::string_view file_stem(std::string_view name) {
  constexpr std::string_view kKinds[] = {"log",    "out",    "err",    "txt", "json", "jsonl",
                                         "stdout", "stderr", "ndjson", "csv", "comm", "dump",
                                         "old",    "output", "error",  "logs"};
  std::string_view rest = name;
  while (true) {
    const size_t dot = rest.rfind('.');
    if (dot == std::string_view::npos || dot == 0) return name;
    const std::string_view last = rest.substr(dot + 1);
    const bool kind = std::find(std::begin(kKinds), std::end(kKinds), last) != std::end(kKinds);
    // A generation: one or two digits, removed only together with the extension before them.
    const bool generation = last.size() <= 2 && to_number(last) && rest.find('.') != dot && !is_ipv4(rest);
    if (!kind && !generation) return name;
    rest = rest.substr(0, dot);
    if (kind) name = rest;
  }
}

FileName read_file_name(std::string_view name) { return Reader(name).run(); }

}  // namespace culprit::logs
