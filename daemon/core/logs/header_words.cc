// Fields that begin with a letter.
#include <algorithm>
#include <cstring>

#include "base/ascii.h"
#include "core/logs/header_scan.h"
#include "core/logs/host_name.h"

namespace culprit::logs {
namespace {

// "a.b.OutOfMemoryError" names a failure, not a logger.
bool names_a_failure(std::string_view name) {
  constexpr std::string_view kEnds[] = {"Error", "Exception", "Warning", "Interrupt",
                                        "Exit",  "Failure",   "Fault",   "Timeout"};
  return std::any_of(std::begin(kEnds), std::end(kEnds),
                     [&](std::string_view end) { return name.ends_with(end); });
}

// Whether `text` is a single value, as in dumps of settings: "beta1: 0.9", "layer2: True".
bool is_value(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == ',')) text.remove_suffix(1);
  if (text.empty()) return false;
  if (text == "True" || text == "False" || text == "None" || text == "true" || text == "false" ||
      text == "null")
    return true;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return digit(c) || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E' || c == '%';
  });
}

// "/usr/sbin/gmetad" is gmetad.
std::string_view without_folders(std::string_view tag) {
  return tag.starts_with('/') ? tag.substr(tag.substr(0, tag.find('[')).rfind('/') + 1) : tag;
}

}  // namespace

Service service_of(std::string_view tag) {
  // Interpreters, frameworks and launchers, which may log to the system's log for a job.
  constexpr std::string_view kJobs[] = {"python", "pypy", "torch",     "ray",        "mpi",      "orte",
                                        "prte",   "srun", "slurmstep", "accelerate", "deepspeed"};
  // Schedulers, container engines, the system's manager, and monitors of devices, fabrics, storage and
  // clocks, by the program names in their packages. Short prefixes end in a hyphen, since other programs
  // share them.
  constexpr std::string_view kNodes[] = {
      "slurm",   "pbs",    "sge_",   "sbatchd", "mbatchd",   "kube",      "containerd", "docker",
      "crio",    "podman", "conmon", "runc",    "systemd",   "init",      "oomd",       "earlyoom",
      "nohang",  "nvidia", "dcgm",   "fabric",  "rocm",      "amdgpu",    "amd-",       "habana",
      "hl-",     "gaudi",  "gpu-",   "mcelog",  "rasdaemon", "edac",      "ipmi",       "smartd",
      "mdadm",   "nhc",    "health", "opensm",  "ibacm",     "mlx",       "ib-",        "ibdiag",
      "ibnet",   "lnet",   "lustre", "nfs",     "rpc.",      "automount", "mount",      "mmfs",
      "gpfs",    "beegfs", "ceph",   "weka",    "multipath", "iscsi",     "lvm",        "zed",
      "chronyd", "ntpd",   "ptp4l",  "phc2sys", "Network",   "thermald",  "acpid",      "abrt",
      "kdump",   "audit"};
  const auto begins = [&](std::string_view begin) { return tag.starts_with(begin); };
  if (std::ranges::any_of(kJobs, begins)) return Service::kNone;
  return std::ranges::any_of(kNodes, begins) ? Service::kNode : Service::kForeign;
}

size_t HeaderScan::take_word(size_t pos) {
  const size_t end = text_.word_end(pos);
  if (fields_.syslog)
    if (const size_t behind = take_syslog_host(pos, end)) return behind;
  switch (text_.peek(end)) {
    case ':':
      return take_word_colon(pos, end);
    case ' ':
      return take_word_space(pos, end);
    case '(':
      return take_module(pos, end);
    case '=':
      return pos == lead_ || fields_.has_logger ? take_logfmt(pos) : 0;
    case ',':
    case '/': {
      if ((!fields_.has_time && !fields_.has_level) || fields_.has_location) return 0;
      const size_t behind = text_.location_end(pos, false);
      if (behind == 0) return 0;
      fields_.has_location = true;
      return behind + (text_.peek(behind) == ']');
    }
    case ']':
      // "[anf_extends.cc:66] fullname_with_scope] ": the function, in MindSpore's format
      return fields_.has_location && fields_.has_level && text_.peek(end + 1) == ' ' && line_[pos - 1] == ' '
                 ? end + 1
                 : 0;
    case '\0':
      return end == line_.size() ? take_level_word(pos, end) : 0;
    default:
      return 0;
  }
}

