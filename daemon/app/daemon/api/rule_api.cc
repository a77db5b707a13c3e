// API for a rule made of a confirmed diagnosis: the rule is shown, or written and loaded.
#include <fmt/format.h>

#include <utility>

#include "app/daemon/api/api_json.h"
#include "app/daemon/api/daemon_api.h"

namespace culprit::app {
namespace {

std::string answer_of(const MadeRule& made, bool loaded) {
  return dump({{"id", made.rule.id},
               {"title", made.rule.title},
               {"text", made.rule.text},
               {"open", made.rule.open},
               {"file", made.file.empty() ? json(nullptr) : json(made.file)},
               {"notes", made.notes},
               {"loaded", loaded}});
}

}  // namespace

void DaemonApi::make_rule(const serve::RuleRequest& request, const serve::Actor& by, Answer answer) {
  RuleOrder order{.of = request.of, .id = request.id};
  order.words = {"",
                 request.title,
                 request.cause,
                 request.remedy,
                 request.category,
                 request.component,
                 request.action,
                 who(by),
                 request.line};
  order.rules = rule_options(*parts_.config);
  order.folders = parts_.config->rules;
  order.scratch = parts_.config->state_dir + "/confirm";
  rule_maker_.make(std::move(order), [this, request, by, answer = std::move(answer)](Result<MadeRule> made) {
    if (!made) return answer(tl::unexpected(made.error()));
    if (request.dry) return answer(answer_of(*made, false));
    if (made->file.empty())
      return answer(fail(ErrorCode::kInvalid, "no folder of the daemon's rules can be written to"));
    put_rule(request, by, std::make_shared<MadeRule>(std::move(*made)), answer);
  });
}

// Stores the judgement first: it remains valid if writing the file fails.
void DaemonApi::put_rule(const serve::RuleRequest& request, const serve::Actor& by,
                         const std::shared_ptr<MadeRule>& made, Answer answer) {
  judge({request.of, request.id, true, made->rule.id}, by, [=, this](Result<std::string> judged) {
    if (!judged) return answer(std::move(judged));
    rule_maker_.write(*made, [=, this](const Status& written) {
      if (!written) return answer(tl::unexpected(written.error()));
      parts_.inform(fmt::format("{}: written, confirmed by {}", made->file, who(by)));
      parts_.reload([=, this](const Status& loaded) {
        if (loaded) return answer(answer_of(*made, true));
        rule_maker_.take_away(*made, [=] {
          answer(fail(loaded.error().code, loaded.error().text + "; the rule was taken away again"));
        });
      });
    });
  });
}

}  // namespace culprit::app
