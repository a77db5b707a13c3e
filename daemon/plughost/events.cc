#include "plughost/events.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/limits.h"

namespace culprit::plughost {
namespace {

// Head of each record. The texts of job, host and source follow, then the body.
struct RecordHead {
  uint32_t bytes = 0;  // of the whole record
  uint16_t kind = 0, version = 1;
  int64_t time_ns = 0, rank = 0, device = 0;
};
static_assert(sizeof(RecordHead) == 32);

constexpr uint16_t kKinds = CULPRIT_EVENT_COUNTER;

}  // namespace

// ---- writing

// Writes into a record of known size, because appending to a growing string costs more than the writes.
class EventWriter::Record {
 public:
  // `body_bytes`: after the texts of the head.
  Record(EventWriter& writer, const EventHead& head, size_t body_bytes) : writer_(writer) {
    const std::string_view job = head.job.substr(0, limits::kNameBytes);
    const std::string_view host = head.host.substr(0, limits::kNameBytes);
    const std::string_view source = head.source.substr(0, limits::kPathBytes);
    const size_t size =
        sizeof(RecordHead) + text_bytes(job) + text_bytes(host) + text_bytes(source) + body_bytes;
    const size_t at = writer.bytes_.size();
    writer.bytes_.resize(at + size);
    ++writer.count_;
    at_ = writer.bytes_.data() + at;
    RecordHead record;
    record.bytes = static_cast<uint32_t>(size);
    record.kind = static_cast<uint16_t>(head.kind);
    record.time_ns = head.time_ns;
    record.rank = head.rank;
    record.device = head.device;
    number(record);
    text(job);
    text(host);
    text(source);
  }

  // The record is as long as its head says.
  ~Record() { CULPRIT_CHECK(at_ == writer_.bytes_.data() + writer_.bytes_.size()); }
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;

  static size_t text_bytes(std::string_view text) { return sizeof(uint32_t) + text.size() + 1; }

  template <class T>
  void number(T value) {
    std::memcpy(at_, &value, sizeof value);
    at_ += sizeof value;
  }
  void text(std::string_view text) {
    number(static_cast<uint32_t>(text.size()));
    text.copy(at_, text.size());
    at_ += text.size();
    *at_++ = '\0';
  }
  void texts(std::span<const std::string_view> texts, size_t bytes_max) {
    number(static_cast<uint32_t>(texts.size()));
    for (const std::string_view one : texts) text(one.substr(0, bytes_max));
  }

