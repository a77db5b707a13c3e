#include "respond/kubernetes/backend.h"

#include "respond/kubernetes/steps.h"
#include "respond/order.h"

namespace culprit::respond::kubernetes {

ActionResult KubernetesBackend::carry_out(const ActionOrder& order, Pace& pace) const {
  if (!order.device.empty() && order.kind == OrderKind::kIsolate)
    return DeviceSteps(order, options_, pace).isolate();
  if (!order.device.empty() && order.kind == OrderKind::kReturn)
    return DeviceSteps(order, options_, pace).give_back();
  switch (order.kind) {
    case OrderKind::kIsolate:
      return NodeSteps(order, options_, pace).isolate();
    case OrderKind::kReturn:
      return NodeSteps(order, options_, pace).give_back();
    case OrderKind::kEndTasks:
      return PodSteps(order, options_, pace).end_tasks();
    case OrderKind::kRunAgain:
      return PodSteps(order, options_, pace).run_again();
    case OrderKind::kVerify:
      break;
  }
  return PodSteps(order, options_, pace).verify();
}

ActionResult Steps::result(ActionState state, std::string detail) const {
  if (options_.observe && state == ActionState::kDone && order_.kind != OrderKind::kVerify)
    detail = "observe: " + detail;
  return result_of(order_, state, one_line(detail));
}

std::string Steps::to_write(std::string path) const { return options_.observe ? path + "?dryRun=All" : path; }

ApiAnswer Steps::call(std::string method, std::string path, std::string body) const {
  ApiRequest request;
  request.method = std::move(method);
  request.path = std::move(path);
  request.body = std::move(body);
  return patient_call(options_.call, request, pace_);
}

ApiAnswer Steps::patch(std::string path, std::string_view how, std::string body) const {
  ApiRequest request;
  request.method = "PATCH";
  request.path = to_write(std::move(path));
  request.content_type = how;
  request.body = std::move(body);
  return patient_call(options_.call, request, pace_);
}

Json Steps::object_of(const ApiAnswer& answer) { return Json::parse(answer.body, nullptr, false); }

}  // namespace culprit::respond::kubernetes
