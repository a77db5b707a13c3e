#include "cli/checkpoint_copies.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>

#include "app/checkpoint/copies_client.h"
#include "app/config/config.h"
#include "base/text.h"
#include "cli/layout.h"
#include "cli/remote.h"
#include "cli/rules.h"
#include "cli/zone.h"
#include "model/json_writer.h"

namespace culprit::cli {
namespace {

constexpr const char* kRestoreExamples = R"(
The daemon of this host brings the copy, from its own store or from the agents in copies.to and copies.peers.
Every byte is compared with its digest. A user gets copies of own files, root gets all. No existing file is
replaced; what is there already with the same bytes stays. An interrupted restore continues.

Examples:
  culprit checkpoint restore --list
  culprit checkpoint restore /local/checkpoints --to /local/checkpoints
  sudo culprit checkpoint restore --of gpu-7 --from gpu-42:7444 --to /scratch/rescued

Exit status: 0; 1 where there is no such copy; 2 where it could not be brought.)";

struct RestoreVerb {
  std::string folder, to, of, socket, timezone = "local", format = "text";
  std::vector<std::string> from;
  std::optional<uint64_t> step;
  bool list = false;
};

struct Offered {
  copies::Entry entry;
  std::string from;  // empty: this host's store
};

std::string default_socket() {
  const app::LoadedConfig loaded = app::load_config("");
  const std::string address = loaded.config.copies_address();
  return address.starts_with("unix:") ? address.substr(5) : address;
}

std::string full_path(const copies::Entry& entry) {
  return entry.path.empty() ? entry.root : entry.root + "/" + entry.path;
}

bool is_below(const std::string& path, const std::string& folder) {
  return path == folder || path.starts_with(folder == "/" ? folder : folder + "/");
}

// The folder may be gone, so links are resolved only where they still exist.
std::string absolute(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), std::free);
  if (real) return real.get();
  std::string out = path;
  if (!out.starts_with('/')) {
    const std::unique_ptr<char, void (*)(void*)> here(::getcwd(nullptr, 0), std::free);
    out = std::string(here ? here.get() : "") + "/" + out;
  }
  while (out.size() > 1 && out.ends_with('/')) out.pop_back();
  return out;
}

bool is_wanted(const RestoreVerb& o, const copies::Entry& entry) {
  if (!o.of.empty() && entry.host != o.of) return false;
  if (o.step && entry.step != static_cast<int64_t>(*o.step)) return false;
  if (o.folder.empty()) return true;
  const std::string folder = absolute(o.folder);
  return is_below(full_path(entry), folder) || is_below(full_path(entry), o.folder);
}

struct Search {
  std::vector<Offered> found;         // the latest first
  std::vector<std::string> troubles;  // of agents that did not answer
  std::string host;                   // this one
};

Result<Search> search(const RestoreVerb& o) {
  Search out;
  std::vector<std::string> from = o.from;
  auto own = app::CopiesClient::connect(o.socket, "");
  if (!own)
    return fail(own.error().code, own.error().text +
                                      "; the daemon of this host brings copies: is "
                                      "copies.enabled set, and does it run?");
  out.host = own->host();
  if (from.empty()) {
    auto answer = own->ask();
    if (!answer) return tl::unexpected(answer.error());
    from = answer->peers;
    from.insert(from.begin(), "");
  }
  for (const std::string& address : from) {
    auto client = app::CopiesClient::connect(o.socket, address);
    auto entries = client ? client->list() : tl::unexpected(client.error());
    if (!entries) {
      out.troubles.push_back(address.empty() ? entries.error().text : address + ": " + entries.error().text);
      continue;
    }
    for (copies::Entry& entry : *entries)
      if (is_wanted(o, entry)) out.found.push_back({std::move(entry), address});
  }
  std::ranges::stable_sort(out.found, [](const Offered& a, const Offered& b) {
    return std::tie(a.entry.changed_ns, a.entry.order) > std::tie(b.entry.changed_ns, b.entry.order);
  });
  return out;
}

std::string list_text(const Search& search, const Zone& zone) {
  std::vector<std::vector<std::string>> rows{
      {"CHECKPOINT", "OF HOST", "STEP", "SIZE", "CHANGED", "STORED", "AT"}};
  for (const Offered& one : search.found) {
    const copies::Entry& e = one.entry;
    rows.push_back({to_terminal(full_path(e)), to_terminal(e.host), e.step < 0 ? "-" : std::to_string(e.step),
                    format_bytes(e.bytes), format_time(e.changed_ns, zone).substr(0, 19),
                    format_time(e.stored_ns, zone).substr(0, 19),
                    one.from.empty() ? "this host" : to_terminal(one.from)});
  }
  return table(rows, wants_color());
}

std::string list_json(const Search& search) {
  JsonWriter w;
  w.object([&] {
    w.field("schema", "culprit.copies/1");
    w.list("items", search.found, [&](const Offered& one) {
      w.object([&] {
        w.field("host", one.entry.host);
        w.field("path", full_path(one.entry));
        w.field("format", one.entry.format);
        w.field("step", one.entry.step < 0 ? std::optional<int64_t>() : one.entry.step);
        w.field("files", uint64_t{one.entry.files});
        w.field("bytes", one.entry.bytes);
        w.time("changed_ns", one.entry.changed_ns);
        w.time("stored_ns", one.entry.stored_ns);
        w.text_or_null("from", one.from);
      });
    });
    w.values("troubles", search.troubles);
  });
  return w.finish() + "\n";
}