 private:
  EventWriter& writer_;
  char* at_;
};

namespace {

size_t texts_bytes(std::span<const std::string_view> texts, size_t bytes_max) {
  size_t bytes = sizeof(uint32_t);
  for (const std::string_view one : texts) bytes += sizeof(uint32_t) + std::min(one.size(), bytes_max) + 1;
  return bytes;
}

std::span<const std::string_view> first_of(std::span<const std::string_view> texts) {
  return texts.first(std::min(texts.size(), limits::kMessageTokens));
}

}  // namespace

void EventWriter::line(const EventHead& head, std::string_view text, std::string_view message_template,
                       std::span<const std::string_view> parameters, uint64_t line) {
  text = text.substr(0, limits::kLineBytes);
  message_template = message_template.substr(0, limits::kLineBytes);
  parameters = first_of(parameters);
  Record record(*this, head,
                sizeof line + Record::text_bytes(text) + Record::text_bytes(message_template) +
                    texts_bytes(parameters, limits::kMessageBytes));
  record.number(line);
  record.text(text);
  record.text(message_template);
  record.texts(parameters, limits::kMessageBytes);
}

void EventWriter::metric(const EventHead& head, std::string_view name, double value, int64_t step) {
  name = name.substr(0, limits::kMessageBytes);
  Record record(*this, head, sizeof value + sizeof step + Record::text_bytes(name));
  record.number(value);
  record.number(step);
  record.text(name);
}

void EventWriter::comm(const EventHead& head, const CommRecord& comm) {
  EventHead own = head;
  own.rank = comm.rank;
  own.device = comm.device == kCommUnknown ? CULPRIT_NONE : static_cast<int64_t>(comm.device);
  Record(*this, own, sizeof comm).number(comm);
}

void EventWriter::step(const EventHead& head, std::string_view phase, int64_t step, uint32_t state) {
  phase = phase.substr(0, limits::kNameBytes);
  Record record(*this, head, sizeof step + sizeof state + Record::text_bytes(phase));
  record.number(step);
  record.number(state);
  record.text(phase);
}

void EventWriter::stack(const EventHead& head, std::span<const StackThread> threads) {
  size_t bytes = sizeof(uint32_t), count = 0;
  for (; count < threads.size() && bytes <= limits::kPluginBatchBytes; ++count)
    bytes += Record::text_bytes(threads[count].name.substr(0, limits::kNameBytes)) +
             texts_bytes(first_of(threads[count].frames), limits::kNameBytes);
  Record record(*this, head, bytes);
  record.number(static_cast<uint32_t>(count));
  for (const StackThread& thread : threads.first(count)) {
    record.text(thread.name.substr(0, limits::kNameBytes));
    record.texts(first_of(thread.frames), limits::kNameBytes);
  }
}

void EventWriter::counter(const EventHead& head, std::string_view name, double value) {
  name = name.substr(0, limits::kMessageBytes);
  Record record(*this, head, sizeof value + Record::text_bytes(name));
  record.number(value);
  record.text(name);
}

bool EventWriter::is_full() const { return bytes_.size() >= limits::kPluginBatchBytes; }

std::string EventWriter::take() {
  count_ = 0;
  std::string out = std::exchange(bytes_, {});
  bytes_.reserve(out.size());  // the next batch is about as large
  return out;
}

size_t select_events(std::string_view bytes, uint64_t kinds, std::string* out) {
  size_t count = 0, run = 0, at = 0;  // run: start of the selected records before `at`
  const auto flush = [&] {
    if (out) out->append(bytes.substr(run, at - run));
  };
  while (bytes.size() - at >= sizeof(RecordHead)) {
    const auto size = get_at<uint32_t>(bytes, at);
    const auto kind = get_at<uint16_t>(bytes, at + offsetof(RecordHead, kind));
    if (size < sizeof(RecordHead) || size > bytes.size() - at) break;
    if (kind < 64 && (kinds & CULPRIT_BIT(kind)) != 0) {
      ++count;
      at += size;
    } else {
      flush();
      at += size;
      run = at;
    }
  }
  flush();
  return count;
}

// ---- reading

// Places the structs at stable addresses in one block. Each array pointer needs at least 5 bytes of the
// record, a culprit_thread with its pointer 9, the structs of an event a RecordHead; this bounds the block.
class EventReader::Decoder {
 public:
  static constexpr size_t kPerByte = 8;

  Decoder(std::string_view bytes, std::byte* arena) : rest_(bytes), next_(arena) {}

  // Null: malformed.
  const culprit_event* event() {
    if (rest_.size() < sizeof(RecordHead)) return nullptr;
    const auto head = get_at<RecordHead>(rest_, 0);
    if (head.bytes < sizeof(RecordHead) || head.bytes > rest_.size()) return nullptr;
    at_ = rest_.data() + sizeof(RecordHead);
    end_ = rest_.data() + head.bytes;
    rest_.remove_prefix(head.bytes);
    if (head.kind == 0 || head.kind > kKinds || head.version != 1) return nullptr;
    auto* out = make<culprit_event>();
    out->kind = head.kind;
    out->version = head.version;
    out->time_ns = head.time_ns;
    out->rank = head.rank;
    out->device = head.device;
    out->job = text();
    out->host = text();
    out->source = text();
    out->body = body(head.kind);
    return bad_ || at_ != end_ ? nullptr : out;
  }
  bool at_end() const { return rest_.empty(); }

