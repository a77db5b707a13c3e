#include "core/rules/library_tables.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/check.h"
#include "base/hash.h"
#include "core/rules/library.h"

namespace culprit::rules {
namespace {

// Layout: a Head, its rows sorted by hash, the records, the database. Numbers have native byte order, since
// programs embed the bytes for the machine they are built for.
struct Head {
  uint32_t rows = 0, database = 0;  // number; offset from the start
  uint64_t literal_hash = 0;
};
struct Row {
  uint64_t hash = 0;    // of the regex
  uint64_t offset = 0;  // of its record, from the start
};

void put(std::string& out, size_t number) {
  const auto value = static_cast<uint32_t>(number);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put(std::string& out, std::string_view text) {
  put(out, text.size());
  out += text;
}

void put(std::string& out, const std::vector<std::string>& texts) {
  put(out, texts.size());
  for (const std::string& text : texts) put(out, text);
}

template <typename T>
T value_at(std::string_view bytes, size_t at) {
  T out;
  CULPRIT_CHECK(at + sizeof out <= bytes.size());
  std::memcpy(&out, bytes.data() + at, sizeof out);
  return out;
}

// Reads a record.
class RecordReader {
 public:
  RecordReader(std::string_view bytes, size_t at) : bytes_(bytes), at_(at) {}

  uint32_t number() {
    const auto out = value_at<uint32_t>(bytes_, at_);
    at_ += sizeof out;
    return out;
  }
  std::string_view text() {
    const size_t size = number();
    const std::string_view out = bytes_.substr(at_, size);
    at_ += size;
    return out;
  }
  std::vector<std::string> texts() {
    std::vector<std::string> out(number());
    for (std::string& one : out) one = text();
    return out;
  }

 private:
  std::string_view bytes_;
  size_t at_;
};

}  // namespace

Result<std::string> make_tables(const Ruleset& shipped) {
  std::map<uint64_t, std::string> records;
  for (const Rule& rule : shipped.rules())
    for (const auto* patterns : {&rule.any, &rule.except, &rule.reads})
      for (const Pattern& pattern : *patterns) {
        const auto wording = analyse(pattern.regex);
        CULPRIT_CHECK(wording.has_value());
        std::string& record = records[hash64(pattern.regex)];
        record.clear();
        put(record, pattern.regex);
        put(record, wording->holes);
        put(record, wording->literals);
        put(record, wording->also.size());
        for (const auto& set : wording->also) put(record, set);
      }
  const auto database = shipped.matcher()->serialise();
  if (!database) return fail(database.error().code, database.error().text);
  std::string rows, data;
  const size_t first = sizeof(Head) + records.size() * sizeof(Row);
  for (const auto& [hash, record] : records) {
    const Row row{hash, first + data.size()};
    rows.append(reinterpret_cast<const char*>(&row), sizeof row);
    data += record;
  }
  const Head head{static_cast<uint32_t>(records.size()), static_cast<uint32_t>(first + data.size()),
                  shipped.matcher()->literal_hash()};
  return std::string(reinterpret_cast<const char*>(&head), sizeof head) + rows + data + *database;
}

std::optional<Wording> library_wording(std::string_view regex) {
  const std::string_view bytes = library_tables();
  if (bytes.empty()) return std::nullopt;
  const uint64_t hash = hash64(regex);
  const auto row = [&](size_t i) { return value_at<Row>(bytes, sizeof(Head) + i * sizeof(Row)); };
  size_t low = 0, high = value_at<Head>(bytes, 0).rows;
  const size_t rows = high;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    row(middle).hash < hash ? low = middle + 1 : high = middle;
  }
  if (low == rows || row(low).hash != hash) return std::nullopt;
  RecordReader record(bytes, row(low).offset);
  if (record.text() != regex) return std::nullopt;
  Wording out;
  out.holes = record.texts();
  out.literals = record.texts();
  out.also.resize(record.number());
  for (auto& set : out.also) set = record.texts();
  return out;
}

std::string_view library_database(uint64_t literal_hash) {
  const std::string_view bytes = library_tables();
  if (bytes.empty()) return {};
  const auto head = value_at<Head>(bytes, 0);
  return head.literal_hash == literal_hash ? bytes.substr(head.database) : std::string_view();
}

}  // namespace culprit::rules
