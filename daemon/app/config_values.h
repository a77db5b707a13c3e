// What single values of the configuration must be like: a sentence that follows "'key' " where they are not.
// Pure; any thread. Only the configuration's own files look here.
#pragma once

#include <string>
#include <string_view>

namespace culprit::app {

std::string check_absolute_path(std::string_view text);
std::string check_glob(std::string_view text);
std::string check_socket_name(std::string_view text);  // a name in runtime_dir, or an absolute path
std::string check_job(std::string_view text);
std::string check_job_pattern(std::string_view text);
std::string check_host_name(std::string_view text);
std::string check_tcp_address(std::string_view text);     // "HOST:PORT", "[::1]:PORT"
std::string check_listen_address(std::string_view text);  // the same, or "unix:NAME"

}  // namespace culprit::app
