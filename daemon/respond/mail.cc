#include "respond/mail.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "io/child.h"
#include "io/trusted_path.h"
#include "respond/notice.h"

namespace culprit::respond {
namespace {

constexpr int kRoundMs = 50;
constexpr TimeNs kKilledEnds = kNsPerSecond;  // in an uninterruptible call it stays
constexpr size_t kErrorBytes = 2000;
constexpr size_t kLineBytes = 900;  // RFC 5322: 998
constexpr size_t kSubjectBytes = 200;

// One line of printable ASCII, or encoded words, so that a job name cannot inject a header.
std::string header_text(std::string_view text) {
  const std::string safe = shorten(to_terminal(text), kSubjectBytes);
  if (std::ranges::all_of(safe, [](char c) { return c >= ' ' && c < 0x7f; }) &&
      safe.find("=?") == std::string::npos)
    return safe;
  std::string out, word;
  for (size_t i = 0; i < safe.size();) {
    // Each encoded word has at most 75 bytes and splits no character.
    size_t end = i + 1;
    while (end < safe.size() && (static_cast<unsigned char>(safe[end]) & 0xc0) == 0x80) ++end;
    std::string next;
    for (; i < end; ++i) next += fmt::format("={:02X}", static_cast<unsigned char>(safe[i]));
    if (word.size() + next.size() > 60) {
      out += fmt::format("{}=?UTF-8?Q?{}?=", out.empty() ? "" : "\r\n ", word);
      word.clear();
    }
    word += next;
  }
  return out + fmt::format("{}=?UTF-8?Q?{}?=", out.empty() ? "" : "\r\n ", word);
}

std::string date_text(TimeNs time) {
  constexpr const char* kDays[] = {"Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"};
  constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const Civil c = civil_from_ns(time);
  const int64_t day = time / (86'400 * kNsPerSecond) % 7;
  return fmt::format("{}, {} {} {} {:02}:{:02}:{:02} +0000", kDays[day], c.day, kMonths[c.month - 1], c.year,
                     c.hour, c.minute, c.second);
}

void add_line(std::string& out, std::string_view text) {
  while (text.size() > kLineBytes) {
    size_t end = kLineBytes;
    while (end > 1 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    out += fmt::format("{}\n", text.substr(0, end));
    text.remove_prefix(end);
  }
  out += fmt::format("{}\n", text);
}

class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_, O_CLOEXEC) != 0) ends_[0] = ends_[1] = -1;
  }
  ~Pipe() { close_end(0), close_end(1); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int end(int n) const { return ends_[n]; }
  void close_end(int n) {
    if (ends_[n] >= 0) ::close(ends_[n]);
    ends_[n] = -1;
  }

 private:
  int ends_[2];
};

// Starts the program, which reads `in` and writes to `err`. It may leave a process in its group that
// delivers the mail.
Result<io::Child> start_sendmail(const MailHandover& mail, const Pipe& in, const Pipe& err) {
  std::vector<std::string> words{mail.program, "-i", "--"};
  words.insert(words.end(), mail.to.begin(), mail.to.end());
  return io::Child::start({.path = mail.program,
                           .arguments = std::move(words),
                           .environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"},
                           .descriptors = {in.end(0), io::ChildProgram::kNull, err.end(1)}});
}

TimeNs mono_now() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * kNsPerSecond + t.tv_nsec;
}

// Writes the text and reads the child's error output, until both pipes are closed or the time is over.
bool exchange(const MailHandover& mail, Pipe& in, Pipe& err, std::string& errors) {
  const TimeNs until = mono_now() + mail.within_ns;
  size_t written = 0;
  while (in.end(1) >= 0 || err.end(0) >= 0) {
    if (mono_now() > until || (mail.stop && mail.stop->load())) return false;
    pollfd ends[] = {{in.end(1), POLLOUT, 0}, {err.end(0), POLLIN, 0}};
    if (::poll(ends, 2, kRoundMs) < 0 && errno != EINTR) return false;
    if (in.end(1) >= 0 && ends[0].revents != 0) {
      const ssize_t n = ::write(in.end(1), mail.text.data() + written, mail.text.size() - written);
      if (n > 0) written += static_cast<size_t>(n);
      if (written == mail.text.size() || (n < 0 && errno != EAGAIN && errno != EINTR)) in.close_end(1);
    }
    if (err.end(0) >= 0 && ends[1].revents != 0) {
      char block[512];
      const ssize_t n = ::read(err.end(0), block, sizeof block);
      if (n > 0 && errors.size() < kErrorBytes) errors.append(block, static_cast<size_t>(n));
      if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) err.close_end(0);
    }
  }
  return true;
}

