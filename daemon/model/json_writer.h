// Writes JSON text directly, without building a tree. nlohmann::json reads JSON, and edits documents: answers
// made from stored reports, and bundles. Texts become UTF-8; controls and line separators are escaped, so a
// value is one line. Infinities and NaN become null.
//
//     JsonWriter w;
//     w.object([&] {
//       w.field("id", job.id);
//       w.list("hosts", job.hosts, [&](const std::string& host) { w.write(host); });
//     });
//     return w.finish();
//
// A value; one thread.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.h"

namespace culprit {

class JsonWriter {
 public:
  // The text; the writer is empty afterwards.
  std::string finish() { return std::exchange(out_, {}); }

  template <class Body>
  void object(Body body) {
    bracketed('{', '}', body);
  }
  // `each` writes one value per entry.
  template <class Range, class Each>
  void array(const Range& range, Each each) {
    bracketed('[', ']', [&] {
      for (const auto& entry : range) separate(), each(entry);
    });
  }

  // ---- members of an object

  // `body` writes the value.
  template <class Body>
  void member(std::string_view name, Body body) {
    key(name);
    body();
  }
  template <class Value>
  void field(std::string_view name, const Value& value) {
    key(name);
    write(value);
  }
  template <class Range, class Each>
  void list(std::string_view name, const Range& range, Each each) {
    key(name);
    array(range, each);
  }
  template <class Range>
  void values(std::string_view name, const Range& range) {
    list(name, range, [this](const auto& value) { this->write(value); });
  }
  void null(std::string_view name) { key(name), out_ += "null"; }
  void time(std::string_view name, TimeNs time) { time == kNoTime ? null(name) : field(name, time); }
  // Writes null if the text is empty.
  void text_or_null(std::string_view name, std::string_view text) {
    text.empty() ? null(name) : field(name, text);
  }
  // Inserts existing JSON text unchanged.
  void raw(std::string_view name, std::string_view json) { key(name), out_ += json; }

  // ---- values

  void write(std::string_view text);
  void write(const std::string& text) { write(std::string_view(text)); }
  void write(const char* text) { write(std::string_view(text)); }
  void write(double value) {
    if (std::isfinite(value))
      fmt::format_to(std::back_inserter(out_), "{}", value);
    else
      out_ += "null";
  }
  void write(bool value) { out_ += value ? "true" : "false"; }
  template <std::integral Integer>
  void write(Integer value) {
    fmt::format_to(std::back_inserter(out_), "{}", value);
  }
  template <class Value>
  void write(const std::optional<Value>& value) {
    if (value)
      write(*value);
    else
      out_ += "null";
  }
  // Writes a number with `digits` significant digits.
  void write_digits(double value, int digits) {
    fmt::format_to(std::back_inserter(out_), "{:.{}g}", value, digits);
  }
  void write_null() { out_ += "null"; }
  void write_raw(std::string_view json) { out_ += json; }

 private:
  template <class Body>
  void bracketed(char open, char close, Body body) {
    const bool outer = std::exchange(first_, true);
    out_ += open;
    body();
    out_ += close;
    first_ = outer;
  }
  void separate() {
    if (!std::exchange(first_, false)) out_ += ',';
  }
  void key(std::string_view name) {
    separate();
    write(name);
    out_ += ':';
  }
  void escape(std::string_view text);

  std::string out_;
  bool first_ = true;
};

}  // namespace culprit