size_t HeaderScan::take_word_colon(size_t pos, size_t end) {
  if (digit(text_.peek(end + 1))) {
    if (const size_t behind = take_nccl(pos, end)) return behind;
    if ((fields_.has_time || fields_.has_level) && !fields_.has_location) {
      const size_t behind = text_.location_end(pos, false);
      if (behind == 0) return 0;
      const char after = text_.peek(behind);
      if (after != ']' && after != ' ' && after != ':') return 0;
      fields_.has_location = true;
      // "parallel_context.py:508 in set_device -- "
      if (line_.substr(behind, 4) == " in ") {
        const size_t function = text_.word_end(behind + 4);
        if (line_.substr(function, 4) == " -- ") return function + 4;
      }
      return behind + (after == ']' || after == ':');
    }
    return 0;
  }
  if (const size_t behind = take_level_word(pos, end)) return behind;
  uint32_t rank = 0;
  if (const size_t behind = text_.rank_end(pos, rank);
      behind == end && (text_.peek(end + 1) == ' ' || end + 1 == line_.size())) {
    fields_.note_rank(rank, false);
    return end + 1;
  }
  if (fields_.has_time || fields_.has_level) {
    if (const size_t behind = take_logger(pos, end)) return behind;
    if (fields_.column)  // "TDRV:exec_consume     "
      if (const size_t name = text_.word_end(end + 1); name > end + 1 && text_.peek(name) == ' ')
        if (const size_t behind = take_column(pos, name)) return behind;
    if (!fields_.has_location && fields_.has_time) {  // loguru's "module:function:12 - "
      const size_t behind = text_.location_end(pos, true);
      if (behind != 0 && line_.substr(behind, 3) == " - ") {
        fields_.has_location = true;
        return behind;
      }
    }
    return 0;
  }
  if (line_.substr(pos, 5) == "kern:" || line_.substr(pos, 5) == "user:") return take_facility(pos, end);
  const char next = text_.peek(end + 1);
  return next == ' ' || next == '[' || end + 1 == line_.size() ? take_host(pos, end) : 0;
}

size_t HeaderScan::take_word_space(size_t pos, size_t end) {
  if (pos == 0)
    if (const size_t behind = take_supercomputer(pos)) return behind;
  if (level_letter(line_[pos]) != Level::kNone && digit(text_.peek(pos + 1)) && !fields_.has_level)
    if (const size_t behind = take_glog(pos)) return behind;
  if (end == pos + 3)
    if (const Stamp stamp = times_.at(line_, pos); stamp.end != 0) return fields_.note_time(stamp);
  if (const size_t behind = take_level_word(pos, end)) return behind;
  uint32_t rank = 0;
  if (const size_t behind = text_.rank_end(pos, rank);
      behind > end && text_.peek(behind) == ':' &&
      (text_.peek(behind + 1) == ' ' || behind + 1 == line_.size())) {
    fields_.note_rank(rank, false);
    return behind + 1;
  }
  const size_t next = text_.skip_spaces(end);
  if (!fields_.has_time && !fields_.has_level) {
    if (text_.peek(next) == '|' && text_.peek(next + 1) == ' ' &&
        hosts_.is_host(line_.substr(pos, end - pos))) {
      fields_.note_host(line_.substr(pos, end - pos));
      return next + 1;
    }
    if (text_.peek(next) == ':' && next < pos + 12) return take_facility(pos, next);
    return 0;
  }
  if (fields_.column)
    if (const size_t behind = take_column(pos, end)) return behind;
  const std::string_view word = line_.substr(pos, end - pos);
  if (fields_.has_level && !fields_.has_logger && !fields_.has_location && fields_.has_time) {
    // "- INFO - transformers.trainer - ", "INFO nova.compute.manager [req-1]"
    const bool dotted = word.find('.') != std::string_view::npos && !names_a_failure(word);
    // logback's "INFO  org.apache.Name - "
    const bool apart = line_.substr(pos - 3, 3) == " - ";
    if ((dotted || (apart && (word == "__main__" || word == "root"))) && line_.substr(end, 3) == " - ") {
      fields_.has_logger = true;
      return end;
    }
    if (dotted && (line_.substr(end, 6) == " [req-" || line_.substr(end, 5) == " [-] ")) {
      fields_.has_logger = true;
      return end;
    }
  }
  return fields_.has_level || fields_.has_location ? 0 : take_behind_time(pos, end);
}

