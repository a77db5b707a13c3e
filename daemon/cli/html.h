// A builder of HTML text. Text from a report must go through text() or an escaped argument; raw() takes only
// literals of this program. One thread.
#pragma once

#include <string>
#include <string_view>

#include "base/text.h"

namespace culprit::cli {

class Html {
 public:
  Html& raw(std::string_view html) {
    out_ += html;
    return *this;
  }
  Html& text(std::string_view text) {
    out_ += to_html(text);
    return *this;
  }

  // Appends <tag class="kind">text</tag>. `kind` may be empty.
  Html& element(std::string_view tag, std::string_view kind, std::string_view inside) {
    return open(tag, kind).text(inside).close(tag);
  }
  Html& open(std::string_view tag, std::string_view kind = {}) {
    out_.append("<").append(tag);
    if (!kind.empty()) out_.append(" class=\"").append(to_html(kind)).append("\"");
    out_ += '>';
    return *this;
  }
  Html& close(std::string_view tag) {
    out_.append("</").append(tag).append(">\n");
    return *this;
  }

  std::string finish() { return std::move(out_); }

 private:
  std::string out_;
};

}  // namespace culprit::cli
