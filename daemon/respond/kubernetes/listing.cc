#include "respond/kubernetes/listing.h"

#include <fmt/format.h>

namespace culprit::respond::kubernetes {
namespace {

constexpr int kListTries = 3;

}  // namespace

tl::expected<void, ListFailure> list_objects(const ApiCall& call, const ListRequest& request, Pace& pace,
                                             const std::function<void()>& again,
                                             const std::function<void(const Json&)>& add) {
  const char joint = request.path.find('?') == request.path.npos ? '?' : '&';
  std::string next;
  ListFailure failure;
  size_t count = 0;
  // A server that gives empty pages for ever is not followed.
  size_t pages = kListTries * (request.most / static_cast<size_t>(request.page) + 2);
  for (int tries = 0; tries < kListTries;) {
    if (pages-- == 0) return tl::unexpected(ListFailure{"the list does not end", {}, false});
    ApiRequest sent;
    sent.method = "GET";
    sent.path = fmt::format("{}{}limit={}{}{}", request.path, joint, request.page,
                            next.empty() ? "" : "&continue=", escaped(next));
    sent.answer_max = request.page_bytes;
    const ApiAnswer answer = patient_call(call, sent, pace);
    if (answer.status == 410) {  // this page's version is no longer stored
      failure.text = message_of(answer);
      ++tries, next.clear(), count = 0;
      again();
      continue;
    }
    if (answer.status != 200)
      return tl::unexpected(ListFailure{message_of(answer), answer.retry_after_ns, is_busy(answer)});
    const Json page = Json::parse(answer.body, nullptr, false);
    const Json& items = member(page, {"items"});
    if (!items.is_array()) return tl::unexpected(ListFailure{"the answer is no list", {}, false});
    for (const Json& item : items) {
      if (++count > request.most)
        return tl::unexpected(ListFailure{fmt::format("more than {} objects", request.most), {}, false});
      add(item);
    }
    next = text_of(page, {"metadata", "continue"});
    if (next.empty()) return {};
  }
  return tl::unexpected(std::move(failure));
}

}  // namespace culprit::respond::kubernetes
