#include "app/cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/text.h"
#include "io/address.h"
#include "model/json_text.h"

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

std::vector<OtherMember> other_members(const std::string& cluster) {
  std::vector<OtherMember> out;
  const auto json = parse_json(cluster);
  const auto items = json.is_object() ? json.find("items") : json.end();
  if (!json.is_object() || items == json.end() || !items->is_array()) return out;
  for (const auto& item : *items) {
    if (!item.is_object() || item.value("this", nlohmann::json()) == true) continue;
    const auto text = [&](const char* name) {
      const auto at = item.find(name);
      return at != item.end() && at->is_string() ? at->get<std::string>() : std::string();
    };
    out.push_back(OtherMember{text("name"), text("http")});
  }
  return out;
}

std::string why_not_asked(const std::string& server, const OtherMember& member) {
  const bool encrypted = member.http.starts_with("https://");
  if (member.http.empty()) return "it has no cluster.http";
  if (!encrypted && !member.http.starts_with("http://")) return "its cluster.http is no address";
  const std::string_view rest = std::string_view(member.http).substr(std::min<size_t>(7, member.http.size()));
  const std::string authority(rest.substr(0, rest.find('/')));
  const bool may_be_clear =
      server.starts_with("http://") || (server.starts_with("unix:") && io::is_loopback(authority));
  if (!encrypted && !may_be_clear) return fmt::format("its cluster.http, {}, is not encrypted", member.http);
  return "";
}

Result<Cells> Cells::make_with_members(const ClientOptions& options) {
  auto out = make(options);
  if (!out || out->are_several()) return out;
  const std::string server = out->clients_.front().server();
  const auto cluster = out->clients_.front().get("/v1/cluster", kReachMs);
  const std::vector<OtherMember> members = cluster ? other_members(*cluster) : std::vector<OtherMember>();
  // Where no member has an address, members do not lead to each other.
  if (std::ranges::all_of(members, [](const OtherMember& one) { return one.http.empty(); })) return out;
  for (const OtherMember& member : members) {
    std::string why = why_not_asked(server, member);
    ClientOptions one = options;
    one.server = member.http;
    if (why.empty() && out->clients_.size() >= kCellsMost)
      why = fmt::format("more than {} members", kCellsMost);
    if (why.empty()) {
      auto client = Client::make(one);
      if (client) out->clients_.push_back(std::move(*client));
      if (!client) why = client.error().text;
    }
    if (!why.empty())
      out->left_out_.push_back(
          fmt::format("{}: {}; what it has is left out", to_terminal(member.name), to_terminal(why)));
  }
  return out;
}

std::vector<Cells::Answer> Cells::get(const std::string& path) {
  std::vector<Answer> out;
  for (const Client& client : clients_) out.push_back({client.server(), std::string()});
  if (!are_several()) {
    out[0].body = clients_[0].get(path);
    return out;
  }
  const auto ask = [&](size_t i) {
    const Status reached = clients_[i].reach(kReachMs);
    out[i].body = reached ? clients_[i].get(path, kAnswerMs) : tl::unexpected(reached.error());
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < clients_.size(); ++i) others.emplace_back([&ask, i] { ask(i); });
  ask(0);
  for (std::thread& other : others) other.join();
  return out;
}

}  // namespace culprit::app
