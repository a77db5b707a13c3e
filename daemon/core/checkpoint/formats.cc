// The required content of each training framework's folder, beyond the files' own metadata.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/bytes.h"
#include "base/limits.h"
#include "base/text.h"
#include "core/checkpoint/checker.h"

namespace culprit::checkpoint {
namespace {

constexpr std::string_view kOcdbtBytes = "\x0c\xdb\x3a\x2a";
constexpr uint64_t kOcdbtHead = 12, kOcdbtSum = 4;

uint32_t crc32c(std::string_view bytes) {
  static const std::array<uint32_t, 256> kTable = [] {
    std::array<uint32_t, 256> out{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t c = i;
      for (int k = 0; k < 8; ++k) c = c & 1 ? 0x82f63b78u ^ (c >> 1) : c >> 1;
      out[i] = c;
    }
    return out;
  }();
  uint32_t crc = ~0u;
  for (const char c : bytes) crc = kTable[(crc ^ static_cast<uint8_t>(c)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

bool starts(const Entry* entry, std::string_view prefix) { return name_of(entry->path).starts_with(prefix); }

}  // namespace

void Checker::check_json(const Entry& file) {
  if (file.size == 0) return report(Fault::kShort, file.path, "is empty");
  if (file.size > limits::kCheckpointJsonBytes) return;
  const auto text = text_of(file, limits::kCheckpointJsonBytes);
  if (!text) return;
  std::optional<int64_t> step;
  const bool read = scan_json(*text, [&](const JsonPath& path, const JsonScalar& value) {
    if (path.size() == 1 && path[0] == "global_step" && value.kind == JsonScalar::Kind::kNumber)
      step = value.number;
  });
  if (!read) return report(Fault::kDamaged, file.path, "is no JSON: cut or damaged");
  if (step && file.path == join(found.path, "trainer_state.json")) out.step = step;
}

void Checker::check_integrity(const Entry& manifest) {
  const auto text = text_of(manifest, limits::kCheckpointJsonBytes);
  if (!text) return;
  const std::string folder(folder_of(manifest.path));
  scan_json(*text, [&](const JsonPath& path, const JsonScalar& value) {
    if (path.size() != 2 || path[0] != "files" || value.kind != JsonScalar::Kind::kText) return;
    if (value.text.size() == 64 && path[1].find("..") == path[1].npos)
      sha256_[join(folder, path[1])] = std::string(value.text);
  });
  for (const auto& [file, sum] : sha256_) need(file, "a file of integrity.json is missing");
}

void Checker::check_format() {
  switch (found.format) {
    case Format::kMegatron:
      return check_megatron(found.path);
    case Format::kDeepSpeed:
      return check_deepspeed(found.path);
    case Format::kUniversal:
      return check_universal();
    case Format::kTrainer:
      return check_trainer();
    case Format::kLightning:
      return check_lightning();
    case Format::kOrbax:
      return check_orbax();
    case Format::kTorchSnapshot:
      return check_snapshot();
    default:
      return;
  }
}

void Checker::check_megatron(const std::string& folder) {
  std::vector<const Entry*> ranks;
  bool dist = false, zarr = false;
  for (const Entry* entry : tree.in(folder)) {
    if (entry->kind == EntryKind::kFolder && starts(entry, "mp_rank_")) ranks.push_back(entry);
    dist |= entry->path.ends_with(".distcp") || name_of(entry->path) == ".metadata" ||
            name_of(entry->path) == "common.pt" || name_of(entry->path) == "metadata.json";
    zarr |= entry->kind == EntryKind::kFolder && tree.has_file(join(entry->path, ".zarray"));
  }
  if (!ranks.empty()) {
    // Each rank of the model has the same files.
    std::set<std::string> names;
    for (const Entry* rank : ranks)
      for (const Entry* file : tree.in(rank->path)) names.emplace(name_of(file->path));
    if (names.empty()) report(Fault::kMissing, folder, "its ranks have no files");
    for (const Entry* rank : ranks)
      for (const std::string& name : names) need(join(rank->path, name), "is missing; other ranks have it");
    return;
  }
  if (!dist) return report(Fault::kMissing, folder, "has neither ranks (mp_rank_*) nor shards (.metadata)");
  need(join(folder, "metadata.json"));
  // Only some back ends write this file; the content says whether this is one of them.
  bool common = !tree.has_file(join(folder, "metadata.json"));
  if (const Entry* file = tree.find(join(folder, "metadata.json")); file && file->kind == EntryKind::kFile)
    within_budget(*file, [&] {
      if (const auto text = text_of(*file, limits::kCheckpointJsonBytes))
        scan_json(*text, [&](const JsonPath& path, const JsonScalar& value) {
          common |= path.size() == 1 && path[0] == "common_backend" && value.text == "torch";
        });
    });
  if (common) need(join(folder, "common.pt"));
  if (!zarr) need(join(folder, ".metadata"), "the index is missing");
}

void Checker::check_deepspeed(const std::string& folder) {
  bool model = false;
  for (const Entry* entry : tree.in(folder)) model |= entry->path.ends_with("model_states.pt");
  if (!model) report(Fault::kMissing, folder, "has no file *_model_states.pt");
}

void Checker::check_universal() {
  const std::string zero = join(found.path, "zero");
  size_t parameters = 0;
  for (const Entry* entry : tree.in(zero)) {
    if (entry->kind != EntryKind::kFolder) continue;
    ++parameters;
    need(join(entry->path, "fp32.pt"));
  }
  if (parameters == 0) report(Fault::kMissing, zero, "has no parameters");
}

void Checker::check_trainer() {
  const auto in = [&](std::string_view name) { return join(found.path, name); };
  bool model = false, sharded = false, rng = false;
  std::string nested;  // DeepSpeed's folder
  for (const Entry* entry : tree.in(found.path)) {
    const std::string_view name = name_of(entry->path);
    model |= name == "model.safetensors" || name == "pytorch_model.bin" || name.ends_with(".index.json") ||
             name.starts_with("adapter_model.") || name.starts_with("tf_model") ||
             name.starts_with("flax_model");
    rng |= name.starts_with("rng_state");
    if (entry->kind == EntryKind::kFolder && name.starts_with("global_step")) nested = entry->path;
    sharded |= entry->kind == EntryKind::kFolder && tree.has_file(join(entry->path, ".metadata"));
  }
  need(in("trainer_state.json"));
  if (!nested.empty()) check_deepspeed(nested);
  if (const Entry* latest = tree.find(in("latest")); latest && latest->kind == EntryKind::kFile)
    if (const auto text = text_of(*latest, limits::kCheckpointPointerBytes))
      if (const Entry* named = tree.find(in(trim(*text))); !named || named->kind != EntryKind::kFolder)
        report(Fault::kMissing, in(to_terminal(trim(*text))), "is missing, and the file latest names it");
  if (!model && !sharded && nested.empty()) report(Fault::kMissing, found.path, "has no weights of a model");
  // A checkpoint of weights alone has none of these; an incomplete one has some.
  const bool optimizer =
      tree.has_file(in("optimizer.pt")) || tree.has_file(in("optimizer.bin")) || sharded || !nested.empty();
  const bool scheduler = tree.has_file(in("scheduler.pt"));
  if (!optimizer && (scheduler || rng)) report(Fault::kMissing, in("optimizer.pt"), "is missing");
  if (tree.has_file(in("optimizer.pt")) && !scheduler)
    report(Fault::kMissing, in("scheduler.pt"), "is missing");
  if ((optimizer || scheduler) && !rng) report(Fault::kMissing, in("rng_state.pth"), "is missing");
}

void Checker::check_lightning() {
  // The marker is next to the file, under the file's name with or without its extension.
  const std::string_view name = name_of(found.path);
  std::string_view stem = name;
  for (const std::string_view end : {".ckpt", "-EMA"})
    if (stem.ends_with(end)) stem.remove_suffix(end.size());
  for (const std::string_view base : {name, stem})
    for (const std::string_view end : {"-unfinished", ".unfinished", ".incomplete"}) {
      const std::string marker = join(folder_of(found.path), std::string(base) + std::string(end));
      if (!found.path.empty() && tree.find(marker))
        return report(Fault::kUnfinished, marker, "marks a write that did not finish");
    }
  if (found.is_file) return;
  const std::string weights = join(found.path, "weights");
  if (tree.find(weights)) return check_megatron(weights);
  if (tree.has_file(join(found.path, "common.pt")) || tree.has_file(join(found.path, "metadata.json")))
    return check_megatron(found.path);
  if (const Entry* deepspeed = tree.find(join(found.path, "checkpoint")))
    return check_deepspeed(deepspeed->path);
  if (!tree.has_file(join(found.path, ".metadata")) && !has_below(".distcp") && !has_below(".pt"))
    report(Fault::kMissing, found.path, "has no weights");
}

void Checker::check_orbax() {
  if (name_of(found.path).find("orbax-checkpoint-tmp") != std::string::npos)
    return report(Fault::kUnfinished, found.path, "has the name of a write that did not finish");
  const auto in = [&](std::string_view name) { return join(found.path, name); };
  // Content that the folder must have if the other checkpoints of the series have it.
  for (const std::string_view name : {"commit_success.txt", "_CHECKPOINT_METADATA"}) {
    if (tree.has_file(in(name)) || found.path.empty()) continue;
    for (const Entry* neighbour : tree.in(folder_of(found.path)))
      if (neighbour->kind == EntryKind::kFolder && neighbour->path != found.path &&
          step_of(name_of(neighbour->path)) && tree.has_file(join(neighbour->path, name)))
        return report(Fault::kUnfinished, in(name),
                      fmt::format("is missing; {} has it", name_of(neighbour->path)));
  }
  if (const Entry* file = tree.find(in("_CHECKPOINT_METADATA")); file && file->kind == EntryKind::kFile)
    within_budget(*file, [&] { check_orbax_time(*file); });
  for (const Entry& entry : tree.below(found.path)) {
    if (entry.kind != EntryKind::kFile) continue;
    const std::string_view name = name_of(entry.path);
    if (name == "manifest.ocdbt") within_budget(entry, [&] { check_ocdbt(entry); });
    if (name == "_METADATA" || name == ".zarray") within_budget(entry, [&] { check_orbax_json(entry); });
  }
}

void Checker::check_orbax_time(const Entry& file) {
  const auto text = text_of(file, limits::kCheckpointJsonBytes);
  if (!text) return;
  bool committed = true;
  const bool read = scan_json(*text, [&](const JsonPath& path, const JsonScalar& value) {
    if (path.size() == 1 && path[0] == "commit_timestamp_nsecs")
      committed = value.kind == JsonScalar::Kind::kNumber;
  });
  if (!read) report(text->empty() ? Fault::kShort : Fault::kDamaged, file.path, "is no JSON: cut or damaged");
  if (!committed) report(Fault::kUnfinished, file.path, "has no time of a commit");
}

void Checker::check_orbax_json(const Entry& file) {
  const auto text = text_of(file, limits::kCheckpointJsonBytes);
  if (!text) return;
  bool ocdbt = false;
  if (!scan_json(*text, [&](const JsonPath& path, const JsonScalar& value) {
        ocdbt |= path.size() == 1 && path[0] == "use_ocdbt" && value.number == 1;
      }))
    report(text->empty() ? Fault::kShort : Fault::kDamaged, file.path, "is no JSON: cut or damaged");
  if (ocdbt) need(join(folder_of(file.path), "manifest.ocdbt"), "the index is missing");
}

void Checker::check_ocdbt(const Entry& manifest) {
  const auto text = text_of(manifest, limits::kCheckpointJsonBytes);
  if (!text) return;
  if (text->size() < kOcdbtHead + kOcdbtSum)
    return report(Fault::kShort, manifest.path, text->empty() ? "is empty" : "is cut");
  if (!text->starts_with(kOcdbtBytes))
    return report(Fault::kDamaged, manifest.path, "does not begin as such an index");
  const auto length = get_at<uint64_t>(*text, 4);
  if (length > text->size()) return report(Fault::kShort, manifest.path, "is cut");
  const std::string_view body = std::string_view(*text).substr(0, text->size() - kOcdbtSum);
  if (length < text->size() || crc32c(body) != get_at<uint32_t>(*text, body.size()))
    report(Fault::kDamaged, manifest.path, "its bytes do not have its checksum");
}

}  // namespace culprit::checkpoint
