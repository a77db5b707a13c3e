#include "store/postgres/libpq.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "base/clock.h"
#include "base/text.h"

namespace culprit::store::postgres {
namespace {

constexpr const char* kLibrary = "libpq.so.5";
constexpr int kRowsMost = 20'000;

// libpq-fe.h, as far as it is used. tests/unit/store/postgres compares it with the header.
struct PGconn;
struct PGresult;
enum ConnStatus : int { kConnectionOk = 0 };
enum PollStatus : int { kPollFailed = 0, kPollReading = 1, kPollWriting = 2, kPollOk = 3 };
enum ExecStatus : int { kCommandOk = 1, kTuplesOk = 2 };

struct Library {
  PGconn* (*connect)(const char* const*, const char* const*, int) = nullptr;
  int (*connect_poll)(PGconn*) = nullptr;
  int (*status)(const PGconn*) = nullptr;
  int (*socket)(const PGconn*) = nullptr;
  char* (*error)(const PGconn*) = nullptr;
  void (*finish)(PGconn*) = nullptr;
  int (*set_nonblocking)(PGconn*, int) = nullptr;
  void* (*set_notices)(PGconn*, void (*)(void*, const char*), void*) = nullptr;
  int (*send)(PGconn*, const char*, int, const unsigned*, const char* const*, const int*, const int*,
              int) = nullptr;
  int (*flush)(PGconn*) = nullptr;
  int (*consume)(PGconn*) = nullptr;
  int (*is_busy)(PGconn*) = nullptr;
  PGresult* (*result)(PGconn*) = nullptr;
  int (*result_status)(const PGresult*) = nullptr;
  char* (*result_error)(const PGresult*) = nullptr;
  int (*rows)(const PGresult*) = nullptr;
  int (*fields)(const PGresult*) = nullptr;
  char* (*value)(const PGresult*, int, int) = nullptr;
  int (*length)(const PGresult*, int, int) = nullptr;
  void (*clear)(PGresult*) = nullptr;
  std::string missing;  // why it cannot be used; empty: it can
};

Library load_library() {
  Library out;
  void* library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);  // never closed: it has threads' data
  if (library == nullptr) {
    const char* why = ::dlerror();
    out.missing = fmt::format("{}; install PostgreSQL's client library (Debian: apt-get install libpq5)",
                              why ? why : kLibrary);
    return out;
  }
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    if (function == nullptr) out.missing = fmt::format("{} has no {}", kLibrary, name);
  };
  find(out.connect, "PQconnectStartParams");
  find(out.connect_poll, "PQconnectPoll");
  find(out.status, "PQstatus");
  find(out.socket, "PQsocket");
  find(out.error, "PQerrorMessage");
  find(out.finish, "PQfinish");
  find(out.set_nonblocking, "PQsetnonblocking");
  find(out.set_notices, "PQsetNoticeProcessor");
  find(out.send, "PQsendQueryParams");
  find(out.flush, "PQflush");
  find(out.consume, "PQconsumeInput");
  find(out.is_busy, "PQisBusy");
  find(out.result, "PQgetResult");
  find(out.result_status, "PQresultStatus");
  find(out.result_error, "PQresultErrorMessage");
  find(out.rows, "PQntuples");
  find(out.fields, "PQnfields");
  find(out.value, "PQgetvalue");
  find(out.length, "PQgetlength");
  find(out.clear, "PQclear");
  return out;
}

const Library& libpq() {
  static const Library library = load_library();
  return library;
}

// The first line: libpq adds hints and the statement.
std::string first_line(const char* text) {
  std::string_view view = text ? text : "";
  view = view.substr(0, view.find('\n'));
  return view.empty() ? "no reason given" : to_utf8(shorten(view, 300));
}

