// One request and its answer, between libmicrohttpd and a handler. Used by http_server.cc only.
//
// A connection that waits for its answer, or for the next part of the answer, is suspended and costs
// nothing. The answer resumes the connection and requests a turn of the server (`kick`).
#pragma once

#include <microhttpd.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "serve/http_server.h"

namespace culprit::serve {

// State of a connection that waits for its handler. Shared by all code that may resume the connection; dead
// once the client has left.
class Wait {
 public:
  Wait(MHD_Connection* connection, std::function<void()> kick)
      : connection_(connection), kick_(std::move(kick)) {}
  void suspend();
  void wake();
  void die() { connection_ = nullptr; }
  bool dead() const { return connection_ == nullptr; }
  bool suspended() const { return suspended_; }

 private:
  MHD_Connection* connection_;
  std::function<void()> kick_;
  bool suspended_ = false;
};

class Body final : public BodyStream {
 public:
  explicit Body(std::shared_ptr<Wait> wait) : wait_(std::move(wait)) {}
  void write(std::string bytes) override;
  size_t queued() const override { return queued_; }
  bool closed() const override { return wait_->dead(); }
  void on_ready(std::function<void()> call) override;
  void on_closed(std::function<void()> call) override;
  void trailer(const std::string& name, const std::string& value) override;
  void finish() override;
  void abort() override;

  void set_response(MHD_Response* response) { response_ = response; }
  // Ends the body as if the client had left: calls the writer's on_closed.
  void cut();
  // libmicrohttpd's content reader.
  ssize_t read(char* out, size_t max);
  void connection_closed();

 private:
  void request_content();
  void end();

  std::shared_ptr<Wait> wait_;
  MHD_Response* response_ = nullptr;  // while the connection lives
  std::deque<std::string> parts_;
  size_t taken_ = 0, queued_ = 0;  // sent of the first part; total
  bool asked_ = false, finished_ = false, aborted_ = false;
  std::function<void()> on_ready_, on_closed_;
};

// The answer, given once and read by the exchange. Copies of a Reply share a State; if it ends without an
// answer, this counts as an answer.
struct Answer {
  explicit Answer(std::shared_ptr<Wait> w) : wait(std::move(w)) {}
  void respond(Response r);

  std::shared_ptr<Wait> wait;
  bool given = false;
  Response response;
  std::shared_ptr<Body> body;  // if it is streamed
};

struct Reply::State {
  explicit State(std::shared_ptr<Answer> a) : answer(std::move(a)) {}
  State(const State&) = delete;
  ~State();
  std::shared_ptr<Answer> answer;
};

// The handler's answer in libmicrohttpd's form, with the headers of every answer.
MHD_Response* make_response(const Response& response, const std::shared_ptr<Body>& body);

}  // namespace culprit::serve
