#include "app/config/rule_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <unordered_set>

#include "base/hash.h"
#include "base/text.h"
#include "core/rules/library.h"
#include "ingest/file.h"
#include "io/trusted_path.h"

namespace culprit::app {
namespace {

namespace fs = std::filesystem;

constexpr size_t kRuleFiles = 10'000;       // per command: a hundred times the library
constexpr int kDepth = 16;                  // nested folders
constexpr size_t kRuleFileBytes = 8 << 20;  // above the loader's own limit, whose error is more detailed

std::string_view reason(int error) {
  return error == ENOENT ? "no such file or folder" : std::strerror(error);
}

class RuleReader {
 public:
  RuleReader(RuleFiles& out, std::optional<uid_t> trusted_uid) : out_(out), trusted_uid_(trusted_uid) {}

  void add(std::string file, std::string text) {
    ++found_;
    if (seen_.insert(hash64(text)).second) out_.texts.push_back({std::move(file), std::move(text)});
  }

  // A path named by the user.
  void path(const std::string& path) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) return fail_with(path, errno);
    if (!S_ISDIR(info.st_mode)) return read(path, false);
    const size_t before = found_ + out_.errors.size();
    walk(path, 0);
    if (found_ + out_.errors.size() == before)
      out_.errors.push_back({ErrorCode::kNotFound, path + ": no rule file (*.lua) below it"});
  }

  // The site's folder, which may be missing.
  void site(const std::string& path) {
    std::error_code error;
    if (fs::is_directory(path, error)) walk(path, 0);
  }

 private:
  void fail_with(const std::string& path, int error) {
    const ErrorCode code = error == ENOENT || error == ENOTDIR ? ErrorCode::kNotFound : ErrorCode::kDenied;
    out_.errors.push_back({code, fmt::format("{}: {}", path, reason(error))});
  }

  void walk(const std::string& folder, int depth) {
    if (depth > kDepth)
      return out_.errors.push_back(
          {ErrorCode::kLimit, fmt::format("{}: more than {} folders within each other", folder, kDepth)});
    std::error_code error;
    std::vector<std::string> names;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
      names.push_back(it->path().filename().string());
    if (error) return fail_with(folder, error.value());
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      if (name.starts_with('.')) continue;
      const std::string path = folder.ends_with('/') ? folder + name : folder + "/" + name;
      const fs::file_status own = fs::symlink_status(path, error);
      if (fs::is_directory(own))
        walk(path, depth + 1);
      else if (name.ends_with(".lua") && !fs::is_directory(path, error))
        read(path, true);
    }
  }

  Result<ingest::File> open(const std::string& path) const {
    if (!trusted_uid_) return ingest::File::open(path);
    const auto opened = io::open_trusted_file(path, *trusted_uid_, io::Writers::kGroup);
    if (opened) return ingest::File::adopt(*opened, path);
    return fail(opened.error().code, path + ": " + opened.error().text);
  }

  void read(const std::string& path, bool on_walk) {
    if (found_ >= kRuleFiles) {
      if (!full_)
        out_.errors.push_back(
            {ErrorCode::kLimit, fmt::format("{}: more than {} rule files", path, kRuleFiles)});
      full_ = true;
      return;
    }
    auto file = open(path);
    if (!file) return out_.errors.push_back(file.error());
    std::string text;
    char block[64 << 10];
    while (text.size() <= kRuleFileBytes) {
      const ingest::ReadOutcome got = file->read(block, sizeof block);
      if (got.error) return fail_with(path, got.error);
      if (got.bytes == 0) break;
      text.append(block, got.bytes);
    }
    if (on_walk && text.starts_with("---@meta")) return;
    add(path, std::move(text));
  }

  RuleFiles& out_;
  const std::optional<uid_t> trusted_uid_;
  std::unordered_set<uint64_t> seen_;
  size_t found_ = 0;
  bool full_ = false;
};

}  // namespace

RuleFiles read_rule_files(const RuleOptions& options) {
  RuleFiles out;
  RuleReader reader(out, options.trusted_uid);
  // Equal texts are stored once, at their first position: so the user's files are read first and moved to the
  // end.
  for (const std::string& path : options.paths) reader.path(path);
  const size_t given = out.texts.size();
  if (options.site) reader.site(kSiteRules);
  const size_t with_site = out.texts.size();
  if (options.library)
    for (const rules::LibraryFile& file : rules::library())
      reader.add(fmt::format("library:{}", file.name), std::string(file.text));
  out.library = out.texts.size() - with_site;
  out.given = out.texts.size() - given;
  const auto at = [&](size_t n) { return out.texts.begin() + static_cast<std::ptrdiff_t>(n); };
  std::reverse(at(0), out.texts.end());
  std::reverse(at(0), at(out.library));
  std::reverse(at(out.library), at(out.given));
  std::reverse(at(out.given), out.texts.end());
  return out;
}

LoadedRules load_rules(const RuleOptions& options, std::function<bool()> stop) {
  LoadedRules out;
  out.files = read_rule_files(options);
  auto set =
      rules::Ruleset::load(out.files.texts, {.proven_files = out.files.library, .stop = std::move(stop)});
  if (!set)
    out.errors = std::move(set.error());
  else if (out.files.errors.empty())
    out.set = std::move(*set);
  return out;
}

std::shared_ptr<rules::Ruleset> rules_or_library(const RuleOptions& options, std::function<bool()> stop,
                                                 std::vector<Error>& errors) {
  LoadedRules chosen = load_rules(options, std::move(stop));
  if (chosen.set) return chosen.set;
  errors.insert(errors.end(), chosen.files.errors.begin(), chosen.files.errors.end());
  if (!chosen.errors.empty()) {
    const rules::RuleError& e = chosen.errors[0];
    errors.push_back({ErrorCode::kInvalid,
                      fmt::format("{}:{}: {}; the rules there are not used (culprit rules check tells all)",
                                  e.file, e.line, e.what)});
  }
  return load_rules({{}, options.library, false}).set;
}

std::vector<OpenRule> open_rules(const rules::Ruleset& set) {
  std::vector<OpenRule> out;
  const std::span<const rules::OpenText> all = set.left_open();
  for (size_t i = 0; i < all.size();) {
    std::vector<std::string> keys;
    const rules::OpenText& first = all[i];
    for (; i < all.size() && all[i].rule == first.rule; ++i)
      if (std::ranges::find(keys, all[i].key) == keys.end()) keys.push_back(all[i].key);
    out.push_back(
        {first.error.file,
         fmt::format("rule {} does not run: {} in its {}; `culprit rules check` tells what to write",
                     first.rule, rules::kFillIn, fmt::join(keys, ", "))});
  }
  return out;
}

std::string first_error(const LoadedRules& loaded) {
  if (!loaded.files.errors.empty()) return loaded.files.errors[0].text;
  const rules::RuleError& e = loaded.errors[0];
  const size_t more = loaded.errors.size() - 1;
  return fmt::format("{}:{}: {}{}", e.file, e.line, e.what,
                     more > 0 ? fmt::format(" ({} more: culpritd --check tells all)", more) : "");
}

}  // namespace culprit::app
