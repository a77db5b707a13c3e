#include "app/checkpoint/copies_client.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "io/system_error.h"
#include "respond/checkpoint/digest.h"

namespace culprit::app {

Result<CopiesClient> CopiesClient::connect(const std::string& socket, const std::string& from,
                                           TimeNs patience_ns) {
  const timeval patience = {static_cast<time_t>(patience_ns / kNsPerSecond), 0};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.size() >= sizeof address.sun_path)
    return fail(ErrorCode::kInvalid, socket + ": is too long for a socket");
  std::memcpy(address.sun_path, socket.data(), socket.size());
  CopiesClient client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (client.socket_ < 0) return io::system_failure(socket, errno);
  (void)::setsockopt(client.socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  (void)::setsockopt(client.socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (::connect(client.socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return io::system_failure(socket, errno);
  client.splitter_.allow(copies::kMessageBytes);
  copies::Hello hello;
  hello.to = from;
  auto welcome = client.answer_to<copies::Welcome>(hello);
  if (!welcome) return tl::unexpected(welcome.error());
  client.host_ = welcome->host;
  return client;
}

CopiesClient::CopiesClient(CopiesClient&& other) noexcept { *this = std::move(other); }

CopiesClient& CopiesClient::operator=(CopiesClient&& other) noexcept {
  std::swap(socket_, other.socket_);
  std::swap(host_, other.host_);
  std::swap(splitter_, other.splitter_);
  std::swap(received_, other.received_);
  return *this;
}

CopiesClient::~CopiesClient() {
  if (socket_ >= 0) ::close(socket_);
}

Status CopiesClient::write(const copies::Message& message) {
  const std::string bytes = copies::encode(message);
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::send(socket_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    // The reason of a refusal may wait to be read.
    if (n < 0) return io::system_failure("the daemon's socket", errno);
    done += static_cast<size_t>(n);
  }
  return {};
}

Result<copies::Message> CopiesClient::read() {
  std::string buffer(copies::kChunkBytes, '\0');
  while (true) {
    auto message = splitter_.next();
    if (!message) return tl::unexpected(message.error());
    if (*message) {
      if (const auto* refused = std::get_if<copies::Refused>(&**message))
        return fail(ErrorCode::kDenied, refused->sentence);
      return std::move(**message);
    }
    const ssize_t n = ::recv(socket_, buffer.data(), buffer.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return fail(ErrorCode::kIo, "the daemon gives no answer");
    if (n < 0) return io::system_failure("the daemon's socket", errno);
    if (n == 0) return fail(ErrorCode::kIo, "the daemon closed the connection");
    splitter_.add({buffer.data(), static_cast<size_t>(n)});
  }
}

template <class T>
Result<T> CopiesClient::answer_to(const copies::Message& request) {
  if (Status sent = write(request); !sent) return tl::unexpected(sent.error());
  auto message = read();
  if (!message) return tl::unexpected(message.error());
  if (auto* answer = std::get_if<T>(&*message)) return std::move(*answer);
  return fail(ErrorCode::kInvalid,
              fmt::format("a {} came where it does not belong", copies::name_of(*message)));
}

Result<copies::Answer> CopiesClient::ask() { return answer_to<copies::Answer>(copies::Ask{}); }

Result<std::vector<copies::Entry>> CopiesClient::list() {
  auto listing = answer_to<copies::Listing>(copies::List{});
  if (!listing) return tl::unexpected(listing.error());
  return std::move(listing->entries);
}

Result<copies::Manifest> CopiesClient::get(const copies::Entry& entry) {
  auto found = answer_to<copies::Found>(copies::Get{entry.host, entry.id});
  if (!found) return tl::unexpected(found.error());
  return std::move(found->manifest);
}

Status CopiesClient::fetch(const copies::Manifest& manifest, uint32_t file,
                           const std::function<Status(std::string_view)>& take) {
  if (Status sent = write(copies::Fetch{file}); !sent) return sent;
  const copies::File& wanted = manifest.files[file];
  respond::checkpoint::Sha256 hash;
  uint64_t offset = 0;
  while (true) {
    const auto message = read();
    if (!message) return tl::unexpected(message.error());
    if (const auto* data = std::get_if<copies::Data>(&*message);
        data && data->file == file && data->offset == offset && data->bytes.size() <= wanted.size - offset) {
      hash.add(data->bytes);
      if (Status taken = take(data->bytes); !taken) return taken;
      offset += data->bytes.size();
      received_ += data->bytes.size();
      if (Status sent = write(copies::Ack{received_}); !sent) return sent;
      continue;
    }
    if (const auto* end = std::get_if<copies::FileEnd>(&*message);
        end && end->file == file && offset == wanted.size) {
      if (hash.finish() == wanted.digest) return {};
      return fail(ErrorCode::kInvalid, wanted.path + ": its copy is damaged: other bytes than were stored");
    }
    return fail(ErrorCode::kInvalid, fmt::format("{}: a {} came where it does not belong", wanted.path,
                                                 copies::name_of(*message)));
  }
}

}  // namespace culprit::app