// The child may close its pipes and keep running. Nothing: it cannot be killed.
std::optional<io::ChildEnd> wait_for_end(io::Child& child, const MailHandover& mail, bool kill_now) {
  const TimeNs until = mono_now() + mail.within_ns;
  for (;;) {
    if (const auto end = child.wait(kill_now ? 0 : kRoundMs * kNsPerMs)) return end;
    if (kill_now || mono_now() >= until || (mail.stop && mail.stop->load())) break;
  }
  child.kill();
  return child.wait(kKilledEnds);
}

}  // namespace

std::string mail_text(const Values& v, const MailAddresses& addresses, TimeNs now) {
  std::string to;
  for (const std::string& one : addresses.to) to += (to.empty() ? "" : ", ") + one;
  std::string out = fmt::format("From: {}\nTo: {}\nSubject: {}\nDate: {}\n", addresses.from, to,
                                header_text(fmt::format("[culprit] {}: {}", v.at("state"), v.at("summary"))),
                                date_text(now));
  std::string id = v.at("id");
  std::ranges::replace(id, '/', '.');
  const std::string thread = fmt::format("<{}@culprit.invalid>", v.at("key"));
  out += fmt::format("Message-ID: <{}@culprit.invalid>\nReferences: {}\nAuto-Submitted: auto-generated\n", id,
                     thread);
  out += "MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n";
  add_line(out, v.at("summary"));
  if (!v.at("end").empty()) add_line(out, "Resolved: " + v.at("end") + ".");
  out += '\n';
  const std::pair<const char*, const char*> rows[] = {
      {"State", "state"},       {"Changed", "change"},  {"Since", "since"},     {"Do", "remedy"},
      {"Action", "action"},     {"Targets", "targets"}, {"Where", "where"},     {"Why", "why"},
      {"Evidence", "evidence"}, {"Members", "members"}, {"Page", "alert_link"}, {"Line", "line_link"},
      {"Command", "command"},   {"Sent by", "host"}};
  for (const auto& [name, key] : rows)
    if (!v.at(key).empty()) add_line(out, fmt::format("{}: {}", name, v.at(key)));
  return out;
}

Status hand_over(const MailHandover& mail) {
  if (const Status trusted = io::check_trusted_program(mail.program, ::geteuid()); !trusted)
    return fail(trusted.error().code, fmt::format("{}: {}", mail.program, trusted.error().text));
  Pipe in, err;
  if (in.end(0) < 0 || err.end(0) < 0)
    return fail(ErrorCode::kIo, "no pipe: " + std::string(std::strerror(errno)));
  auto child = start_sendmail(mail, in, err);
  if (!child) return tl::unexpected(child.error());
  in.close_end(0);
  err.close_end(1);
  ::fcntl(in.end(1), F_SETFL, O_NONBLOCK);
  ::fcntl(err.end(0), F_SETFL, O_NONBLOCK);
  std::string errors;
  const bool in_time = exchange(mail, in, err, errors);
  const auto end = wait_for_end(*child, mail, !in_time);
  if (end && end->is_success()) return {};
  const std::string first(errors.substr(0, errors.find('\n')));
  const std::string how = !in_time || !end   ? "did not end in time"
                          : end->signal == 0 ? fmt::format("exit status {}", end->code)
                                             : fmt::format("signal {}", end->signal);
  return fail(ErrorCode::kIo, fmt::format("{}: {}{}{}", mail.program, how, first.empty() ? "" : ": ",
                                          shorten(to_terminal(first), 300)));
}

}  // namespace culprit::respond