// A word between the time and a level: a stream, a host, a logger or the letter of a level.
size_t HeaderScan::take_behind_time(size_t pos, size_t end) {
  const std::string_view word = line_.substr(pos, end - pos);
  const size_t next = text_.skip_spaces(end);
  // "2024-05-10T11:16:14Z stderr F message" of a container runtime
  if ((word == "stdout" || word == "stderr") && (text_.peek(end + 1) == 'F' || text_.peek(end + 1) == 'P') &&
      text_.peek(end + 2) == ' ') {
    fields_.outer = true;
    fields_.place = true;
    return end + 2;
  }
  // "2024-05-10T11:16:14+00:00 node-17 kernel: "
  if (hosts_.is_host(word) || line_.substr(next, 8) == "kernel: ")
    if (const size_t tag = take_syslog_tag(next)) {
      fields_.note_host(word);
      fields_.place = false;
      return tag;
    }
  // "04/02-11:03:16.60 x4319c0s0b0n0 DAOS[53174/53174/0] "
  if (const size_t name = text_.word_end(next);
      text_.peek(name) == '[' && digit(text_.peek(name + 1)) && hosts_.is_host(word)) {
    fields_.note_host(word);
    fields_.place = false;
    return next;
  }
  // "name - INFO - ", "name [INFO] " and "dotted.name INFO "
  const bool apart = !alpha(text_.peek(next)) || word.find_first_of("._") != std::string_view::npos;
  if (!fields_.has_logger && apart && text_.level_follows(end)) {
    fields_.has_logger = true;
    return end;
  }
  // "D WindowManager: ", "I tensorflow/core/x.cc:123] "
  if (end == pos + 1 && level_letter(word[0]) != Level::kNone) {
    size_t name = line_.find_first_of(" :", next);
    if (name == std::string_view::npos || name == next) return 0;
    name = text_.skip_spaces(name);  // short tags are padded
    if (text_.peek(name) != ':') return 0;
    fields_.note_level(level_letter(word[0]));
    if (text_.peek(name + 1) != ' ') return end;
    fields_.has_logger = true;
    return name + 1;
  }
  return 0;
}

