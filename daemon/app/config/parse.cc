#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "app/config/options.h"
#include "app/config/values.h"
#include "base/text.h"
#include "core/rules/keys.h"
#include "model/toml.h"
#include "model/toml_text.h"

namespace culprit::app {
namespace {

constexpr size_t kTextBytes = 4096;  // per value: the longest path in Linux
constexpr size_t kListItems = 1000;  // for example rule folders or healthy jobs
constexpr size_t kLogTables = 1000;  // more than one for each training user
constexpr size_t kPluginTables = 100;
constexpr size_t kAlertTables = 16;       // a thread each
constexpr size_t kPluginOptions = 100;    // options of one plugin
constexpr size_t kErrors = 100;           // errors reported per load; with more errors the file is probably a
                                          // wrong one
constexpr size_t kSocketPathBytes = 107;  // limit of sockaddr_un

std::string_view type_of(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a floating-point number";
    case toml::node_type::boolean:
      return "a boolean";
    default:
      return "a date or time";
  }
}

struct Place {
  size_t file = 0;
  uint32_t line = 0, column = 0;
};

// Finds the first table header that does not start with a key: toml++ asserts on it. A multi-line text may
// contain such a line, but no valid value is a multi-line text.
std::optional<Place> bad_header(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  uint32_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    size_t at = std::min(line.find_first_not_of(kBlanks), line.size());
    if (!line.substr(at).starts_with('[')) continue;
    at += line.substr(at).starts_with("[[") ? 2 : 1;
    at = std::min(line.find_first_not_of(kBlanks, at), line.size());
    const unsigned char c = at < line.size() ? static_cast<unsigned char>(line[at]) : 0;
    const bool key = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                     c == '-' || c == '"' || c == '\'';
    if (!key && c != ']') return Place{0, number, static_cast<uint32_t>(at + 1)};
  }
  return std::nullopt;
}

class Reader {
 public:
  explicit Reader(std::span<const ConfigText> texts) : texts_(texts) {}

  LoadedConfig read() {
    for (file_ = 0; file_ < texts_.size(); ++file_) {
      out_.files.push_back(texts_[file_].file);
      parse(texts_[file_].text);
    }
    check_tls("forward.tls", config().forward.tls);
    check_tls("collector.tls", config().collector.tls);
    check_tls("http.tls", config().http.tls);
    check_reach();
    check_copies();
    check_clear("otlp.headers_file", config().otlp.headers_file, config().otlp.endpoint);
    check_sockets();
    check_act();
    check_pods();
    check_storage();
    std::stable_sort(errors_.begin(), errors_.end(), [](const auto& a, const auto& b) {
      const auto order = [](const Place& p) { return std::tuple(p.file, p.line, p.column); };
      return order(a.first) < order(b.first);
    });
    for (auto& [place, what] : errors_) {
      if (out_.errors.size() == kErrors) {
        what = fmt::format("{} more errors", errors_.size() - kErrors);
        out_.errors.push_back({texts_[place.file].file, 0, 0, std::move(what), ErrorCode::kLimit});
        break;
      }
      out_.errors.push_back({texts_[place.file].file, place.line, place.column, std::move(what)});
    }
    for (const auto& [key, place] : places_)
      out_.places[key] = {texts_[place.file].file, place.line, place.column};
    return std::move(out_);
  }

 private:
  Config& config() { return out_.config; }

  // toml++ quotes line breaks unchanged, and keys are untrusted.
  void refuse(const Place& place, const std::string& what) { errors_.emplace_back(place, to_terminal(what)); }
  Place at(const toml::source_region& source) const {
    return {file_, static_cast<uint32_t>(source.begin.line), static_cast<uint32_t>(source.begin.column)};
  }

  void parse(std::string_view text) {
    if (auto place = bad_header(text)) {
      place->file = file_;
      return refuse(*place, "a table's header is a name in brackets, [name] or [[log]]");
    }
    if (toml_nested_too_deeply(text)) return refuse({file_, 1, 1}, "a key has too many parts");
    const toml::parse_result parsed = toml::parse(text);
    if (parsed) return table(parsed.table(), "");
    const toml::parse_error& error = parsed.error();
    std::string_view what = error.description();
    constexpr std::string_view kPreface = "Error while parsing ";
    if (what.starts_with(kPreface)) what.remove_prefix(kPreface.size());
    std::string sentence = fmt::format("this is no TOML: {}", what);
    if (what.starts_with("Encountered invalid utf-8"))
      sentence = "the text is not UTF-8";
    else if (what.find("could not determine value type") != what.npos)
      sentence = "a value is a string in quotes, a number, true, false, an array or a table";
    else if (what.find("unescaped control characters") != what.npos)
      sentence = "a string lacks its closing quote, or holds a control character";
    else if (what.find("cannot redefine existing") != what.npos && what.find('\'') != what.npos)
      sentence = fmt::format("{} is set twice",
                             what.substr(what.find('\''), what.rfind('\'') + 1 - what.find('\'')));
    refuse(at(error.source()), std::move(sentence));
  }

