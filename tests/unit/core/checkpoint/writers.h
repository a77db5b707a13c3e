// Small checkpoints of every format, as their libraries write them, and a folder in memory that holds them.
#pragma once

#include <zlib.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "core/checkpoint/check.h"

namespace culprit::checkpoint::writers {

using namespace std::string_literals;

constexpr TimeNs kWritten = 1'700'000'000 * kNsPerSecond;
constexpr TimeNs kLater = kWritten + 3600 * kNsPerSecond;

// Files by path. A folder is there if something is in it.
class Disk : public ByteSource {
 public:
  struct File {
    std::string bytes;
    TimeNs modified_ns = kWritten;
    std::string target;  // of a link
  };
  std::map<std::string, File> files;
  size_t reads = 0;

  void put(const std::string& path, std::string bytes) { files[path] = {std::move(bytes), kWritten, ""}; }
  void add(const std::string& folder, const std::map<std::string, std::string>& content) {
    for (const auto& [path, bytes] : content) put(join(folder, path), bytes);
  }
  Tree tree() const {
    std::map<std::string, Entry> out;
    for (const auto& [path, file] : files) {
      out[path] = {path, file.bytes.size(), file.modified_ns,
                   file.target.empty() ? EntryKind::kFile : EntryKind::kLink, file.target};
      for (std::string above(folder_of(path)); !above.empty(); above = std::string(folder_of(above)))
        out.try_emplace(above, Entry{above, 0, kWritten, EntryKind::kFolder});
    }
    std::vector<Entry> entries;
    for (auto& [path, entry] : out) entries.push_back(std::move(entry));
    return Tree(std::move(entries));
  }
  Result<size_t> read_at(const std::string& path, char* out, size_t size, uint64_t offset) override {
    ++reads;
    const auto at = files.find(path);
    if (at == files.end() || !at->second.target.empty()) return fail(ErrorCode::kIo, "cannot be opened");
    const std::string& bytes = at->second.bytes;
    if (offset >= bytes.size()) return size_t{0};
    const size_t n = std::min<uint64_t>(size, bytes.size() - offset);
    bytes.copy(out, n, offset);
    return n;
  }
};

inline std::string data(size_t n, uint32_t seed) {
  std::string out;
  for (size_t i = 0; i < n; ++i) out += static_cast<char>((seed = seed * 1664525 + 1013904223) >> 24);
  return out;
}

// ---- torch.save

struct ZipForm {
  bool descriptors = true;  // as torch writes; false: sizes in the header, as Python's zipfile does
  bool checksums = true;
};

inline std::string zip(const std::vector<std::pair<std::string, std::string>>& records, ZipForm form = {}) {
  std::string out, directory;
  for (const auto& [name, bytes] : records) {
    const auto crc =
        form.checksums
            ? static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()))
            : 0;
    const auto size = static_cast<uint32_t>(bytes.size());
    const auto at = static_cast<uint32_t>(out.size());
    const auto common = [&](std::string& to, bool central) {
      put<uint16_t>(to, 0);
      if (central) put<uint16_t>(to, 0);
      put<uint16_t>(to, form.descriptors ? 0x0808 : 0);
      put<uint16_t>(to, 0);
      put<uint32_t>(to, 0);
      const bool later = form.descriptors && !central;
      put<uint32_t>(to, later ? 0 : crc);
      put<uint32_t>(to, later ? 0 : size);
      put<uint32_t>(to, later ? 0 : size);
      put<uint16_t>(to, static_cast<uint16_t>(name.size()));
    };
    put<uint32_t>(out, 0x04034b50);
    common(out, false);
    const size_t pad = (64 - (out.size() + 2 + name.size() + 4) % 64) % 64;
    put<uint16_t>(out, static_cast<uint16_t>(pad + 4));
    out += name + "FB"s;
    put<uint16_t>(out, static_cast<uint16_t>(pad));
    out += std::string(pad, 'Z') + bytes;
    if (form.descriptors) {
      put<uint32_t>(out, 0x08074b50);
      put<uint32_t>(out, crc);
      put<uint32_t>(out, size);
      put<uint32_t>(out, size);
    }
    put<uint32_t>(directory, 0x02014b50);
    common(directory, true);
    directory += std::string(12, '\0');
    put<uint32_t>(directory, at);
    directory += name;
  }
  const auto start = static_cast<uint32_t>(out.size());
  out += directory;
  put<uint32_t>(out, 0x06054b50);
  put<uint32_t>(out, 0);
  put<uint16_t>(out, static_cast<uint16_t>(records.size()));
  put<uint16_t>(out, static_cast<uint16_t>(records.size()));
  put<uint32_t>(out, static_cast<uint32_t>(directory.size()));
  put<uint32_t>(out, start);
  put<uint16_t>(out, 0);
  return out;
}

