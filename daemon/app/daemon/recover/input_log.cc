#include "app/daemon/recover/input_log.h"

#include <utility>

namespace culprit::app {

void InputLog::begin(const recover::ControllerOptions& options, const store::RecoveryRows& rows, TimeNs now,
                     TimeNs lost_ns) {
  began_ns_ = now;
  part_ = 0;
  begin_part();
  add(recorder_.start(options, lost_ns));
  for (const ActionRecord& row : rows.actions) add(recorder_.row(row));
  for (const AttemptRecord& row : rows.attempts) add(recorder_.row(row));
  for (const MachineRecord& row : rows.machines) add(recorder_.row(row));
}

void InputLog::begin_part() {
  chunks_.push_back({true, recorder_.header(began_ns_, ++part_) + "\n"});
  part_bytes_ = chunks_.back().text.size();
  unwritten_ += part_bytes_;
}

void InputLog::add(std::string line) {
  if (unwritten_ + line.size() > kUnwritten) {
    dropped_ = true;
    return;
  }
  if (std::exchange(dropped_, false))
    line = recorder_.gap("steps were dropped: the disk was too slow") + "\n" + line;
  line += '\n';
  part_bytes_ += line.size();
  unwritten_ += line.size();
  if (chunks_.empty()) chunks_.emplace_back();
  chunks_.back().text += line;
}

void InputLog::step(std::span<const recover::Input> inputs, TimeNs now,
                    std::span<const recover::Order> orders) {
  if (part_bytes_ >= kPartBytes) begin_part();
  add(recorder_.step(inputs, now, orders));
}

std::function<void()> InputLog::take() {
  unwritten_ = 0;
  return [file = file_, chunks = std::exchange(chunks_, {})] { write(*file, chunks); };
}

void InputLog::write(File& file, const std::vector<Chunk>& chunks) {
  for (const Chunk& chunk : chunks) {
    Status status = chunk.new_part ? file.parts.begin_part() : Status{};
    if (status) {
      // A new line ends what a failed write left.
      const std::string gap =
          file.failed ? "\n" + recover::InputRecorder().gap("the disk failed") + "\n" : "";
      status = file.parts.append(chunk.new_part ? chunk.text : gap + chunk.text);
    }
    file.failed = !status;
    const std::lock_guard lock(file.mutex);
    file.trouble = status ? "" : status.error().text;
  }
}

std::string InputLog::trouble() const {
  const std::lock_guard lock(file_->mutex);
  return file_->trouble;
}

}  // namespace culprit::app