  // `prefix` is the key of the table in the form of Option::key.
  void table(const toml::table& table, const std::string& prefix) {
    for (const auto& [key, node] : table) {
      const std::string name =
          prefix.empty() ? std::string(key.str()) : fmt::format("{}.{}", prefix, key.str());
      const Place place = at(key.source());
      const bool quoted_dot = key.str().find('.') != std::string_view::npos;
      const Option* option = quoted_dot ? nullptr : find_option(name);
      if (option) {
        places_[name] = place;
        std::visit([&](const auto& type) { value(type, name, node); }, option->type);
      } else if (!quoted_dot && is_listed(name)) {
        file_tables(place, name, node);
      } else if (!quoted_dot && is_table(name)) {
        if (const toml::table* inner = node.as_table())
          this->table(*inner, name);
        else
          refuse(at(node.source()), fmt::format("{} must be a table, written [{}], not {}", in_quotes(name),
                                                name, type_of(node)));
      } else {
        unknown(place, prefix, quoted_dot ? fmt::format("\"{}\"", name) : name,
                node.is_table() || node.is_array_of_tables());
      }
    }
  }

  static bool is_table(const std::string& name) {
    return std::any_of(config_options().begin(), config_options().end(), [&](const Option& option) {
      return option.key.size() > name.size() && option.key.starts_with(name) &&
             option.key[name.size()] == '.';
    });
  }

  void unknown(const Place& place, const std::string& prefix, const std::string& name, bool is_table) {
    std::vector<std::string_view> near;
    for (const OptionTable& t : option_tables())
      if (is_table && prefix.empty() && !t.name.empty()) near.push_back(t.name);
    for (const Option& option : config_options())
      if (!is_table && (prefix.empty() ? option.table().empty() : option.key.starts_with(prefix + ".")))
        near.push_back(option.key);
    // Suggests the right key in the wrong table, else a misspelt key.
    std::string_view best;
    const std::string_view last = std::string_view(name).substr(name.rfind('.') + 1);
    for (const Option& option : config_options())
      if (best.empty() && !is_table && option.key.substr(option.key.rfind('.') + 1) == last)
        best = option.key;
    if (best.empty()) best = rules::nearest(name, near);
    refuse(place, fmt::format("unknown {} {}{}", is_table ? "table" : "key", in_quotes(name),
                              best.empty() ? "" : fmt::format("; did you mean '{}'?", best)));
  }

  void file_tables(const Place& place, const std::string& name, const toml::node& node) {
    const toml::array* tables = node.as_array();
    if (!tables ||
        !std::all_of(tables->begin(), tables->end(), [](const toml::node& n) { return n.is_table(); }))
      return refuse(place, fmt::format("'{0}' must be an array of tables, written [[{0}]]", name));
    if (name == kPluginTable) return plugin_tables(*tables);
    if (name == kAlertTable) return alert_tables(*tables);
    std::vector<LogWatch>& list = name == kDumpTable ? config().dumps : config().logs;
    for (const toml::node& entry : *tables) {
      if (list.size() >= kLogTables)
        return refuse(at(entry.source()),
                      fmt::format("there are more than {} [[{}]] tables", kLogTables, name));
      list.emplace_back().dumps = name == kDumpTable;
      for (const char* key : {"path", "job", "job_pattern"}) places_.erase(fmt::format("{}.{}", name, key));
      const size_t before = errors_.size();
      table(*entry.as_table(), name);
      if (errors_.size() == before) check_files(at(entry.source()), name, list.back());
    }
  }

  void plugin_tables(const toml::array& tables) {
    std::vector<PluginConfig>& list = config().plugin;
    for (const toml::node& entry : tables) {
      const Place place = at(entry.source());
      if (list.size() >= kPluginTables)
        return refuse(place, fmt::format("there are more than {} [[plugin]] tables", kPluginTables));
      list.emplace_back();
      const size_t before = errors_.size();
      table(*entry.as_table(), std::string(kPluginTable));
      if (errors_.size() != before) continue;
      const std::string& name = list.back().name;
      if (name.empty()) refuse(place, "a [[plugin]] table needs 'name'");
      const auto same = [&](const PluginConfig& other) { return other.name == name; };
      if (std::count_if(list.begin(), list.end(), same) > 1)
        refuse(place, fmt::format("there is a [[plugin]] table of {} already", in_quotes(name)));
    }
  }