inline std::string torch_zip(uint32_t seed = 1, size_t n = 400, ZipForm form = {}) {
  return zip({{"archive/data.pkl", "\x80\x02}q\x00."s},
              {"archive/data/0", data(n, seed)},
              {"archive/data/1", data(n / 3, seed + 1)},
              {"archive/version", "3\n"s}},
             form);
}

// ---- pickles

inline std::string text(const std::string& s) {
  std::string out = "X";
  put<uint32_t>(out, static_cast<uint32_t>(s.size()));
  return out + s;
}
inline std::string number(uint32_t n) {
  std::string out = "J";
  put<uint32_t>(out, n);
  return out;
}

// As torch.save(…, _use_new_zipfile_serialization=False) writes.
inline std::string torch_legacy(uint32_t elements = 50) {
  std::string out =
      "\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19."s + "\x80\x02M\xe9\x03."s + "\x80\x02}q\x00."s;
  const auto tensor = [&](const std::string& cls, const std::string& key, uint32_t n) {
    return "ctorch._utils\n_rebuild_tensor_v2\n(("s + text("storage") + "ctorch\n" + cls + "\n" + text(key) +
           text("cpu") + number(n) + "NtQK\x00)tR"s;
  };
  out += "\x80\x02}("s + text("a") + tensor("FloatStorage", "11", elements) + text("b") +
         tensor("LongStorage", "22", 7) + "u."s;
  out += "\x80\x02]("s + text("11") + text("22") + "e."s;
  put<uint64_t>(out, elements);
  out += data(4 * elements, 3);
  put<uint64_t>(out, 7);
  return out + data(56, 4);
}

// ---- torch.distributed.checkpoint

struct DcpShard {
  std::string name;
  std::vector<std::string> pieces;
};

inline std::string dcp_index(const std::vector<DcpShard>& shards, const std::string& extra = "") {
  const auto cls = [](const std::string& name) {
    return "ctorch.distributed.checkpoint." + name + "\n)\x81";
  };
  const auto at = [](const std::string& module, const std::string& name) { return module + "\n" + name; };
  std::string storage = "}(";
  for (const DcpShard& shard : shards) {
    uint32_t offset = 0;
    for (size_t i = 0; i < shard.pieces.size(); ++i) {
      storage += cls(at("metadata", "MetadataIndex")) + "}(" + text("fqn") +
                 text(shard.name + std::to_string(i)) + text("offset") + "ctorch\nSize\nK\x00\x85\x85R"s +
                 text("index") + "Nub";
      storage += cls(at("filesystem", "_StorageInfo")) + "}(" + text("relative_path") + text(shard.name) +
                 text("offset") + number(offset) + text("length") +
                 number(static_cast<uint32_t>(shard.pieces[i].size())) + "ub";
      offset += static_cast<uint32_t>(shard.pieces[i].size());
    }
  }
  storage += "u";
  const std::string properties =
      cls(at("metadata", "TensorProperties")) + "}(" + text("dtype") + "ctorch\nfloat32\n" + text("layout") +
      "ctorch.serialization\n_get_layout\n" + text("torch.strided") + "\x85R" + "ub";
  return "\x80\x02"s + cls(at("metadata", "Metadata")) + "}(" + text("state_dict_metadata") + "}" +
         text("w") + properties + "s" + extra + text("storage_data") + storage + "ub.";
}

inline std::map<std::string, std::string> dcp(size_t ranks = 2) {
  std::map<std::string, std::string> out;
  std::vector<DcpShard> shards;
  for (size_t r = 0; r < ranks; ++r) {
    const auto seed = static_cast<uint32_t>(r);
    shards.push_back(
        {"__" + std::to_string(r) + "_0.distcp", {torch_zip(10 + seed), torch_zip(20 + seed, 90)}});
    out[shards.back().name] = shards.back().pieces[0] + shards.back().pieces[1];
  }
  out[".metadata"] = dcp_index(shards);
  return out;
}

// ---- others

inline std::string safetensors(size_t n = 256, uint32_t seed = 5) {
  std::string header = R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[)" +
                       std::to_string(n / 4) + R"(],"data_offsets":[0,)" + std::to_string(n) +
                       R"(]},"b":{"dtype":"I64","shape":[2,1],"data_offsets":[)" + std::to_string(n) + "," +
                       std::to_string(n + 16) + "]}}";
  header += std::string((8 - header.size() % 8) % 8, ' ');
  std::string out;
  put<uint64_t>(out, header.size());
  return out + header + data(n + 16, seed);
}