// False: not ready at the deadline.
bool wait(int socket, short events, TimeNs until_ns) {
  for (;;) {
    const TimeNs left = until_ns - steady_now();
    if (left <= 0 || socket < 0) return false;
    pollfd one{socket, events, 0};
    const int n = ::poll(&one, 1, static_cast<int>(std::min<TimeNs>(left / kNsPerMs + 1, 60'000)));
    if (n > 0) return true;
    if (n < 0 && errno != EINTR) return false;
  }
}

class RealConnection final : public Connection {
 public:
  explicit RealConnection(PGconn* connection) : connection_(connection) {}
  ~RealConnection() override { close(); }
  RealConnection(const RealConnection&) = delete;
  RealConnection& operator=(const RealConnection&) = delete;

  bool is_open() const override { return connection_ != nullptr; }

  Status connect(TimeNs until_ns) {
    int next = kPollWriting;
    while (next != kPollOk) {
      if (next == kPollFailed) return broken(first_line(libpq().error(connection_)));
      if (!wait(libpq().socket(connection_), next == kPollReading ? POLLIN : POLLOUT, until_ns))
        return broken("no answer while connecting");
      next = libpq().connect_poll(connection_);
    }
    if (libpq().set_nonblocking(connection_, 1) != 0) return broken(first_line(libpq().error(connection_)));
    libpq().set_notices(
        connection_, [](void*, const char*) {}, nullptr);
    return {};
  }

  Result<Rows> run(const std::string& sql, std::span<const std::string> values, TimeNs within_ns) override {
    if (!is_open()) return fail(ErrorCode::kIo, "the connection is closed");
    const TimeNs until_ns = steady_now() + within_ns;
    std::vector<const char*> texts;
    for (const std::string& value : values) texts.push_back(value.c_str());
    if (libpq().send(connection_, sql.c_str(), static_cast<int>(texts.size()), nullptr, texts.data(), nullptr,
                     nullptr, 0) == 0)
      return broken(first_line(libpq().error(connection_)));
    if (const Status sent = flush(until_ns); !sent) return tl::unexpected(sent.error());
    return read_all(until_ns);
  }

 private:
  void close() {
    if (connection_ != nullptr) libpq().finish(connection_);
    connection_ = nullptr;
  }
  tl::unexpected<Error> broken(const std::string& why) {
    close();
    return fail(ErrorCode::kIo, why);
  }
  Status flush(TimeNs until_ns) {
    for (;;) {
      const int left = libpq().flush(connection_);
      if (left == 0) return {};
      if (left < 0) return broken(first_line(libpq().error(connection_)));
      if (!wait(libpq().socket(connection_), POLLIN | POLLOUT, until_ns)) return broken("no answer");
      if (libpq().consume(connection_) == 0) return broken(first_line(libpq().error(connection_)));
    }
  }
  // A statement has one result, then null.
  Result<Rows> read_all(TimeNs until_ns) {
    Result<Rows> out = Rows{};
    for (;;) {
      while (libpq().is_busy(connection_) != 0) {
        if (!wait(libpq().socket(connection_), POLLIN, until_ns)) return broken("no answer");
        if (libpq().consume(connection_) == 0) return broken(first_line(libpq().error(connection_)));
      }
      PGresult* result = libpq().result(connection_);
      if (result == nullptr) break;
      const int status = libpq().result_status(result);
      if (status == kTuplesOk) {
        out = rows_of(result);
      } else if (status != kCommandOk) {
        out = fail(ErrorCode::kIo, first_line(libpq().result_error(result)));
      }
      libpq().clear(result);
    }
    if (libpq().status(connection_) != kConnectionOk) close();
    return out;
  }
  static Rows rows_of(const PGresult* result) {
    Rows out;
    const int rows = std::min(libpq().rows(result), kRowsMost), fields = libpq().fields(result);
    for (int row = 0; row < rows; ++row) {
      std::vector<std::string>& one = out.emplace_back();
      for (int field = 0; field < fields; ++field)
        one.emplace_back(libpq().value(result, row, field),
                         static_cast<size_t>(libpq().length(result, row, field)));
    }
    return out;
  }

  PGconn* connection_;
};

}  // namespace

Result<std::unique_ptr<Connection>> Connection::open(const std::string& conninfo, TimeNs within_ns) {
  if (!libpq().missing.empty()) return fail(ErrorCode::kNotFound, libpq().missing);
  const TimeNs until_ns = steady_now() + within_ns;
  // The keys after dbname win over those in it; a pooler need not know any of them.
  const char* keys[] = {"dbname", "fallback_application_name", "client_encoding", nullptr};
  const char* values[] = {conninfo.c_str(), "culpritd", "UTF8", nullptr};
  PGconn* raw = libpq().connect(keys, values, 1);
  if (raw == nullptr) return fail(ErrorCode::kLimit, "no memory for a connection");
  auto out = std::make_unique<RealConnection>(raw);
  if (const Status connected = out->connect(until_ns); !connected) return tl::unexpected(connected.error());
  return out;
}

}  // namespace culprit::store::postgres