  void alert_tables(const toml::array& tables) {
    std::vector<AlertConfig>& list = config().alert;
    for (const toml::node& entry : tables) {
      const Place place = at(entry.source());
      if (list.size() >= kAlertTables)
        return refuse(place, fmt::format("there are more than {} [[alert]] tables", kAlertTables));
      list.emplace_back();
      std::erase_if(places_, [](const auto& one) { return one.first.starts_with("alert."); });
      const size_t before = errors_.size();
      table(*entry.as_table(), std::string(kAlertTable));
      if (errors_.size() == before) check_alert(place, list.back());
    }
  }

  // Rejects keys of another receiver type, which would silently have no effect.
  void check_alert(const Place& place, const AlertConfig& alert) {
    if (alert.name.empty()) return refuse(place, "an [[alert]] table needs 'name'");
    const auto same = [&](const AlertConfig& other) { return other.name == alert.name; };
    if (std::count_if(config().alert.begin(), config().alert.end(), same) > 1)
      refuse(place, fmt::format("there is an [[alert]] table of {} already", in_quotes(alert.name)));
    const bool mail = alert.type == AlertType::kMail;
    for (const char* key : {"to", "from"})
      if (mail && !was_set(fmt::format("alert.{}", key)))
        refuse(place, fmt::format("an [[alert]] table of type mail needs '{}'", key));
    if (!mail && alert.url.empty() == alert.url_file.empty())
      refuse(place, "an [[alert]] table needs 'url' or 'url_file', and not both");
    std::vector<const char*> foreign = {"to", "from", "sendmail"};
    if (mail) foreign = {"url", "url_file", "headers_file", "secret_file", "template", "ca", "proxy"};
    if (alert.type == AlertType::kAlertmanager) foreign.insert(foreign.end(), {"template", "secret_file"});
    for (const char* key : foreign)
      if (was_set(fmt::format("alert.{}", key)))
        refuse(place_of(fmt::format("alert.{}", key)),
               fmt::format("'alert.{}' has no meaning with type {}", key,
                           mail                                     ? "mail"
                           : alert.type == AlertType::kAlertmanager ? "alertmanager"
                                                                    : "webhook"));
    if (was_set("alert.secret_file") && alert.template_file.empty())
      refuse(place_of("alert.secret_file"), "'alert.secret_file' needs 'alert.template'");
    if (mail)
      places_[sendmail_key(alert.name)] = was_set("alert.sendmail") ? place_of("alert.sendmail") : place;
    check_clear("alert.headers_file", alert.headers_file, alert.url);
    check_clear("alert.secret_file", alert.secret_file, alert.url);
  }

  // A secret is not sent to another host without TLS.
  void check_clear(const std::string& key, const std::string& file, std::string_view url) {
    if (!file.empty() && goes_in_clear(url))
      refuse(place_of(key), fmt::format("'{}' is a secret, and {} would show it on the way: use https", key,
                                        in_quotes(url)));
  }

  void check_files(const Place& place, const std::string& name, const LogWatch& files) {
    if (files.path.empty()) return refuse(place, fmt::format("a [[{}]] table needs 'path'", name));
    if (!files.job.empty() && !files.job_pattern.empty())
      return refuse(places_[name + ".job_pattern"],
                    fmt::format("'{0}.job_pattern' and '{0}.job' exclude each other", name));
    const Place& own = places_[name + ".path"];
    const auto [first, fresh] = file_places_.emplace(files.path, own);
    if (!fresh)
      refuse(own,
             fmt::format("the same path as at {}:{}", texts_[first->second.file].file, first->second.line));
  }

  void wrong_type(const std::string& key, std::string_view wanted, const toml::node& node) {
    refuse(at(node.source()), fmt::format("'{}' must be {}, not {}", key, wanted, type_of(node)));
  }