inline std::map<std::string, std::string> sharded_safetensors() {
  return {{"model.safetensors.index.json",
           R"({"metadata":{"total_size":544},"weight_map":{"a":"model-00001-of-00002.safetensors",)"
           R"("b":"model-00002-of-00002.safetensors"}})"},
          {"model-00001-of-00002.safetensors", safetensors(256, 6)},
          {"model-00002-of-00002.safetensors", safetensors(256, 7)}};
}

inline std::map<std::string, std::string> megatron_dist() {
  auto out = dcp();
  out["common.pt"] = torch_zip(30);
  out["metadata.json"] =
      R"({"sharded_backend":"torch_dist","sharded_backend_version":1,"common_backend":"torch"})";
  return out;
}

inline std::map<std::string, std::string> megatron_ranks(size_t ranks = 4) {
  std::map<std::string, std::string> out;
  for (size_t r = 0; r < ranks; ++r)
    out["mp_rank_0" + std::to_string(r) + "/model_optim_rng.pt"] = torch_zip(40 + static_cast<uint32_t>(r));
  return out;
}

inline std::map<std::string, std::string> deepspeed(size_t ranks = 4) {
  std::map<std::string, std::string> out{{"mp_rank_00_model_states.pt", torch_zip(50)}};
  for (size_t r = 0; r < ranks; ++r)
    out["bf16_zero_pp_rank_" + std::to_string(r) + "_mp_rank_00_optim_states.pt"] =
        torch_zip(51 + static_cast<uint32_t>(r));
  return out;
}

inline std::map<std::string, std::string> trainer(int64_t step) {
  return {{"trainer_state.json", R"({"global_step": )" + std::to_string(step) +
                                     R"(, "log_history": [{"loss": NaN, "why": "NaN \" Infinity"}]})"},
          {"config.json", "{}"},
          {"model.safetensors", safetensors()},
          {"optimizer.pt", torch_zip(60)},
          {"scheduler.pt", torch_zip(61, 30)},
          {"rng_state.pth", torch_zip(62, 30)},
          {"training_args.bin", torch_zip(63, 30)}};
}

inline std::map<std::string, std::string> nemo() {
  std::map<std::string, std::string> out{{"context/model.yaml", "a: 1\n"}};
  for (const auto& [path, bytes] : megatron_dist()) out["weights/" + path] = bytes;
  return out;
}

// OCDBT: magic, length, content, CRC-32C.
inline std::string ocdbt_manifest() {
  std::string out = "\x0c\xdb\x3a\x2a"s;
  const std::string body = data(80, 70);
  put<uint64_t>(out, 4 + 8 + body.size() + 4);
  out += body;
  uint32_t crc = ~0u;
  for (const char c : out) {
    crc ^= static_cast<uint8_t>(c);
    for (int k = 0; k < 8; ++k) crc = crc & 1 ? 0x82f63b78u ^ (crc >> 1) : crc >> 1;
  }
  put<uint32_t>(out, ~crc);
  return out;
}

inline std::map<std::string, std::string> orbax() {
  return {{"_CHECKPOINT_METADATA", R"({"item_handlers": {}, "commit_timestamp_nsecs": 1700000000})"},
          {"default/_METADATA", R"({"tree_metadata": {}, "use_ocdbt": true})"},
          {"default/manifest.ocdbt", ocdbt_manifest()},
          {"default/d/0f1e2d", data(500, 71)},
          {"default/ocdbt.process_0/d/3c4b5a", data(500, 72)},
          {"default/ocdbt.process_0/manifest.ocdbt", ocdbt_manifest()}};
}

inline std::map<std::string, std::string> snapshot() {
  return {
      {".snapshot_metadata",
       "version: 0.1.0\nworld_size: 1\nmanifest:\n  0/model/w:\n    type: Tensor\n    location: 0/model/w\n"
       "    serializer: buffer_protocol\n    dtype: torch.uint8\n    shape:\n    - 300\n    replicated: "
       "false\n"
       "    byte_range:\n    - 0\n    - 300\n  0/model/v:\n    type: Tensor\n    location: batched/x\n"
       "    serializer: buffer_protocol\n    dtype: torch.uint8\n    shape:\n    - 100\n    replicated: "
       "false\n"
       "    byte_range:\n    - 100\n    - 200\n"},
      {"0/model/w", data(300, 80)},
      {"batched/x", data(200, 81)}};
}

}  // namespace culprit::checkpoint::writers
