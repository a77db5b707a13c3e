// A server of the Model Context Protocol, revision 2025-06-18 and the two before it. A message of JSON-RPC
// 2.0 is one line. The server only reads. Answers with text from logs are untrusted: escaped, marked as data
// and limited in size. Input is untrusted too: each line gets an answer or is a notification, and no line
// ends the server. One thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/status.h"

namespace culprit::cli {

// Data source of the tools. A job may be empty if there is only one. Texts may contain any bytes.
class McpSource {
 public:
  virtual ~McpSource() = default;
  virtual Result<std::string> jobs() = 0;
  virtual Result<std::string> hosts() = 0;
  virtual Result<std::string> report(const std::string& job) = 0;
  // Why a diagnosis was made; empty `id`: the leading diagnosis.
  virtual Result<std::string> why(const std::string& job, const std::string& id) = 0;
  // Facts against a host or a log line as the cause; either argument may be empty.
  virtual Result<std::string> why_not(const std::string& job, const std::string& host,
                                      const std::string& line) = 0;
  struct Place {
    std::string job, host, path;
    uint64_t line = 1;
    uint32_t around = 5;
  };
  virtual Result<std::string> evidence(const Place& place) = 0;
};

class McpServer {
 public:
  explicit McpServer(McpSource& source) : source_(source) {}
  // The answer to one line, without a newline; empty: the line needs no answer.
  std::string handle(std::string_view line);
  // The answer to a line that was too long to read.
  static std::string too_long();

 private:
  using Json = nlohmann::ordered_json;
  Json answer(const Json& message);  // null: none is due
  Json call(const Json& params);

  McpSource& source_;
};

constexpr size_t kMcpLineBytes = 1 << 20;
constexpr size_t kMcpAnswerBytes = 48 << 10;

}  // namespace culprit::cli