 private:
  template <class T>
  T* make() {
    T* out = array<T>(1);
    *out = {};
    out->size = sizeof(T);
    return out;
  }
  template <class T>
  T* array(size_t count) {
    T* out = reinterpret_cast<T*>(next_);
    next_ += (count * sizeof(T) + 7) & ~size_t{7};
    return out;
  }
  template <class T>
  T get() {
    T value{};
    if (static_cast<size_t>(end_ - at_) < sizeof value) {
      bad_ = true;
      at_ = end_;
      return value;
    }
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  const char* text(uint64_t* size_out = nullptr) {
    const uint64_t size = get<uint32_t>();
    if (bad_ || static_cast<uint64_t>(end_ - at_) <= size || at_[size] != '\0') {
      bad_ = true;
      return "";
    }
    if (size_out) *size_out = size;
    return std::exchange(at_, at_ + size + 1);
  }
  // An array of texts; sets bad_ if fewer bytes are left than the texts need.
  const char* const* texts(uint64_t& count) {
    count = get<uint32_t>();
    if (count > static_cast<uint64_t>(end_ - at_) / 5) bad_ = true;
    if (bad_) count = 0;
    auto* out = array<const char*>(count);
    for (uint64_t i = 0; i < count; ++i) out[i] = text();
    return out;
  }

  const void* body(uint16_t kind) {
    switch (kind) {
      case CULPRIT_EVENT_LOG:
      case CULPRIT_EVENT_KERNEL:
        return line();
      case CULPRIT_EVENT_METRIC: {
        auto* out = make<culprit_metric>();
        out->value = get<double>();
        out->step = get<int64_t>();
        out->name = text();
        return out;
      }
      case CULPRIT_EVENT_COMM:
        return comm();
      case CULPRIT_EVENT_STEP: {
        auto* out = make<culprit_step>();
        out->step = get<int64_t>();
        out->state = get<uint32_t>();
        out->phase = text();
        return out;
      }
      case CULPRIT_EVENT_STACK:
        return stack();
      default: {
        auto* out = make<culprit_counter>();
        out->value = get<double>();
        out->name = text();
        return out;
      }
    }
  }

  const void* line() {
    auto* out = make<culprit_line>();
    out->line = get<uint64_t>();
    out->text = text(&out->text_bytes);
    out->message_template = text();
    out->parameters = texts(out->parameter_count);
    return out;
  }

  const void* comm() {
    const auto record = get<CommRecord>();
    const auto known = [](uint32_t value) { return value == kCommUnknown ? CULPRIT_NONE : int64_t{value}; };
    auto* out = make<culprit_comm>();
    out->start_ns = record.start_ns;
    out->end_ns = record.end_ns;
    out->comm = record.comm;
    out->seq = record.seq;
    out->bytes = record.bytes;
    out->step = known(record.step);
    out->peer = known(record.peer);
    out->comm_size = record.comm_size;
    out->op = static_cast<uint32_t>(record.op);
    out->group = static_cast<uint32_t>(record.group);
    out->flags = record.flags;
    return out;
  }

  const void* stack() {
    auto* out = make<culprit_stack>();
    uint64_t count = get<uint32_t>();
    if (count > static_cast<uint64_t>(end_ - at_) / 9) bad_ = true;
    if (bad_) count = 0;
    auto** threads = array<const culprit_thread*>(count);
    for (uint64_t i = 0; i < count; ++i) {
      auto* thread = make<culprit_thread>();
      thread->name = text();
      thread->frames = texts(thread->frame_count);
      threads[i] = thread;
    }
    out->threads = threads;
    out->thread_count = count;
    return out;
  }

  std::string_view rest_;
  const char* at_ = nullptr;  // in the record
  const char* end_ = nullptr;
  std::byte* next_;
  bool bad_ = false;
};

bool EventReader::read(std::string_view bytes) {
  events_.clear();
  const size_t needed = bytes.size() * Decoder::kPerByte;
  if (needed > arena_bytes_) {
    arena_ = std::make_unique_for_overwrite<std::byte[]>(needed);
    arena_bytes_ = needed;
  }
  Decoder decoder(bytes, arena_.get());
  while (!decoder.at_end()) {
    const culprit_event* event = decoder.event();
    if (!event) {
      events_.clear();
      return false;
    }
    events_.push_back(event);
  }
  return true;
}

}  // namespace culprit::plughost
