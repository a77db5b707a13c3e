#include "app/daemon/watch/copy_service.h"

#include <utility>

#include "app/daemon/watch/copy_in.h"
#include "app/daemon/watch/copy_out.h"

namespace culprit::app {

Result<std::unique_ptr<CopyService>> CopyService::start(io::Env& env, CopyServiceOptions options) {
  const Config& config = *options.config;
  if (!config.copies.enabled || !config.watches() || !options.make_env) return nullptr;
  std::unique_ptr<CopyService> service(new CopyService(env));
  CopyParts parts;
  parts.copies = config.copies;
  parts.host = config.host.name;
  parts.tls = config.forward.tls.used() ? config.forward.tls : config.collector.tls;
  parts.socket = config.copies_address();
  parts.state = service->state_;
  parts.stop = service->stop_;
  parts.log = [post = service->callback_.post(), log = options.log](LogLevel level, const std::string& what) {
    post([log, level, what] { log(level, what); });
  };
  auto in = LoopThread::start("copies-in", LoopPriority::kLow, options.make_env,
                              [parts](io::Env& own) { return std::make_shared<CopyIn>(own, parts); });
  if (!in) return tl::unexpected(in.error());
  service->in_ = std::move(*in);
  if (config.copies.folders.empty()) return service;
  auto out = LoopThread::start("copies-out", LoopPriority::kIdle, options.make_env,
                               [parts](io::Env& own) { return std::make_shared<CopyOut>(own, parts); });
  if (!out) return tl::unexpected(out.error());
  service->out_ = std::move(*out);
  return service;
}

void CopyService::stop() {
  *stop_ = true;
  if (out_) out_->stop();
  if (in_) in_->stop();
}

bool CopyService::end() {
  stop();
  const bool out = !out_ || out_->end();
  return (!in_ || in_->end()) && out;
}

std::string CopyService::trouble() const {
  const CopyCounters counters = state_->counters();
  if (counters.out_trouble.empty()) return counters.in_trouble;
  return counters.out_trouble;
}

}  // namespace culprit::app