// A level alone: in capitals, or in any case after a time of a format that has such levels.
size_t HeaderScan::take_level_word(size_t pos, size_t end) {
  if (fields_.has_level) return 0;
  const Level level = level_word(line_.substr(pos, end - pos));
  if (level == Level::kNone) return 0;
  const bool capitals = upper(line_[pos + 1]);
  const char after = text_.peek(end);
  if (!capitals && !(fields_.has_time && (after == ' ' || after == ':') && !fields_.place)) return 0;
  if (!capitals && after == ' ' && text_.peek(end + 1) != ' ' && text_.peek(end + 1) != '[' &&
      text_.peek(end + 1) != '|')
    return 0;
  if (fields_.has_tag && !capitals) return 0;
  if (after == ' ' &&
      (fields_.has_tag || (!fields_.has_time && !fields_.has_location && !fields_.has_logger))) {
    // At the beginning of a line and after a program's tag, "ERROR while loading" is a sentence. A field has
    // another field after it.
    const char next = text_.peek(text_.skip_spaces(end));
    if (!digit(next) && next != '[' && next != '-' && next != '|' && next != ':' && next != '(') return 0;
  }
  fields_.note_level(level);
  fields_.column = after == ' ';
  if (after != ':') return end;
  // "INFO:torch.distributed:message" from Python's basicConfig
  const size_t name = text_.word_end(end + 1);
  if (name > end + 1 && text_.peek(name) == ':' && !digit(text_.peek(name + 1)) && !digit(line_[end + 1])) {
    fields_.has_logger = true;
    fields_.ended = true;
    return name + 1;
  }
  return end + 1;
}

// "I0415 12:34:56.789012 12345 file.cc:12] " and "I20240415 ...".
size_t HeaderScan::take_glog(size_t pos) {
  const size_t digits = text_.digits_at(pos + 1);
  const size_t space = pos + 1 + digits;
  if ((digits != 4 && digits != 8) || text_.peek(space) != ' ' || space + 9 > line_.size()) return 0;
  const std::string_view rest = line_.substr(space, 26);
  char date[40];
  size_t length = 0;
  const auto put = [&](std::string_view text) {
    std::memcpy(date + length, text.data(), text.size());
    length += text.size();
  };
  const std::string_view numbers = line_.substr(pos + 1, digits);
  if (digits == 8) put(numbers.substr(0, 4)), put("-");
  put(numbers.substr(digits - 4, 2)), put("-"), put(numbers.substr(digits - 2)), put(rest);
  // the text after the fraction must not be read as a zone
  const Stamp stamp = times_.at(std::string_view(date, length), 0);
  if (stamp.end == 0) return 0;
  Stamp moved = stamp;
  moved.end = static_cast<uint32_t>(space + stamp.end - (length - rest.size()));
  fields_.note_time(moved);
  fields_.note_level(level_letter(line_[pos]));
  // the thread's number and the location
  size_t at = text_.skip_spaces(moved.end);
  if (const size_t thread = text_.digits_at(at); thread > 0 && text_.peek(at + thread) == ' ')
    at = text_.skip_spaces(at + thread);
  if (const size_t end = text_.location_end(at, true); end != 0 && text_.peek(end) == ']') {
    fields_.has_location = true;
    return end + 1;
  }
  return moved.end;
}

// "r7i4n4:1767:1936 [1] NCCL INFO ...": host, process, thread, device. The message begins at "NCCL", since
// rules match on it.
size_t HeaderScan::take_nccl(size_t pos, size_t end) {
  const size_t process = text_.digits_at(end + 1);
  size_t at = end + 1 + process;
  if (text_.peek(at) != ':') return 0;
  const size_t thread = text_.digits_at(at + 1);
  at += 1 + thread;
  if (thread == 0 || text_.peek(at) != ' ') return 0;
  at = text_.skip_spaces(at);
  uint32_t device = kNoRank;
  if (text_.peek(at) == '[') {
    const size_t digits = text_.digits_at(at + 1);
    if (digits == 0 || digits > 3 || text_.peek(at + 1 + digits) != ']') return 0;
    device = digits_value(line_.substr(at + 1, digits));
    at = text_.skip_spaces(at + 2 + digits);
  }
  const size_t file = text_.location_end(at, false);
  if (file != 0 && text_.peek(file) == ' ') at = text_.skip_spaces(file);
  const size_t name = text_.word_end(at);
  if (device == kNoRank && line_.substr(at, name - at) != "NCCL") return 0;
  fields_.note_host(line_.substr(pos, end - pos));
  if (device != kNoRank) fields_.header.local = device;
  fields_.place = false;
  if (text_.peek(name) == ' ') {
    const size_t last = text_.word_end(name + 1);
    const Level level = level_word(line_.substr(name + 1, last - name - 1));
    if (level != Level::kNone)
      fields_.note_level(level);
    else if (line_.substr(name + 1, last - name - 1) == "ABORT")
      fields_.note_level(Level::kFatal);
  }
  fields_.ended = true;
  return at;
}

