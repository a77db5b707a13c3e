#include "app/config/config.h"

#include <fmt/format.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <map>

#include "../../io/certificates.h"
#include "../../io/user_tree.h"
#include "../fixtures.h"
#include "app/config/options.h"
#include "base/text.h"

using namespace culprit;
using namespace culprit::app;
using culprit::app::test::Folder;

namespace fs = std::filesystem;

namespace {

const fs::path kSource = CULPRIT_SOURCE_DIR;
constexpr TimeNs kNow = 1'800'000'000 * kNsPerSecond;

std::string read(const fs::path& path) {
  std::ifstream in(path);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// A line of five equal signs divides files, as in the fuzz target.
std::vector<ConfigText> files_of(const std::string& text) {
  const size_t cut = text.find("\n=====\n");
  std::vector<ConfigText> out = {{"a.toml", text.substr(0, cut)}};
  if (cut != text.npos) out.push_back({"b.toml", text.substr(cut + 7)});
  return out;
}

std::string errors_of(const LoadedConfig& loaded) {
  std::string out;
  for (const ConfigError& e : loaded.errors) out += format_error(e) + "\n";
  return out;
}

Config need(const std::string& text) {
  const LoadedConfig loaded = parse_config(files_of(text));
  BOOST_TEST(errors_of(loaded) == "");
  return loaded.config;
}

// Keys that exclude others of their table: job and job_pattern, what mail has and what webhooks have.
bool excluded(std::string_view line) {
  for (const char* key : {"job_pattern = ", "url_file = ", "to = [", "from = ", "sendmail = "})
    if (line.starts_with(key)) return true;
  return false;
}

}  // namespace

// config_errors.txt: "@" and the name of a file in tests/fuzz/corpus/config, then all its errors.
BOOST_AUTO_TEST_CASE(every_wrong_key_and_value_is_reported_with_its_place_and_a_sentence) {
  std::map<std::string, std::string> expected;
  std::string* row = nullptr;
  const std::string table = read(kSource / "tests/unit/app/config/config_errors.txt");
  for (std::string_view line : split(table, '\n')) {
    if (line.starts_with('@'))
      row = &expected[std::string(line.substr(1))];
    else if (row && !line.empty())
      *row += std::string(line) + "\n";
  }
  BOOST_TEST(expected.size() > 100u);
  for (const auto& entry : fs::directory_iterator(kSource / "tests/fuzz/corpus/config")) {
    const std::string name = entry.path().filename();
    BOOST_TEST_CONTEXT(name) {
      BOOST_REQUIRE(expected.contains(name));
      BOOST_TEST(errors_of(parse_config(files_of(read(entry.path())))) == expected[name]);
      BOOST_TEST(expected[name].empty() == name.starts_with("ok_"));
      expected.erase(name);
    }
  }
  BOOST_TEST(expected.empty());
}

BOOST_AUTO_TEST_CASE(without_a_key_its_default_holds_and_the_printed_defaults_are_those) {
  const Config nothing = need("");
  BOOST_TEST(nothing.spool.max_size == uint64_t{4} << 30);
  BOOST_TEST(nothing.hang.after_ns == 60 * kNsPerSecond);
  BOOST_TEST(nothing.trace_address() == "unix:/run/culprit/trace.sock");
  BOOST_TEST(nothing.http_address() == "unix:/run/culprit/api.sock");
  Config tcp;
  tcp.http.listen = "127.0.0.1:7420";
  BOOST_TEST(tcp.http_address() == "127.0.0.1:7420");
  BOOST_TEST(tcp.local_address() == "unix:/run/culprit/api.sock");
  tcp.http.listen = "unix:other.sock";
  BOOST_TEST(tcp.local_address() == "unix:/run/culprit/other.sock");
  BOOST_TEST(changed_keys(nothing, need(config_defaults())).empty());
}

BOOST_AUTO_TEST_CASE(the_printed_defaults_show_every_key_and_each_example_is_one_that_is_taken) {
  std::string all;
  const std::string defaults = config_defaults();
  for (std::string_view line : split(defaults, '\n')) {
    const bool shown = line.starts_with('#') && !line.starts_with("# ");
    if (!excluded(line.substr(shown ? 1 : 0))) all += std::string(line.substr(shown ? 1 : 0)) + "\n";
  }
  const Config config = need(all);
  BOOST_TEST(config.host.name == "node-17");
  BOOST_REQUIRE(config.logs.size() == 1u);
  BOOST_TEST(config.logs[0].job == "llama-70b-0412");
  BOOST_TEST(config.collector.tls.ca == "/etc/culprit/ca.pem");
  for (const Option& option : config_options()) {
    const std::string_view key = option.key.substr(option.key.find('.') + 1);
    if (excluded(
            fmt::format("{} = {}", key, option.key == "alert.to" || option.key == "copies.to" ? "[" : "")))
      continue;
    BOOST_TEST(all.find(fmt::format("\n{} = ", key)) != all.npos, option.key);
    Config mutable_config = config;
    BOOST_TEST(!is_empty(option, mutable_config), option.key);
  }
}

BOOST_AUTO_TEST_CASE(what_is_printed_is_what_is_shipped) {
  BOOST_TEST(read(kSource / "daemon/app/config/CONFIG.md") == config_reference());
}

BOOST_AUTO_TEST_CASE(durations_and_sizes_read_back_as_they_are_written) {
  const struct {
    const char* text;
    TimeNs ns;
    const char* shown;
  } durations[] = {
      {"500ms", 500 * kNsPerMs, "500ms"},        {"1s", kNsPerSecond, "1s"},
      {"60s", 60 * kNsPerSecond, "60s"},         {"1h30m", 5400 * kNsPerSecond, "90m"},
      {"1d", 86'400 * kNsPerSecond, "24h"},      {"30d", 30 * 86'400 * kNsPerSecond, "30d"},
      {"1m1s1ms", 61'001 * kNsPerMs, "61001ms"}, {"0s", 0, "0s"},
  };
  for (const auto& d : durations) {
    BOOST_TEST(parse_duration(d.text).value_or(-1) == d.ns, d.text);
    BOOST_TEST(duration_text(d.ns) == d.shown);
    BOOST_TEST(parse_duration(duration_text(d.ns)).value_or(-1) == d.ns);
  }
  const struct {
    const char* text;
    uint64_t bytes;
    const char* shown;
  } sizes[] = {{"4GiB", uint64_t{4} << 30, "4GiB"},
               {"64MiB", 64 << 20, "64MiB"},
               {"200GB", 200'000'000'000, "195312500KiB"},
               {"1kB", 1000, "1000B"},
               {"0B", 0, "0B"}};
  for (const auto& s : sizes) {
    BOOST_TEST(parse_size(s.text).value_or(1) == s.bytes, s.text);
    BOOST_TEST(size_text(s.bytes) == s.shown);
    BOOST_TEST(parse_size(size_text(s.bytes)).value_or(1) == s.bytes);
  }
}

BOOST_AUTO_TEST_CASE(a_reload_knows_what_changed_and_what_of_it_needs_a_restart) {
  const Config before = need("[[log]]\npath = \"/a/*\"\n");
  const Config after = need(
      "role = \"collector\"\nrules = []\n[hang]\nafter = \"2m\"\n[http]\nlisten = \"127.0.0.1:1\"\n"
      "[daemon]\nlog_level = \"debug\"\n[[log]]\npath = \"/b/*\"\n");
  const std::vector<std::string> changed = {"role", "rules", "http.listen", "hang.after", "daemon.log_level",
                                            "log"};
  BOOST_TEST(changed_keys(before, after) == changed, boost::test_tools::per_element());
  const std::vector<std::string> restart = {"role", "http.listen"};
  BOOST_TEST(keys_for_restart(before, after) == restart, boost::test_tools::per_element());
  // A reload applies the reloadable keys only.
  const Config taken = with_reloadable(before, after);
  BOOST_TEST(keys_for_restart(before, taken).empty());
  BOOST_TEST(changed_keys(taken, after) == restart, boost::test_tools::per_element());
  BOOST_TEST(changed_keys(before, need("hang.after = \"60000ms\"\n[[log]]\npath = \"/a/*\"\n")).empty());
}

BOOST_AUTO_TEST_CASE(files_are_read_in_order_of_name_the_later_value_wins_and_log_tables_add_up) {
  const Folder folder;
  const std::string main = folder.write("culpritd.toml", "hang.steps = 1\nhost.name = \"a\"\n");
  folder.write("conf.d/20-b.toml", "hang.steps = 3\n[[log]]\npath = \"/b/*\"\n");
  folder.write("conf.d/10-a.toml", "hang.steps = 2\nact.mode = \"act\"\n[[log]]\npath = \"/a/*\"\n");
  folder.write("conf.d/.hidden.toml", "nonsense\n");
  folder.write("conf.d/notes.txt", "nonsense\n");
  const LoadedConfig loaded = load_config(main);
  BOOST_TEST(errors_of(loaded) == "");
  BOOST_TEST(loaded.files.size() == 3u);
  BOOST_TEST(loaded.config.hang.steps == 3);
  BOOST_TEST((loaded.config.act.mode == ActMode::kAct));
  BOOST_TEST(loaded.config.host.name == "a");
  BOOST_REQUIRE(loaded.config.logs.size() == 2u);
  BOOST_TEST(loaded.config.logs[0].path == "/a/*");
  BOOST_TEST(loaded.config.logs[1].path == "/b/*");
}

BOOST_AUTO_TEST_CASE(files_that_cannot_be_read_are_reported_and_the_others_are_checked_all_the_same) {
  const Folder folder;
  const std::string missing = (folder.path / "missing.toml").string();
  const std::string huge = folder.write("huge.toml", std::string((1 << 20) + 1, '#'));
  folder.write("conf.d/a.toml", "rolle = 1\n");
  fs::create_directories(folder.path / "conf.d/b.toml");
  const std::string there = (folder.path / "conf.d").string();
  const std::string always = there + "/a.toml:1:1: error: unknown key 'rolle'; did you mean 'role'?\n";
  const std::string is_folder = there + "/b.toml: error: ";
  for (const auto& [path, what] : {std::pair(missing, std::string("no such file")),
                                   std::pair(huge, std::string("larger than 1.0 MB"))}) {
    const LoadedConfig loaded = load_config(path);
    const std::string errors = errors_of(loaded);
    BOOST_TEST_CONTEXT(errors) {
      BOOST_TEST(errors.starts_with(path + ": error: "));
      BOOST_TEST(errors.find(what) != errors.npos);
      BOOST_TEST(errors.find(is_folder) != errors.npos);
      BOOST_TEST(errors.ends_with(always));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_program_for_mail_that_another_user_could_change_is_refused_at_its_line) {
  if (!testing::is_root()) return;
  const testing::UserTree tree;
  constexpr uid_t kAlice = 12'003, kMallory = 12'002;
  tree.file("sound", 0, 0711);
  tree.file("own", kAlice, 0700);
  tree.file("group", kAlice, 0775);
  tree.file("his", kMallory, 0755);
  tree.folder("team", 0, 0777);
  tree.file("team/sendmail", 0, 0755);
  tree.link("link", "his", 0);
  tree.folder("folder", 0);
  const std::pair<const char*, const char*> rows[] = {
      {"sound", ""},
      {"own", ""},
      {"absent", ""},
      {"group", "/group has mode 0775, so that others could change it; run chmod go-w /group"},
      {"his", "/his belongs to user 12002, who is not trusted; run chown root /his"},
      {"link", "/his belongs to user 12002, who is not trusted; run chown root /his"},
      {"team/sendmail",
       "/team has mode 0777, so that others could replace what is in it; run chmod go-w /team"},
      {"folder", "it is no regular file"},
  };
  const std::string config = tree / "culpritd.toml";
  for (const auto& [program, why] : rows) {
    std::ofstream(config) << fmt::format(
        "[[alert]]\nname = \"m\"\ntype = \"mail\"\nto = [\"a@b\"]\nfrom = \"c@d\"\nsendmail = \"{}\"\n",
        tree / program);
    std::string errors = errors_of(load_config(config, kAlice));
    for (size_t at; (at = errors.find(tree / "")) != errors.npos;) errors.erase(at, (tree / "").size() - 1);
    const std::string wanted =
        fmt::format("/culpritd.toml:6:1: error: 'alert.sendmail' /{}: {}\n", program, why);
    BOOST_TEST(errors == (*why ? wanted : ""), program);
  }
}

BOOST_AUTO_TEST_CASE(an_absent_name_of_the_host_is_the_machines) {
  const Folder folder;
  char name[256] = {};
  BOOST_REQUIRE(gethostname(name, sizeof name - 1) == 0);
  BOOST_TEST(load_config(folder.write("a.toml", "")).config.host.name == name);
}

BOOST_AUTO_TEST_CASE(a_check_tells_configuration_and_rules_and_its_status_is_that_of_the_formats) {
  const Folder folder;
  const std::string rules = folder.write("rules/a.lua", "rule { }\n");
  const struct {
    std::string path;
    int status;
    const char* printed;
  } cases[] = {
      {folder.write("good.toml", "hang.steps = 7\n"), 0, ": ok, with "},
      {folder.write("bad.toml", "hang.steps = 0\n"), 1, ":1:14: error: 'hang.steps' must be from 1 to 1000"},
      {folder.write("rules.toml", "rules = [\"" + rules + "\"]\n"), 1, "a.lua:1"},
      {folder.write("no_rules.toml", "rules = [\"/does/not/exist\"]\n"), 1, "/does/not/exist: no such"},
      {(folder.path / "missing.toml").string(), 2, "missing.toml: error: no such file"},
  };
  for (const auto& c : cases) {
    const ConfigCheck check = check_config(c.path, kNow);
    BOOST_TEST_CONTEXT(c.path << ": " << check.errors << check.output) {
      BOOST_TEST(check.status == c.status);
      BOOST_TEST((c.status ? check.errors : check.output).find(c.printed) != std::string::npos);
      BOOST_TEST(check.output.empty() == (c.status != 0));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_check_reports_errors_of_certificates_at_their_keys) {
  const io::testing::Folder folder;
  const io::testing::Authority authority(folder, "site");
  const auto issue = [&](const char* file, io::testing::Issued what) { return authority.issue(file, what); };
  const io::TlsFiles good = issue("good", {"DNS:node-3"});
  const io::TlsFiles other = issue("other", {"DNS:node-9,DNS:node-9.example"});
  const io::TlsFiles old = issue("old", {"DNS:node-3", 1'600'000'000, 1'700'000'000});
  const io::TlsFiles early = issue("early", {"DNS:node-3", 1'850'000'000, 1'900'000'000});
  const io::TlsFiles ambiguous = issue("unnamed", {""});
  const Folder texts;
  const std::string rubbish = texts.write("rubbish.pem", "no certificate\n");
  fs::permissions(rubbish, fs::perms::owner_read);
  const std::string open = texts.write("open.key", read(good.key));
  fs::permissions(open, fs::perms(0644));
  const struct {
    std::string cert, key, ca;
    const char* says;  // after the file name; "": no error
    int agent = 1, collector = 1;
  } cases[] = {
      {good.cert, good.key, good.ca, "", 0, 0},
      {good.cert + "x", good.key, good.ca, ":5:9: error: 'forward.tls.cert': ", 1, 1},
      {rubbish, good.key, good.ca, "rubbish.pem: has no usable certificate"},
      {good.cert, good.key + "x", good.ca, ":5:"},
      {good.cert, rubbish, good.ca, "rubbish.pem: has no usable private key"},
      {good.cert, open, good.ca, "open.key: any user may read it: run chmod 600 "},
      {good.cert, other.key, good.ca, "other.key: is not the key of "},
      {good.cert, good.key, rubbish, "'forward.tls.ca': "},
      {old.cert, old.key, old.ca, "old.crt: has expired at 2023-11-14"},
      {early.cert, early.key, early.ca, "early.crt: is valid from 2028-08-16"},
      {other.cert, other.key, other.ca,
       "other.crt: is that of node-9, node-9.example by its DNS names, and not of Node-3", 1, 0},
      {ambiguous.cert, ambiguous.key, ambiguous.ca, "unnamed.crt: is that of no host by its DNS names", 1, 0},
  };
  for (const auto& row : cases)
    for (const bool agent : {true, false}) {
      const std::string table = agent ? "forward" : "collector";
      const std::string text = fmt::format(
          "role = \"{}\"\nrules = []\nhost.name = \"Node-3\"\n[{}]\n"
          "tls = {{ cert = \"{}\", key = \"{}\", ca = \"{}\" }}\n{}",
          agent ? "agent" : "collector", table, row.cert, row.key, row.ca,
          agent ? "to = \"collector.example:7421\"\n" : "");
      const ConfigCheck check = check_config(texts.write("a.toml", text), kNow);
      BOOST_TEST_CONTEXT(text << check.errors) {
        BOOST_TEST(check.status == (agent ? row.agent : row.collector));
        std::string says = row.says;
        if (const size_t at = says.find("forward."); !agent && at != says.npos)
          says.replace(at, 7, "collector");
        BOOST_TEST((check.status == 0 ? check.errors.empty() : check.errors.find(says) != std::string::npos));
      }
    }
}

BOOST_AUTO_TEST_CASE(a_check_reports_token_files_that_the_daemon_would_refuse) {
  const Folder folder;
  const std::string good = folder.write("good", "secret read grafana\n");
  fs::permissions(good, fs::perms(0600));
  const std::string open = folder.write("open", "secret\n");
  fs::permissions(open, fs::perms(0644));
  const std::tuple<std::string, std::string, const char*> cases[] = {
      {"127.0.0.1:7420", good, ""},
      {"127.0.0.1:7420", open, ":4:1: error: 'http.token_file': "},
      {"127.0.0.1:7420", good + "x", ":4:1: error: 'http.token_file': "},
      {"unix:api.sock", open, ""},  // not read there
  };
  for (const auto& [listen, tokens, says] : cases) {
    const ConfigCheck check = check_config(
        folder.write("a.toml", fmt::format("rules = []\n[http]\nlisten = \"{}\"\ntoken_file = \"{}\"\n",
                                           listen, tokens)),
        kNow);
    BOOST_TEST_CONTEXT(listen << " " << tokens << ": " << check.errors) {
      BOOST_TEST(check.status == (*says ? 1 : 0));
      BOOST_TEST(check.errors.find(says) != std::string::npos);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_check_reports_errors_of_revocation_lists) {
  const io::testing::Folder folder;
  const io::testing::Authority authority(folder, "site");
  const io::TlsFiles good = authority.issue("good", {"DNS:node-3"});
  const std::pair<std::string, const char*> cases[] = {
      {authority.revoke("list.pem", {}), ""},
      {authority.revoke("old.pem", {}, 1'700'000'001), "old.pem: is out of date since 2023-11-14"},
      {good.ca, "site.pem: has no revocation list"},
      {folder / "none.pem", "none.pem: no such file or directory"},
  };
  const Folder texts;
  for (const auto& [crl, says] : cases) {
    const ConfigCheck check = check_config(
        texts.write("a.toml", fmt::format("role = \"collector\"\nrules = []\n[collector.tls]\ncert = \"{}\"\n"
                                          "key = \"{}\"\nca = \"{}\"\ncrl = \"{}\"\n",
                                          good.cert, good.key, good.ca, crl)),
        kNow);
    BOOST_TEST_CONTEXT(check.errors) {
      BOOST_TEST(check.status == (*says ? 1 : 0));
      BOOST_TEST(check.errors.find(says) != std::string::npos);
      BOOST_TEST(
          (*says == '\0' || check.errors.find(":7:1: error: 'collector.tls.crl': ") != std::string::npos));
    }
  }
}

// An authority that this host does not trust may be intended; other problems of authorities are errors.
BOOST_AUTO_TEST_CASE(a_check_reports_errors_of_authorities) {
  const io::testing::Folder folder;
  const io::testing::Authority authority(folder, "site");
  const io::TlsFiles good = authority.issue("good", {"DNS:node-3"});
  const Folder texts;
  const io::testing::Authority foreign(folder, "foreign");
  const std::tuple<std::string, int, const char*> authorities[] = {
      {foreign.ca(), 0, "warning: 'forward.tls.cert': "},
      {good.cert, 1, "good.crt: is the certificate of node-3, and of no authority"},
  };
  for (const auto& [ca, status, says] : authorities) {
    const ConfigCheck check = check_config(
        texts.write("a.toml",
                    fmt::format("role = \"agent\"\nrules = []\nhost.name = \"node-3\"\n[forward]\n"
                                "to = \"c:1\"\ntls = {{ cert = \"{}\", key = \"{}\", ca = \"{}\" }}\n",
                                good.cert, good.key, ca)),
        kNow);
    BOOST_TEST(check.status == status, check.errors);
    BOOST_TEST(check.errors.find(says) != std::string::npos, check.errors);
  }
  constexpr TimeNs kAuthorityIsOld = 2'000'000'001 * kNsPerSecond;
  const std::string later =
      texts.write("a.toml", fmt::format("role = \"collector\"\nrules = []\n[collector]\n"
                                        "tls = {{ cert = \"{}\", key = \"{}\", ca = \"{}\" }}\n",
                                        good.cert, good.key, good.ca));
  BOOST_TEST(check_config(later, kAuthorityIsOld).errors.find("'collector.tls.ca': ") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_check_reports_all_errors_of_certificates) {
  const Folder texts;
  const std::string rubbish = texts.write("rubbish.pem", "no certificate\n");
  const std::string text = "role = \"agent\"\nrules = []\n[forward]\nto = \"c:1\"\n[forward.tls]\ncert = \"" +
                           rubbish + "\"\nkey = \"" + rubbish + "\"\nca = \"/does/not/exist\"\n";
  const std::string errors = check_config(texts.write("a.toml", text), kNow).errors;
  for (const char* place : {":6:1: error: 'forward.tls.cert'", ":7:1: error: 'forward.tls.key'",
                            ":8:1: error: 'forward.tls.ca': /does/not/exist: no such file"})
    BOOST_TEST(errors.find(place) != std::string::npos, errors);
}

BOOST_AUTO_TEST_CASE(what_has_no_effect_yet_is_reported_and_is_no_error) {
  const Folder folder;
  const std::pair<const char*, const char*> cases[] = {
      {"role = \"collector\"\n[[log]]\npath = \"/a/*.log\"\n", "log: has no effect with role collector"},
      {"[act]\nmode = \"act\"\n", "act.mode: has no effect without act.scheduler"},
      {"[act]\nmode = \"ask\"\nscheduler = \"slurm\"\n",
       "act.mode: has no effect while act.isolate, act.restart and act.advise are off"},
      {"[act]\nscheduler = \"exec\"\nisolate = true\nlauncher.command = [\"/bin/true\"]\n"
       "launcher.orders = [\"run_again\"]\n",
       "act.isolate: has no effect while act.launcher.orders has no isolate"},
      {"[act]\nreturn = true\n", "act.return: has no effect while act.check is off"},
      {"[http]\nlisten = \"127.0.0.1:7420\"\n",
       "http.listen: over TCP only /healthz, /metrics and the links of culprit page"},
      {"[forward]\nto = \"127.0.0.1:7421\"\n", "forward: has an effect with role agent only"}};
  for (const auto& [text, reported] : cases) {
    const ConfigCheck check = check_config(folder.write("a.toml", text), kNow);
    BOOST_TEST_CONTEXT(text << ": " << check.errors) {
      BOOST_TEST(check.status == 0);
      BOOST_TEST(check.errors.find(reported) != std::string::npos);
    }
  }
  BOOST_TEST(check_config(folder.write("a.toml", "[act]\nmode = \"observe\"\n"), kNow).errors == "");
}
