#include "app/daemon/self/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <string>

#include "base/text.h"

namespace culprit::app {
namespace {

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      break;
  }
  return spdlog::level::err;
}

// journald's priorities (syslog's numbers).
class Priority : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
    const char digit = message.level >= spdlog::level::err    ? '3'
                       : message.level == spdlog::level::warn ? '4'
                       : message.level == spdlog::level::info ? '6'
                                                              : '7';
    out.push_back('<');
    out.push_back(digit);
    out.push_back('>');
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<Priority>(); }
};

void write_line(spdlog::level::level_enum level, std::string_view sentence) {
  spdlog::log(level, "{}", to_terminal(std::string(sentence)));
}

}  // namespace

Log::Log(LogLevel level, bool journal) {
  auto logger =
      std::make_shared<spdlog::logger>("culpritd", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  if (journal)
    formatter->add_flag<Priority>('*').set_pattern("%*%v");
  else
    formatter->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l culpritd: %v");
  logger->set_formatter(std::move(formatter));
  logger->flush_on(spdlog::level::debug);
  spdlog::set_default_logger(std::move(logger));
  set_level(level);
}

void Log::set_level(LogLevel level) { spdlog::set_level(spdlog_level(level)); }
void Log::error(std::string_view sentence) { write_line(spdlog::level::err, sentence); }
void Log::warning(std::string_view sentence) { write_line(spdlog::level::warn, sentence); }
void Log::info(std::string_view sentence) { write_line(spdlog::level::info, sentence); }
void Log::debug(std::string_view sentence) { write_line(spdlog::level::debug, sentence); }

}  // namespace culprit::app
