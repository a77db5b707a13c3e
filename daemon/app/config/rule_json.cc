#include "app/config/rule_json.h"

#include "model/json_writer.h"

namespace culprit::app {

std::string to_json(const rules::Rule& rule) {
  JsonWriter w;
  w.object([&] {
    w.field("id", rule.id);
    w.field("title", rule.title);
    w.field("severity", to_string(rule.severity));
    w.field("category", to_string(rule.category));
    w.field("component", to_string(rule.component));
    w.field("symptom", to_string(rule.symptom));
    w.field("role", rules::to_string(rule.role));
    w.field("action", to_string(rule.action));
    w.field("general", rule.general());
    w.field("says", rules::to_string(rule.says));
    w.field("enabled", rule.enabled);
    w.field("file", rule.place.file);
    w.field("line", rule.place.line);
  });
  return w.finish();
}

}  // namespace culprit::app
