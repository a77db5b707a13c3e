// Parts of a report's file besides its data: the page's components as one script, the style sheet, and their
// hashes for the file's Content-Security-Policy. Made from serve/web at build time (serve/web/bundle.cmake).
#pragma once

#include <string_view>

namespace culprit::cli {

struct ReportPage {
  std::string_view script, style;
  std::string_view script_hash, style_hash;  // "sha256-…"
};
const ReportPage& report_page();

}  // namespace culprit::cli
