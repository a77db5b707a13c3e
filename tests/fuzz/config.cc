// Any bytes as a configuration, in one file or two. Every error has a place in its file and a sentence. An
// accepted configuration is accepted again with the defaults added, with the same values.
#include "app/config/config.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using namespace culprit;

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  // A line of five equal signs divides files.
  constexpr std::string_view kDivider = "\n=====\n";
  const size_t cut = all.find(kDivider);
  std::vector<app::ConfigText> texts = {{"a.toml", std::string(all.substr(0, cut))}};
  if (cut != all.npos) texts.push_back({"b.toml", std::string(all.substr(cut + kDivider.size()))});
  const app::LoadedConfig loaded = app::parse_config(texts);
  for (const app::ConfigError& e : loaded.errors) {
    require(e.file == "a.toml" || e.file == "b.toml");
    const std::string& text = texts[e.file == "a.toml" ? 0 : 1].text;
    require(e.line <= 1 + static_cast<size_t>(std::count(text.begin(), text.end(), '\n')));
    require((e.line == 0) == (e.column == 0));
    require(!e.what.empty() &&
            std::none_of(e.what.begin(), e.what.end(), [](unsigned char c) { return c < ' ' && c != '\t'; }));
  }
  require(app::changed_keys(loaded.config, loaded.config).empty());
  if (!loaded.errors.empty()) return 0;
  texts.insert(texts.begin(), app::ConfigText{"defaults.toml", app::config_defaults()});
  const app::LoadedConfig again = app::parse_config(texts);
  require(again.errors.empty());
  require(app::changed_keys(loaded.config, again.config).empty());
  return 0;
}
