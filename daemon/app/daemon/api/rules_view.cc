#include <map>
#include <memory>
#include <string>

#include "app/daemon/api/api_json.h"
#include "app/daemon/api/daemon_api.h"
#include "model/json_text.h"

namespace culprit::app {

// The engine's list, each rule with its record. Only readers of diagnoses see who judged.
void DaemonApi::rules(Answer answer) {
  const auto text = std::make_shared<std::string>();
  const auto judged = std::make_shared<std::map<std::string, records::Judged>>();
  parts_.engine->query(
      [text](LiveJobs& live, TimeNs) { *text = live.rules_json(); },
      [this, text, judged, answer = std::move(answer)] {
        parts_.recorder->query(
            [judged](store::Spool&, records::Records& index) {
              if (auto found = index.judged()) *judged = std::move(*found);
            },
            [text, judged, answer] {
              json rules = parse_json(*text);
              if (judged->empty() || !rules.is_object()) return answer(std::move(*text));
              for (json& rule : rules["items"]) {
                const auto judged_rule = judged->find("rule:" + rule.value("id", ""));
                if (judged_rule != judged->end())
                  rule["record"] = {{"hits", judged_rule->second.hits}, {"right", judged_rule->second.right}};
              }
              answer(dump(rules));
            });
      });
}

void DaemonApi::rule(const std::string& id, Answer answer) {
  const auto text = std::make_shared<Result<std::string>>();
  parts_.engine->query([text, id](LiveJobs& live, TimeNs) { *text = live.rule_json(id); },
                       [text, answer = std::move(answer)] { answer(std::move(*text)); });
}

}  // namespace culprit::app