  // The text if it is a valid string for a configuration; null if it is rejected.
  const std::string* text(const std::string& key, const toml::node& node, std::string_view wanted) {
    const auto* value = node.as_string();
    if (!value) return wrong_type(key, wanted, node), nullptr;
    const std::string& text = value->get();
    const bool controls =
        std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; });
    if (text.size() > kTextBytes)
      refuse(at(node.source()), fmt::format("'{}' is longer than {} bytes", key, kTextBytes));
    else if (controls)
      refuse(at(node.source()), fmt::format("'{}' must not hold control characters", key));
    else
      return &text;
    return nullptr;
  }

  bool fits(const std::string& key, const toml::node& node, const std::string& text, Check check) {
    const std::string why = check(text);
    if (!why.empty()) refuse(at(node.source()), fmt::format("'{}' {}", key, why));
    return why.empty();
  }

  void value(const TextType& type, const std::string& key, const toml::node& node) {
    const std::string* given = text(key, node, "a string");
    if (given && fits(key, node, *given, type.check)) type.of(config()) = *given;
  }

  void value(const TextsType& type, const std::string& key, const toml::node& node) {
    if (type.or_one && node.is_string()) {
      if (const std::string* given = text(key, node, ""); given && fits(key, node, *given, type.check))
        type.of(config()) = {*given};
      return;
    }
    const toml::array* items = node.as_array();
    if (!items)
      return wrong_type(key, type.or_one ? "a string or an array of strings" : "an array of strings", node);
    if (items->size() > kListItems)
      return refuse(at(node.source()), fmt::format("'{}' has more than {} entries", key, kListItems));
    std::vector<std::string> out;
    for (const toml::node& item : *items) {
      const std::string* given = text(key, item, "an array of strings only");
      if (given && fits(key, item, *given, type.check)) out.push_back(*given);
    }
    type.of(config()) = std::move(out);
  }

  void value(const FlagType& type, const std::string& key, const toml::node& node) {
    const auto* given = node.as_boolean();
    if (!given) return wrong_type(key, "true or false", node);
    type.of(config()) = given->get();
  }

  void value(const IntegerType& type, const std::string& key, const toml::node& node) {
    const auto* given = node.as_integer();
    if (!given) return wrong_type(key, "a whole number", node);
    if (given->get() < type.least || given->get() > type.most)
      return refuse(at(node.source()), fmt::format("'{}' must be from {} to {}, not {}", key, type.least,
                                                   type.most, given->get()));
    type.of(config()) = given->get();
  }

  void value(const DurationType& type, const std::string& key, const toml::node& node) {
    const std::string* given = text(key, node, "a duration in quotes, such as \"60s\"");
    if (!given) return;
    const auto ns = parse_duration(*given);
    if (!ns)
      return refuse(at(node.source()), fmt::format("'{}' must be a duration such as \"60s\", \"1h30m\" or "
                                                   "\"500ms\", not {}",
                                                   key, in_quotes(*given)));
    if (*ns < type.least || *ns > type.most)
      return refuse(at(node.source()),
                    fmt::format("'{}' must be from {} to {}, not {}", key, duration_text(type.least),
                                duration_text(type.most), *given));
    type.of(config()) = *ns;
  }

  void value(const SizeType& type, const std::string& key, const toml::node& node) {
    const std::string* given = text(key, node, "a size in quotes, such as \"4GiB\"");
    if (!given) return;
    const auto bytes = parse_size(*given);
    if (!bytes)
      return refuse(
          at(node.source()),
          fmt::format("'{}' must be a size such as \"64MiB\" or \"4GiB\", not {}", key, in_quotes(*given)));
    if (*bytes < type.least || *bytes > type.most)
      return refuse(at(node.source()), fmt::format("'{}' must be from {} to {}, not {}", key,
                                                   size_text(type.least), size_text(type.most), *given));
    type.of(config()) = *bytes;
  }

  void value(const PairsType& type, const std::string& key, const toml::node& node) {
    const toml::table* pairs = node.as_table();
    if (!pairs) return wrong_type(key, "a table", node);
    if (pairs->size() > kPluginOptions)
      return refuse(at(node.source()), fmt::format("'{}' has more than {} entries", key, kPluginOptions));
    std::vector<std::pair<std::string, std::string>> out;
    for (const auto& [name, item] : *pairs) {
      const std::string full = fmt::format("{}.{}", key, name.str());
      if (const auto* flag = item.as_boolean())
        out.emplace_back(name.str(), flag->get() ? "true" : "false");
      else if (const auto* integer = item.as_integer())
        out.emplace_back(name.str(), fmt::format("{}", integer->get()));
      else if (const auto* number = item.as_floating_point())
        out.emplace_back(name.str(), fmt::format("{}", number->get()));
      else if (const std::string* given = text(full, item, "a string, a number, true or false"))
        out.emplace_back(name.str(), *given);
    }
    type.of(config()) = std::move(out);
  }

  void value(const WordType& type, const std::string& key, const toml::node& node) {
    const std::string wanted = type_text(*find_option(key));
    const std::string* given = text(key, node, wanted);
    if (!given) return;
    const auto found = std::find(type.words.begin(), type.words.end(), *given);
    if (found != type.words.end()) return type.set(config(), static_cast<size_t>(found - type.words.begin()));
    std::string_view best = rules::nearest(*given, type.words);
    for (std::string_view word : type.words)
      if (best.empty() && given->size() >= 3 && word.starts_with(*given)) best = word;
    refuse(at(node.source()), fmt::format("'{}' must be {}, not {}{}", key, wanted, in_quotes(*given),
                                          best.empty() ? "" : fmt::format("; did you mean '{}'?", best)));
  }

  // Where a key was last set; the start of the last file if it was not set.
  Place place_of(const std::string& key) const {
    const auto it = places_.find(key);
    return it != places_.end() ? it->second : Place{texts_.empty() ? 0 : texts_.size() - 1, 0, 0};
  }
  bool was_set(const std::string& key) const { return places_.contains(key); }

  void check_tls(const std::string& table, const TlsFiles& tls) {
    const std::pair<const char*, bool> files[] = {
        {"cert", tls.cert.empty()}, {"key", tls.key.empty()}, {"ca", tls.ca.empty()}};
    const auto set = [&](const auto& f) { return was_set(table + "." + f.first); };
    const auto first = std::find_if(std::begin(files), std::end(files), set);
    if (first == std::end(files) && was_set(table + ".crl"))
      refuse(place_of(table + ".crl"), fmt::format("'{}.crl' needs a certificate too", table));
    if (first == std::end(files)) return;
    const bool peers = find_option(table + ".ca") != nullptr;
    for (const auto& file : files)
      if (!set(file) && (peers || std::string_view(file.first) != "ca"))
        refuse(place_of(table + "." + first->first),
               fmt::format("'{}' needs '{}' too: a connection has a certificate{}", table, file.first,
                           peers ? ", its key and who signed" : " and its key"));
  }

  // Requires protection of addresses and data that other hosts can reach.
  void check_reach() {
    const Config& c = config();
    for (const std::string& to : c.forward.to)
      if (!is_loopback(to) && !was_set("forward.tls.cert")) {
        refuse(place_of("forward.to"),
               fmt::format("'forward.to' {} is another host: it needs forward.tls", in_quotes(to)));
        break;
      }
    if (c.role == DaemonRole::kAgent && !was_set("forward.to") && was_set("role"))
      refuse(place_of("role"), "role agent needs 'forward.to', the collector to send to");
    if (c.role != DaemonRole::kAgent && !is_loopback(c.collector.listen) && !was_set("collector.tls.cert"))
      refuse(place_of("collector.listen"),
             fmt::format("'collector.listen' {} is open to other hosts: it needs collector.tls",
                         in_quotes(c.collector.listen)));
    if (!c.http.listen.starts_with("unix:") && !is_loopback(c.http.listen) && c.http.token_file.empty() &&
        !was_set("http.token_file"))
      refuse(place_of("http.listen"),
             fmt::format("'http.listen' {} is open to other hosts: it needs http.token_file",
                         in_quotes(c.http.listen)));
  }

  void check_copies() {
    const Config::Copies& c = config().copies;
    if (!c.enabled || was_set("forward.tls.cert") || was_set("collector.tls.cert")) return;
    const auto need_tls = [&](const char* key, const std::string& address) {
      if (!is_loopback(address))
        refuse(place_of(key),
               fmt::format("'{}' {} is {} to other hosts: it needs forward.tls or collector.tls", key,
                           in_quotes(address),
                           key == std::string_view("copies.listen") ? "open" : "on the way"));
    };
    for (const std::string& to : c.to) need_tls("copies.to", to);
    for (const std::string& peer : c.peers) need_tls("copies.peers", peer);
    if (!c.store.empty()) need_tls("copies.listen", c.listen);
  }

  void check_sockets() {
    const std::string trace = config().trace_address(), http = config().local_address();
    const std::string copies = config().copies_address();
    for (const auto& [key, address] : {std::pair("trace.socket", &trace), std::pair("http.listen", &http),
                                       std::pair("copies.socket", &copies)})
      if (address->starts_with("unix:") && address->size() - 5 > kSocketPathBytes &&
          (address != &copies || config().copies.enabled))
        refuse(place_of(was_set(key) ? key : "runtime_dir"),
               fmt::format("'{}': {} is longer than the {} bytes of a socket's path", key,
                           in_quotes(address->substr(5)), kSocketPathBytes));
    if (trace == http)
      refuse(place_of(was_set("trace.socket") ? "trace.socket" : "http.listen"),
             "'trace.socket' and 'http.listen' are the same socket");
  }

  void check_act() {
    const Config::Act& act = config().act;
    const auto need = [&](bool is_set, const char* scheduler, const char* key) {
      if (!is_set)
        refuse(place_of("act.scheduler"), fmt::format("'act.scheduler' {} needs '{}'", scheduler, key));
    };
    if (act.scheduler == Scheduler::kExec) {
      const auto& command = act.launcher.command;
      need(!command.empty(), "exec", "act.launcher.command");
      if (!command.empty() && !command[0].starts_with('/'))
        refuse(place_of("act.launcher.command"), "'act.launcher.command' must begin with an absolute path");
    }
    if (act.scheduler == Scheduler::kWebhook) need(!act.launcher.url.empty(), "webhook", "act.launcher.url");
    check_clear("act.launcher.headers_file", act.launcher.headers_file, act.launcher.url);
    const auto& kubernetes = act.kubernetes;
    if (kubernetes.server.empty() &&
        (was_set("act.kubernetes.token_file") || was_set("act.kubernetes.ca_file")))
      refuse(place_of(was_set("act.kubernetes.token_file") ? "act.kubernetes.token_file"
                                                           : "act.kubernetes.ca_file"),
             "'act.kubernetes' needs 'server' too: without it the files of the pod are used");
    check_clear("act.kubernetes.token_file", kubernetes.token_file, kubernetes.server);
  }

  // Evidence leaves the host encrypted.
  void check_storage() {
    const auto& bucket = config().cluster.bucket;
    if (goes_in_clear(bucket.url))
      refuse(place_of("cluster.bucket.url"),
             fmt::format("'cluster.bucket.url' {} would show evidence on the way: use https",
                         in_quotes(bucket.url)));
    if (bucket.url.empty() != bucket.name.empty())
      refuse(place_of(bucket.url.empty() ? "cluster.bucket.name" : "cluster.bucket.url"),
             "'cluster.bucket' needs both 'url' and 'name'");
  }

  void check_pods() {
    const Config::Pods& pods = config().pods;
    if (pods.server.empty() && (was_set("pods.token_file") || was_set("pods.ca_file")))
      refuse(place_of(was_set("pods.token_file") ? "pods.token_file" : "pods.ca_file"),
             "'pods' needs 'server' too: without it the files of the pod are used");
    check_clear("pods.token_file", pods.token_file, pods.server);
    if (!pods.enabled) return;
    // Another table would read the same files as another source.
    for (const LogWatch& log : config().logs) {
      const std::string above = log.path.substr(0, log.path.find_first_of("*?[{"));
      const bool within = log.path.starts_with(pods.folder + "/");
      const bool around = pods.folder.starts_with(above) && log.path.find("**") != log.path.npos;
      if (within || around)
        refuse(
            file_places_.at(log.path),
            fmt::format("'log.path' {} has files of [pods], which would be read twice", in_quotes(log.path)));
    }
  }

  std::span<const ConfigText> texts_;
  size_t file_ = 0;
  LoadedConfig out_;
  std::vector<std::pair<Place, std::string>> errors_;
  std::map<std::string, Place> places_;       // position at which each key was last set
  std::map<std::string, Place> file_places_;  // positions of paths in [[log]] and [[dump]] tables
};

std::string joined_address(const std::string& folder, const std::string& name) {
  return name.starts_with('/') ? "unix:" + name : fmt::format("unix:{}/{}", folder, name);
}

}  // namespace

LoadedConfig parse_config(std::span<const ConfigText> texts) { return Reader(texts).read(); }

std::string Config::trace_address() const { return joined_address(runtime_dir, trace.socket); }

std::string Config::copies_address() const { return joined_address(runtime_dir, copies.socket); }

std::string Config::local_address() const {
  return http.listen.starts_with("unix:") ? http_address() : joined_address(runtime_dir, "api.sock");
}

std::string Config::http_address() const {
  if (!http.listen.starts_with("unix:")) return http.listen;
  return joined_address(runtime_dir, http.listen.substr(5));
}

}  // namespace culprit::app
