#include <fmt/format.h>

#include <algorithm>

#include "respond/kubernetes/steps.h"
#include "respond/order.h"

namespace culprit::respond::kubernetes {
namespace {

constexpr std::string_view kGroup = "/apis/resource.k8s.io";
constexpr std::string_view kVersions[] = {"v1", "v1beta2"};  // the newest with the rules is used
constexpr std::string_view kRules = "devicetaintrules";
constexpr size_t kSliceBytes = 16 << 20;

bool is_same_text(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

// Whether a driver's attributes say that this is the device; "gpu.nvidia.com/uuid" is the same as "uuid".
bool is_device(const Json& attributes, std::string_view wanted) {
  if (!attributes.is_object()) return false;
  for (const auto& [key, value] : attributes.items()) {
    const std::string_view name = std::string_view(key).substr(key.rfind('/') + 1);
    if ((name == "uuid" || name == "pciBusID") && is_same_text(text_of(value, {"string"}), wanted))
      return true;
  }
  return false;
}

}  // namespace

std::string DeviceSteps::rule_name() const { return "culprit-" + order_.decision; }

tl::expected<std::string, ActionResult> DeviceSteps::rules() {
  for (const std::string_view version : kVersions) {
    const std::string api = fmt::format("{}/{}", kGroup, version);
    const ApiAnswer answer = call("GET", api);
    if (answer.status == 404) continue;
    if (answer.status != 200) return tl::unexpected(result(ActionState::kFailed, message_of(answer)));
    const Json list = object_of(answer);
    for (const Json& one : member(list, {"resources"}))
      if (text_of(one, {"name"}) == kRules) return api;
  }
  return tl::unexpected(result(ActionState::kFailed, "this cluster has no taints of devices"));
}

tl::expected<Json, ActionResult> DeviceSteps::selector(const std::string& api) {
  ApiRequest request;
  request.method = "GET";
  request.path =
      fmt::format("{}/resourceslices?fieldSelector=spec.nodeName%3D{}", api, escaped(order_.target));
  request.answer_max = kSliceBytes;
  const ApiAnswer answer = patient_call(options_.call, request, pace_);
  if (answer.status != 200) return tl::unexpected(result(ActionState::kFailed, message_of(answer)));
  const Json slices = object_of(answer);
  for (const Json& slice : member(slices, {"items"}))
    for (const Json& device : member(slice, {"spec", "devices"})) {
      if (!is_device(member(device, {"attributes"}), order_.device)) continue;
      const std::string driver = text_of(slice, {"spec", "driver"}), name = text_of(device, {"name"});
      const std::string pool = text_of(slice, {"spec", "pool", "name"});
      // A selector without one of them would be of many devices.
      if (!driver.empty() && !pool.empty() && !name.empty())
        return Json{{"driver", driver}, {"pool", pool}, {"device", name}};
    }
  return tl::unexpected(result(ActionState::kFailed, fmt::format("no driver publishes the device {} of {}",
                                                                 order_.device, order_.target)));
}

ActionResult DeviceSteps::isolate() {
  const auto api = rules();
  if (!api) return api.error();
  const auto device = selector(*api);
  if (!device) return device.error();
  const Json rule = {{"apiVersion", api->substr(std::string_view("/apis/").size())},
                     {"kind", "DeviceTaintRule"},
                     {"metadata", {{"name", rule_name()}}},
                     {"spec",
                      {{"deviceSelector", *device},
                       {"taint",
                        {{"key", kTaintKey},
                         {"value", order_.decision},
                         {"effect", options_.no_execute ? "NoExecute" : "NoSchedule"}}}}}};
  const std::string path = fmt::format("{}/{}", *api, kRules);
  const std::string shown =
      fmt::format("rule {} of device {} of {}", rule_name(), order_.device, order_.target);
  const ApiAnswer written =
      call("POST", to_write(path), rule.dump(-1, ' ', false, Json::error_handler_t::replace));
  if (written.status == 201 || written.status == 200) return result(ActionState::kDone, shown);
  if (written.status == 409) {  // it is there: written before, also by a request whose answer was lost
    const ApiAnswer read = call("GET", fmt::format("{}/{}", path, escaped(rule_name())));
    const Json known = object_of(read);
    const bool ours = read.status == 200 && text_of(known, {"spec", "taint", "value"}) == order_.decision;
    return result(ours ? ActionState::kDone : ActionState::kSuperseded, shown);
  }
  const bool unknown = is_busy(written) && !written.unsent && written.status != 429;
  return result(unknown ? ActionState::kAmbiguous : ActionState::kFailed,
                fmt::format("{}: {}", shown, message_of(written)));
}

ActionResult DeviceSteps::give_back() {
  const auto api = rules();
  if (!api) return api.error();
  const std::string path = fmt::format("{}/{}/{}", *api, kRules, escaped(rule_name()));
  const ApiAnswer read = call("GET", path);
  if (read.status == 404)
    return result(ActionState::kSuperseded, fmt::format("rule {} was removed by others", rule_name()));
  if (read.status != 200) return result(ActionState::kFailed, message_of(read));
  const Json rule = object_of(read);
  if (text_of(rule, {"spec", "taint", "value"}) != order_.decision)
    return result(ActionState::kSuperseded, fmt::format("rule {} is of another decision", rule_name()));
  const ApiAnswer removed =
      call("DELETE", path, delete_body(text_of(rule, {"metadata", "uid"}), options_.observe));
  if (removed.status == 200 || removed.status == 202 || removed.status == 404)
    return result(ActionState::kDone, fmt::format("rule {} is removed", rule_name()));
  const bool unknown = is_busy(removed) && !removed.unsent && removed.status != 429;
  return result(unknown ? ActionState::kAmbiguous : ActionState::kFailed, message_of(removed));
}

}  // namespace culprit::respond::kubernetes
