// Checks of single values. Each returns an error to follow "'key' ", or an empty text. Pure; any thread.
// Private to the configuration's files.
#pragma once

#include <string>
#include <string_view>

namespace culprit::app {

// The text in quotes and of limited length, for an error.
std::string in_quotes(std::string_view text);

std::string check_absolute_path(std::string_view text);
std::string check_plain_folder(std::string_view text);  // absolute, as file names below it begin
std::string check_glob(std::string_view text);
std::string check_socket_name(std::string_view text);  // a name in runtime_dir, or an absolute path
std::string check_job(std::string_view text);
std::string check_job_pattern(std::string_view text);
std::string check_host_name(std::string_view text);
std::string check_plugin_name(std::string_view text);  // as in culprit/plugin.h
std::string check_receiver_name(std::string_view text);
std::string check_url(std::string_view text);           // http or https, without a user's name
std::string check_mail_address(std::string_view text);  // NAME@HOST
std::string check_category(std::string_view text);      // of diagnoses
std::string check_action(std::string_view text);        // of diagnoses
std::string check_order_kind(std::string_view text);    // of the controller's orders
std::string check_namespace(std::string_view text);     // of Kubernetes
std::string check_namespaces(std::string_view text);    // a pattern of them, with * and ?
std::string check_units(std::string_view text);         // a pattern of systemd's units, with * and ?
std::string check_label(std::string_view text);         // KEY or KEY=VALUE, of Kubernetes
std::string check_lease(std::string_view text);         // "NAMESPACE/NAME", or empty
std::string check_command_word(std::string_view text);
std::string check_user(std::string_view text);      // a name or uid, or "*"
std::string check_tool(std::string_view text);      // py-spy, eu-stack or gdb, or a path to one
std::string check_database(std::string_view text);  // a connection string of libpq, without a password
std::string check_bucket(std::string_view text);    // a name of a bucket, or empty
std::string check_region(std::string_view text);    // "us-east-1"
std::string check_command(std::string_view text);   // an absolute path with arguments
std::string check_group(std::string_view text);     // a name as in group(5)
// As check_url; the address of a daemon, whose paths follow: no query, and no wildcard as the host.
std::string check_member_url(std::string_view text);
std::string check_web_host(std::string_view text);        // a host name or address, without a port
std::string check_tcp_address(std::string_view text);     // "HOST:PORT", "[::1]:PORT"
std::string check_listen_address(std::string_view text);  // the same, or "unix:NAME"

}  // namespace culprit::app
