#include "app/cells.h"

#include <fmt/format.h>

#include <cstdlib>
#include <thread>

#include "base/text.h"

namespace culprit::app {

std::vector<std::string> servers_of(const ClientOptions& options) {
  const char* environment = std::getenv("CULPRIT_SERVER");
  const std::string named = !options.server.empty() ? options.server : environment ? environment : "";
  std::vector<std::string> out;
  for (const std::string_view one : split(named, ','))
    if (const std::string_view server = trim(one); !server.empty()) out.emplace_back(server);
  if (out.empty()) out.emplace_back(kLocalServer);
  return out;
}

Result<Cells> Cells::make(const ClientOptions& options) {
  const std::vector<std::string> servers = servers_of(options);
  if (servers.size() > kCellsMost)
    return fail(ErrorCode::kInvalid,
                fmt::format("--server: names {} collectors, more than {}", servers.size(), kCellsMost));
  Cells out;
  for (const std::string& server : servers) {
    ClientOptions one = options;
    one.server = server;
    auto client = Client::make(one);
    if (!client) return tl::unexpected(client.error());
    out.clients_.push_back(std::move(*client));
  }
  return out;
}

std::vector<Cells::Answer> Cells::get(const std::string& path) {
  std::vector<Answer> out;
  for (const Client& client : clients_) out.push_back({client.server(), std::string()});
  std::vector<std::thread> others;
  for (size_t i = 1; i < clients_.size(); ++i)
    others.emplace_back([&, i] { out[i].body = clients_[i].get(path, kAnswerMs); });
  out[0].body = clients_[0].get(path, are_several() ? kAnswerMs : 0);
  for (std::thread& other : others) other.join();
  return out;
}

}  // namespace culprit::app