// Of several hosts' copies: this host's, else the user says which.
Result<Offered> choose(const RestoreVerb& o, const Search& search) {
  std::set<std::string> hosts;
  for (const Offered& one : search.found) hosts.insert(one.entry.host);
  if (hosts.empty())
    return fail(ErrorCode::kNotFound,
                fmt::format("there is no copy{}{}", o.folder.empty() ? "" : " of " + o.folder,
                            o.of.empty() ? "" : " of host " + o.of));
  std::string host = *hosts.begin();
  if (hosts.size() > 1) {
    if (!hosts.contains(search.host)) {
      std::string names;
      for (const std::string& name : hosts) names += (names.empty() ? "" : ", ") + name;
      return fail(ErrorCode::kInvalid, "there are copies of several hosts: choose one with --of: " + names);
    }
    host = search.host;
  }
  return *std::ranges::find(search.found, host, [](const Offered& one) { return one.entry.host; });
}

int restore(const RestoreVerb& o) {
  const auto zone = zone_named(o.timezone);
  if (!zone) return report_error(zone.error().text), kUnable;
  if (!o.list && o.to.empty()) return report_error("checkpoint restore: needs --to DIR, or --list"), kUnable;
  const auto found = search(o);
  if (!found) return report_error(found.error().text), kUnable;
  for (const std::string& trouble : found->troubles) report_error("no answer: " + to_terminal(trouble));
  const bool json = o.format == "json";
  if (o.list) {
    if (!print(json ? list_json(*found) : list_text(*found, *zone))) return kUnable;
    return found->found.empty() ? kFound : kDone;
  }
  const auto chosen = choose(o, *found);
  if (!chosen) {
    report_error(to_terminal(chosen.error().text));
    return chosen.error().code == ErrorCode::kNotFound ? kFound : kUnable;
  }
  auto client = app::CopiesClient::connect(o.socket, chosen->from);
  auto manifest = client ? client->get(chosen->entry) : tl::unexpected(client.error());
  if (!manifest) return report_error(to_terminal(manifest.error().text)), kUnable;
  app::RestoreOptions options;
  options.to = o.to;
  while (options.to.size() > 1 && options.to.ends_with('/')) options.to.pop_back();
  if (isatty(2))
    options.progress = [](const copies::File& file) {
      std::fprintf(stderr, "%s, %s\n", to_terminal(file.path).c_str(), format_bytes(file.size).c_str());
    };
  const auto done = app::restore_copy(*client, *manifest, options);
  if (!done) return report_error(to_terminal(done.error().text)), kUnable;
  if (json) {
    JsonWriter w;
    w.object([&] {
      w.field("schema", "culprit.restored/1");
      w.field("path", done->path);
      w.field("host", chosen->entry.host);
      w.field("step", chosen->entry.step < 0 ? std::optional<int64_t>() : chosen->entry.step);
      w.field("files", done->files);
      w.field("bytes", done->bytes);
      w.field("present", done->present);
      w.values("pointers", done->pointers);
    });
    return print(w.finish() + "\n") ? kDone : kUnable;
  }
  std::string out =
      fmt::format("{}: {} written, {}; all {} equal by digest{}\n", to_terminal(done->path),
                  counted(done->files, "file"), format_bytes(done->bytes), done->files + done->present,
                  done->present ? fmt::format(" ({} were there)", done->present) : "");
  for (const std::string& pointer : done->pointers) out += to_terminal(pointer) + " names it\n";
  return print(out) ? kDone : kUnable;
}

}  // namespace

std::vector<copies::Copied> copies_below(const std::string& root) {
  const std::string socket = default_socket();
  if (::access(socket.c_str(), F_OK) != 0) return {};
  auto client = app::CopiesClient::connect(socket, "", 2 * kNsPerSecond);
  if (!client) return {};
  auto answer = client->ask();
  if (!answer) return {};
  std::erase_if(answer->copies, [&](const copies::Copied& one) {
    return !is_below(one.root, root) && !is_below(root, one.root);
  });
  return std::move(answer->copies);
}

std::string copy_text(const std::vector<copies::Copied>& all, const std::string& root,
                      const std::string& path) {
  const std::string full = path.empty() ? root : root + "/" + path;
  std::string out;
  for (const copies::Copied& one : all) {
    if ((one.path.empty() ? one.root : one.root + "/" + one.path) != full) continue;
    const bool plain = one.state == "copied";
    out += (out.empty() ? "" : ", ") + (plain ? one.to : one.state);
  }
  return out.empty() ? "-" : to_terminal(out);
}

void add_checkpoint_restore(Command& checkpoint, Run& run) {
  auto o = std::make_shared<RestoreVerb>();
  Command* verb = checkpoint.add_subcommand("restore", "Bring back a copy that another host stores");
  verb->footer(kRestoreExamples);
  verb->add_option("FOLDER", o->folder,
                   "The checkpoint, or the folder that had it, on the host that wrote it; default: any");
  verb->add_option("--to", o->to, "Folder to write to; the checkpoint gets its name below it")
      ->type_name("DIR");
  verb->add_option("--of", o->of, "The host whose checkpoint it is; default: this host, or the only one")
      ->type_name("HOST");
  verb->add_option("--from", o->from, "The agent that stores it; default: copies.to and copies.peers")
      ->type_name("HOST:PORT");
  verb->add_option("--step", o->step, "The copy of this step; default: the newest")->type_name("STEP");
  verb->add_flag("--list", o->list, "List the copies, and restore none");
  verb->add_option("--socket", o->socket, "The daemon's socket; default: copies.socket of its configuration")
      ->type_name("PATH");
  verb->add_option("--format,-f", o->format, "text or json")->one_of({"text", "json"})->show_default();
  verb->add_option("--timezone", o->timezone, "Zone of the times in text")->show_default();
  verb->callback([o, &run] {
    run = [o] {
      if (o->socket.empty()) o->socket = default_socket();
      return restore(*o);
    };
  });
}

}  // namespace culprit::cli
