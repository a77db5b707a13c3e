#include "app/checkpoint/memory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/limits.h"
#include "io/files.h"
#include "model/json_text.h"
#include "model/json_writer.h"

namespace culprit::app {
namespace {

constexpr const char* kSchema = "culprit.checkpoint-memory/1";

Result<std::string> read_all(const std::string& path) {
  auto file = io::real_files().open(path, io::OpenFor::kRead);
  if (!file) return tl::unexpected(file.error());
  const auto status = (*file)->status();
  if (!status) return tl::unexpected(status.error());
  if (status->size > limits::kCheckpointJsonBytes) return fail(ErrorCode::kLimit, path + ": is too large");
  std::string text(status->size, '\0');
  const auto got = (*file)->read_at(text.data(), text.size(), 0);
  if (!got) return tl::unexpected(got.error());
  text.resize(*got);
  return text;
}

}  // namespace

CheckpointMemory CheckpointMemory::load(const std::string& state_folder, const std::string& root) {
  CheckpointMemory out;
  out.folder_ = state_folder;
  out.root_ = root;
  if (state_folder.empty()) return out;
  out.path_ = fmt::format("{}/{}.json", state_folder, hex64(hash64(root)));
  const auto text = read_all(out.path_);
  if (!text) return out;
  const auto json = parse_json(*text);
  if (!json.is_object() || json.value("schema", "") != kSchema || json.value("root", "") != root) return out;
  if (const auto files = json.find("files"); files != json.end() && files->is_object())
    for (const auto& [path, of] : files->items())
      if (of.is_array() && of.size() == 3 && of[0].is_number_unsigned() && of[1].is_number_integer() &&
          of[2].is_number_unsigned())
        out.digests_[path] = {of[0].get<uint64_t>(), of[1].get<TimeNs>(), of[2].get<uint64_t>()};
  if (const auto whole = json.find("whole"); whole != json.end() && whole->is_object())
    for (const auto& [series, n] : whole->items())
      if (n.is_number_unsigned()) out.whole_[series] = n.get<size_t>();
  return out;
}

size_t CheckpointMemory::whole(const std::string& series) const {
  const auto at = whole_.find(series);
  return at == whole_.end() ? 0 : at->second;
}

Status CheckpointMemory::save(const checkpoint::Tree* tree) {
  if (path_.empty()) return {};
  JsonWriter w;
  w.object([&] {
    w.field("schema", kSchema);
    w.field("root", root_);
    w.member("whole", [&] {
      w.object([&] {
        for (const auto& [series, n] : whole_) w.field(series, n);
      });
    });
    w.member("files", [&] {
      w.object([&] {
        for (const auto& [path, digest] : digests_)
          if (!tree || tree->find(path) || tree->find(checkpoint::folder_of(path)))
            w.member(path, [&] {
              w.write_raw(fmt::format("[{},{},{}]", digest.size, digest.modified_ns, digest.hash));
            });
      });
    });
  });
  io::Files& files = io::real_files();
  if (Status made = files.make_folder(folder_); !made) return made;
  const std::string temporary = fmt::format("{}.{}.tmp", path_, ::getpid());
  (void)files.remove(temporary);
  auto file = files.open(temporary, io::OpenFor::kCreate);
  if (!file) return tl::unexpected(file.error());
  if (Status written = (*file)->append(w.finish()); !written) return written;
  return files.rename(temporary, path_);
}

}  // namespace culprit::app