// "node-17: " from pdsh, clush and launchers.
size_t HeaderScan::take_host(size_t pos, size_t end) {
  if (!fields_.header.host.empty() ||
      (pos != lead_ && fields_.header.rank == kNoRank && fields_.header.local == kNoRank))
    return 0;
  const std::string_view name = line_.substr(pos, end - pos);
  if (!hosts_.is_host(name) || is_value(line_.substr(std::min(line_.size(), end + 2), 24))) return 0;
  fields_.note_host(name);
  return end + 1;
}

// The host and the tag after "Jun 14 15:16:01": "combo sshd(pam_unix)[19939]: ".
size_t HeaderScan::take_syslog_host(size_t pos, size_t end) {
  // syslog-ng's chain of hosts: "dn228/dn228", "source@dn228"
  const bool chain = text_.peek(end) == '/' || text_.peek(end) == '@';
  const size_t host_end = chain ? text_.word_end(end + 1) : end;
  if (text_.peek(host_end) != ' ') return fields_.zoned ? 0 : take_syslog_tag(pos);
  const size_t host_begin = text_.peek(end) == '@' ? end + 1 : pos;
  const std::string_view host = line_.substr(host_begin, (host_begin == pos ? end : host_end) - host_begin);
  const size_t tag = take_syslog_tag(text_.skip_spaces(host_end));
  if (tag == 0 && (fields_.zoned || !hosts_.is_host(host))) return 0;
  // Many programs write such a time. It is journald's only if a process number or the kernel's tag follows.
  if (fields_.zoned && line_[tag - 2] != ']' && line_.substr(host_end, tag - host_end) != " kernel:")
    return 0;
  if (fields_.header.host.empty()) fields_.note_host(host);
  fields_.place = false;
  return tag != 0 ? tag : host_end;
}

// "kernel: ", "sshd[123]: ", "sshd(pam_unix)[19939]: ", "systemd/user-1[7]: ", "/usr/sbin/gmetad[7]: ",
// "launchd[1] (com.apple.name[36]): ".
size_t HeaderScan::take_syslog_tag(size_t pos) {
  size_t at = text_.word_end(pos);
  while (text_.peek(at) == '/') at = text_.word_end(at + 1);
  if (at == pos || line_[at - 1] == '/') return 0;
  if (text_.peek(at) == '(') {
    const size_t close = line_.find(')', at);
    if (close == std::string_view::npos || close > at + 40) return 0;
    at = close + 1;
  }
  if (text_.peek(at) == '[') {
    const size_t digits = text_.digits_at(at + 1);
    if (digits == 0 || text_.peek(at + 1 + digits) != ']') return 0;
    at += digits + 2;
    if (line_.substr(at, 2) == " (") {
      const size_t close = line_.find("):", at);
      if (close == std::string_view::npos || close > at + 100) return 0;
      at = close + 1;
    }
  }
  if (text_.peek(at) != ':' || (text_.peek(at + 1) != ' ' && at + 1 != line_.size())) return 0;
  fields_.has_logger = fields_.has_tag = true;
  const bool kernel = line_.substr(pos, at - pos) == "kernel";
  fields_.header.kernel = fields_.header.kernel || kernel;
  if (!kernel) fields_.header.service = service_of(without_folders(line_.substr(pos, at - pos)));
  return at + 1;
}

