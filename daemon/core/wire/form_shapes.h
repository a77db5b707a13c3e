// Caches shapes of forms across the sessions of all hosts: hosts send the same forms, and computing a shape
// costs more than the rest of a form. Compares texts, since an agent could choose a text with another form's
// hash.
//
// Owner: the caller of the readers; one thread. Bounded in bytes: cleared when full.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/logs/shape.h"

namespace culprit::wire {

class FormShapes {
 public:
  // A job has some hundred forms of 100 bytes, and jobs of a cluster share most.
  static constexpr size_t kBytes = 4 << 20;

  // `form` is a result of form_text.
  logs::FormShape of(std::string form) {
    if (const auto known = shapes_.find(form); known != shapes_.end()) return known->second;
    const logs::FormShape shape = logs::shape_of(form);
    if (bytes_ >= kBytes) shapes_.clear(), bytes_ = 0;
    bytes_ += form.size() + kEntryBytes;
    shapes_.emplace(std::move(form), shape);
    return shape;
  }
  size_t size() const { return shapes_.size(); }

 private:
  static constexpr size_t kEntryBytes = 96;  // in addition to the text
  std::unordered_map<std::string, logs::FormShape> shapes_;
  size_t bytes_ = 0;
};

}  // namespace culprit::wire
