#include "serve/exchange.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "model/json_writer.h"

namespace culprit::serve {
namespace {

// Bytes per call of the content reader.
constexpr size_t kBlockBytes = 64 << 10;

ssize_t read_body(void* body, uint64_t, char* out, size_t max) {
  return (*static_cast<std::shared_ptr<Body>*>(body))->read(out, max);
}

void free_body(void* body) { delete static_cast<std::shared_ptr<Body>*>(body); }
void free_text(void* text) { delete static_cast<std::string*>(text); }

}  // namespace

void Wait::suspend() {
  if (!connection_ || suspended_) return;
  suspended_ = true;
  MHD_suspend_connection(connection_);
}

void Wait::wake() {
  if (!connection_ || !suspended_) return;
  suspended_ = false;
  MHD_resume_connection(connection_);
  kick_();
}

void Body::write(std::string bytes) {
  if (closed() || finished_ || aborted_ || bytes.empty()) return;
  asked_ = false;
  queued_ += bytes.size();
  parts_.push_back(std::move(bytes));
  wait_->wake();
}

void Body::on_ready(std::function<void()> call) {
  if (closed()) return;
  on_ready_ = std::move(call);
  if (wait_->suspended()) request_content();
}

void Body::on_closed(std::function<void()> call) {
  if (closed()) return call();  // nothing else would release `call`, whose captures may hold this body
  on_closed_ = std::move(call);
}

void Body::trailer(const std::string& name, const std::string& value) {
  if (!closed() && response_) MHD_add_response_footer(response_, name.c_str(), value.c_str());
}

void Body::finish() {
  finished_ = true;
  end();
}

void Body::abort() {
  aborted_ = true;
  end();
}

void Body::cut() {
  aborted_ = true;
  wait_->wake();
}

// Their captures may hold this body.
void Body::end() {
  on_ready_ = nullptr;
  on_closed_ = nullptr;
  wait_->wake();
}

void Body::request_content() {
  if (asked_ || queued_ > 0 || finished_ || aborted_ || !on_ready_) return;
  asked_ = true;
  const auto call = on_ready_;  // the call may destroy the body, and with it on_ready_
  call();
}

ssize_t Body::read(char* out, size_t max) {
  request_content();
  if (aborted_) return MHD_CONTENT_READER_END_WITH_ERROR;
  if (queued_ == 0) {
    if (finished_) return MHD_CONTENT_READER_END_OF_STREAM;
    wait_->suspend();
    return 0;
  }
  const std::string& part = parts_.front();
  const size_t size = std::min(max, part.size() - taken_);
  std::memcpy(out, part.data() + taken_, size);
  taken_ += size;
  queued_ -= size;
  if (taken_ == part.size()) {
    parts_.pop_front();
    taken_ = 0;
  }
  return static_cast<ssize_t>(size);
}

void Body::connection_closed() {
  response_ = nullptr;
  parts_.clear();
  queued_ = 0;
  on_ready_ = nullptr;
  if (const auto call = std::exchange(on_closed_, nullptr)) call();
}

Reply::State::~State() {
  if (!answer->given) answer->respond(error_response(500, "the daemon gave no answer"));
}

void Answer::respond(Response r) {
  if (given) return;
  given = true;
  response = std::move(r);
  wait->wake();
}

void Reply::send(Response response) const { state_->answer->respond(std::move(response)); }

std::shared_ptr<BodyStream> Reply::stream(Response head) const {
  Answer& answer = *state_->answer;
  // After the server has ended, a late handler's request counts as answered; its bytes are discarded.
  CULPRIT_CHECK(!answer.given || answer.wait->dead());
  auto body = std::make_shared<Body>(answer.wait);
  if (!answer.given) answer.body = body;
  answer.respond(std::move(head));
  return body;
}

Response error_response(int status, std::string_view sentence) {
  JsonWriter w;
  w.object([&] { w.field("error", sentence); });
  return {status, "application/json", w.finish() + "\n", {}};
}

Response error_response(const Error& error) {
  constexpr auto status = [](ErrorCode code) {
    switch (code) {
      case ErrorCode::kInvalid:
        return 400;
      case ErrorCode::kNotFound:
        return 404;
      case ErrorCode::kDenied:
        return 403;
      case ErrorCode::kLimit:
        return 503;
      case ErrorCode::kBusy:
        return 409;
      case ErrorCode::kTooSoon:
        return 429;
      case ErrorCode::kIo:
        return 500;
    }
    return 500;
  };
  return error_response(status(error.code), error.text);
}

MHD_Response* make_response(const Response& response, const std::shared_ptr<Body>& body) {
  MHD_Response* out = nullptr;
  if (body) {
    out = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, kBlockBytes, read_body,
                                            new std::shared_ptr<Body>(body), free_body);
    body->set_response(out);
  } else {
    auto* text = new std::string(response.body);
    out = MHD_create_response_from_buffer_with_free_callback_cls(text->size(), text->data(), free_text, text);
  }
  CULPRIT_CHECK(out);
  const auto header = [&](const char* name, const std::string& value) {
    MHD_add_response_header(out, name, value.c_str());
  };
  header("Content-Type", response.content_type);
  header("Cache-Control", "no-store");
  header("X-Content-Type-Options", "nosniff");
  header("Referrer-Policy", "no-referrer");
  // Allows only the page's own scripts, and forbids every site to frame the page.
  header("Content-Security-Policy",
         "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
         "form-action 'none'; frame-ancestors 'none'");
  for (const auto& [name, value] : response.headers) header(name.c_str(), value);
  return out;
}

}  // namespace culprit::serve