// "executor.CoarseGrainedExecutorBackend: ", "torch.distributed.run: [WARNING] ": a dotted name, or a name
// before a level.
size_t HeaderScan::take_logger(size_t pos, size_t end) {
  if (fields_.has_logger || fields_.has_location || !fields_.has_time) return 0;
  const size_t colon = text_.skip_spaces(end);  // names are padded to a column
  if (text_.peek(colon) != ':' || text_.peek(colon + 1) != ' ') return 0;
  const std::string_view name = line_.substr(pos, end - pos);
  const bool leads = !fields_.has_level && text_.level_follows(colon + 1);
  if (!leads &&
      (!fields_.has_level || name.find_first_of(".$") == std::string_view::npos || name.back() == '.'))
    return 0;
  if (names_a_failure(name)) return 0;
  fields_.has_logger = true;
  return colon + 1;
}

// "kern  :err   : " from dmesg -x and the kernel's console.
size_t HeaderScan::take_facility(size_t pos, size_t colon) {
  const std::string_view word = line_.substr(pos, text_.word_end(pos) - pos);
  if (word != "kern" && word != "user" && word != "daemon" && word != "syslog" && word != "auth") return 0;
  const size_t begin = text_.skip_spaces(colon + 1), end = text_.word_end(begin);
  const Level level = level_word(line_.substr(begin, end - begin));
  const size_t last = text_.skip_spaces(end);
  if (level == Level::kNone || text_.peek(last) != ':') return 0;
  fields_.note_level(level);
  if (word == "kern") fields_.header.kernel = true;
  return last + 1;
}

// time="..." level=info msg="...": the logfmt fields before the message.
size_t HeaderScan::take_logfmt(size_t pos) {
  const size_t mark = line_.find('=', pos);
  const std::string_view key = line_.substr(pos, mark - pos);
  const bool quoted = text_.peek(mark + 1) == '"';
  const size_t value = mark + 1 + quoted;
  const size_t close = line_.find(quoted ? '"' : ' ', value);
  if (key == "msg" || key == "message") {
    if (!fields_.has_time && !fields_.has_level) return 0;
    fields_.ended = true;
    return value;
  }
  if (close == std::string_view::npos) return 0;
  fields_.has_logger = true;
  if (key == "time" || key == "ts" || key == "timestamp" || key == "t") {
    Stamp stamp = times_.at(line_, value);
    if (stamp.end == 0) stamp = times_.epoch_at(line_, value);
    if (stamp.end == 0 || stamp.end > close) return 0;
    fields_.note_time(stamp);
  } else if (key == "level" || key == "lvl" || key == "severity") {
    const Level level = level_word(line_.substr(value, close - value));
    if (level == Level::kNone) return 0;
    fields_.note_level(level);
  } else if (!fields_.has_time && !fields_.has_level) {
    return 0;
  } else if (key != "logger" && key != "caller" && key != "source" && key != "component" && key != "pid") {
    return 0;
  }
  return close + quoted;
}

// "HCCL(903,python3.8):" before a time: module and process in CANN and MindSpore.
size_t HeaderScan::take_module(size_t pos, size_t end) {
  if (fields_.has_time || !fields_.has_level || !upper(line_[pos])) return 0;
  const size_t close = line_.find(')', end);
  if (close == std::string_view::npos || close > end + 64 || text_.peek(close + 1) != ':') return 0;
  const size_t at = text_.skip_spaces(close + 2);
  const Stamp stamp = times_.at(line_, at);
  return stamp.end != 0 ? fields_.note_time(stamp) : 0;
}

// "Info                  CBS    message": a name in its own column, after a level.
size_t HeaderScan::take_column(size_t pos, size_t end) {
  if (!fields_.has_time || !fields_.has_level || fields_.has_logger || text_.peek(end + 1) != ' ' ||
      line_[pos - 2] != ' ' || !upper(line_[pos]))
    return 0;
  fields_.has_logger = true;
  return end;
}

}  // namespace culprit::logs
