#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "base/check.h"
#include "io/container.h"
#include "io/uv/loop.h"

namespace culprit::io {
namespace {

struct StreamState {
  union {
    uv_stream_t handle;
    uv_pipe_t pipe;
    uv_tcp_t tcp;
  };
  Loop* loop = nullptr;
  Stream::Handlers handlers;
  bool reads = false;   // started and not ended
  bool closed = false;  // the owner was destroyed
};

struct WriteRequest {
  uv_write_t request;
  std::string bytes;
};

void end(StreamState& state, const Error* error) {
  if (state.closed || !std::exchange(state.reads, false)) return;
  uv_read_stop(&state.handle);
  if (state.handlers.on_end) state.handlers.on_end(error);
}

void end(StreamState& state, int number) {
  const Error error = uv_error("a connection", number);
  end(state, &error);
}

void on_read(uv_stream_t* handle, ssize_t n, const uv_buf_t* buffer) {
  auto& state = *static_cast<StreamState*>(handle->data);
  if (n == 0) return;  // no bytes
  if (n == UV_EOF) return end(state, nullptr);
  if (n < 0) return end(state, static_cast<int>(n));
  state.handlers.on_bytes(std::string_view(buffer->base, static_cast<size_t>(n)));
}

int start_reading(StreamState& state) {
  return uv_read_start(
      &state.handle,
      [](uv_handle_t* handle, size_t, uv_buf_t* buffer) {
        Loop& loop = *static_cast<StreamState*>(handle->data)->loop;
        *buffer = uv_buf_init(loop.buffer.data(), loop.buffer.size());
      },
      on_read);
}

std::string address_of(int descriptor) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "";
  if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      ::getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return {};
  const std::string name = address.ss_family == AF_INET6 ? "[" + std::string(host) + "]" : host;
  return name + ":" + port;
}

std::optional<PeerCredentials> credentials_of(int descriptor) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  if (::getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  PeerCredentials out{static_cast<uint32_t>(peer.pid), peer.uid, peer.gid};
  if (const Principal who = peer_of(descriptor).value_or(peer.uid); who.is_pod()) out.pod = who;
  return out;
}

class UvStream final : public Stream {
 public:
  UvStream(StreamState* state, std::optional<PeerCredentials> peer, std::string address)
      : state_(state), peer_(peer), address_(std::move(address)) {}
  ~UvStream() override {
    state_->closed = true;
    close_and_free(state_);
  }

  void start(Handlers handlers) override {
    state_->handlers = std::move(handlers);
    state_->reads = true;
    resume();
  }
  void pause() override { uv_read_stop(&state_->handle); }
  void resume() override {
    if (!state_->reads) return;
    const int failed = start_reading(*state_);
    CULPRIT_CHECK(failed == 0 || failed == UV_EALREADY);
  }

  void write(std::string bytes) override {
    auto* write = new WriteRequest{{}, std::move(bytes)};
    write->request.data = write;
    const uv_buf_t buffer = uv_buf_init(write->bytes.data(), static_cast<unsigned>(write->bytes.size()));
    const int failed =
        uv_write(&write->request, &state_->handle, &buffer, 1, [](uv_write_t* request, int status) {
          auto& state = *static_cast<StreamState*>(request->handle->data);
          delete static_cast<WriteRequest*>(request->data);
          if (status != 0) return end(state, status);
          if (!state.closed && state.handlers.on_sent && uv_stream_get_write_queue_size(&state.handle) == 0)
            state.handlers.on_sent();
        });
    // Fails only if the kernel already closed the socket, which reading reports too.
    if (failed != 0) delete write;
  }
  size_t unsent() const override { return uv_stream_get_write_queue_size(&state_->handle); }
  std::optional<PeerCredentials> peer() const override { return peer_; }
  std::string address() const override { return address_; }
  size_t drain(size_t max) override {
    uv_os_fd_t descriptor = -1;
    if (!state_->reads || uv_fileno(reinterpret_cast<uv_handle_t*>(&state_->handle), &descriptor) != 0)
      return 0;
    uv_read_stop(&state_->handle);
    ::shutdown(descriptor, SHUT_RD);  // bytes sent before can still be read
    auto& buffer = state_->loop->buffer;
    size_t done = 0;
    for (ssize_t n = 0; done < max && (n = ::read(descriptor, buffer.data(), buffer.size())) > 0;) {
      done += static_cast<size_t>(n);
      state_->handlers.on_bytes(std::string_view(buffer.data(), static_cast<size_t>(n)));
    }
    return done;
  }

 private:
  StreamState* const state_;
  const std::optional<PeerCredentials> peer_;
  const std::string address_;  // read while the peer is connected
};

}  // namespace

Result<std::unique_ptr<Stream>> make_stream(Loop& loop, int descriptor) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size);
  const bool local = address.ss_family == AF_UNIX;
  auto* state = new StreamState;
  state->loop = &loop;
  CULPRIT_CHECK((local ? uv_pipe_init(&loop.uv, &state->pipe, 0) : uv_tcp_init(&loop.uv, &state->tcp)) == 0);
  state->handle.data = state;
  auto stream = std::make_unique<UvStream>(state, local ? credentials_of(descriptor) : std::nullopt,
                                           local ? std::string() : address_of(descriptor));
  const int failed = local ? uv_pipe_open(&state->pipe, descriptor) : uv_tcp_open(&state->tcp, descriptor);
  if (failed != 0) {
    ::close(descriptor);
    return uv_failure("a connection", failed);
  }
  // Writes are whole answers: waiting for more bytes would only delay them.
  if (!local) uv_tcp_nodelay(&state->tcp, 1);
  return stream;
}

}  // namespace culprit::io
