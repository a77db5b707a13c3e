/* Prints the binary interface of culprit/plugin.h: the offset and size of each member, the size of each
 * struct, the value of each constant (64-bit). tests/contract/abi.py compares it with v1.txt, and checks that
 * none is missing.
 *
 *   cc -std=c11 -Isdk/include sdk/abi/print.c -o print && ./print > sdk/abi/v1.txt */
#include <culprit/plugin.h>

#include <inttypes.h>
#include <stdio.h>

#define CONSTANT(name) printf(#name " %" PRId64 "\n", (int64_t)(name))
#define STRUCT(type) printf("\n" #type " %zu bytes\n", sizeof(type))
#define MEMBER(type, member) \
  printf("  " #member " at %zu, %zu bytes\n", offsetof(type, member), sizeof(((type*)0)->member))

static void constants(void) {
  CONSTANT(CULPRIT_ABI_MAJOR);
  CONSTANT(CULPRIT_ABI_MINOR);
  CONSTANT(CULPRIT_NO_TIME);
  CONSTANT(CULPRIT_NONE);
  CONSTANT(CULPRIT_OK);
  CONSTANT(CULPRIT_ERROR);
  CONSTANT(CULPRIT_ERROR_INVALID);
  CONSTANT(CULPRIT_ERROR_LIMIT);
  CONSTANT(CULPRIT_ERROR_MEMORY);
  CONSTANT(CULPRIT_EVENT_LOG);
  CONSTANT(CULPRIT_EVENT_METRIC);
  CONSTANT(CULPRIT_EVENT_COMM);
  CONSTANT(CULPRIT_EVENT_STEP);
  CONSTANT(CULPRIT_EVENT_STACK);
  CONSTANT(CULPRIT_EVENT_KERNEL);
  CONSTANT(CULPRIT_EVENT_COUNTER);
  CONSTANT(CULPRIT_STEP_AT);
  CONSTANT(CULPRIT_STEP_BEGIN);
  CONSTANT(CULPRIT_STEP_END);
  CONSTANT(CULPRIT_INFO);
  CONSTANT(CULPRIT_WARNING);
  CONSTANT(CULPRIT_ERR);
  CONSTANT(CULPRIT_FATAL);
  CONSTANT(CULPRIT_HAPPENED);
  CONSTANT(CULPRIT_RAISED);
  CONSTANT(CULPRIT_CLEARED);
  CONSTANT(CULPRIT_OPTION_TEXT);
  CONSTANT(CULPRIT_OPTION_INTEGER);
  CONSTANT(CULPRIT_OPTION_NUMBER);
  CONSTANT(CULPRIT_OPTION_BOOLEAN);
}

static void events(void) {
  STRUCT(culprit_line);
  MEMBER(culprit_line, size);
  MEMBER(culprit_line, text);
  MEMBER(culprit_line, text_bytes);
  MEMBER(culprit_line, message_template);
  MEMBER(culprit_line, parameters);
  MEMBER(culprit_line, parameter_count);
  MEMBER(culprit_line, line);
  STRUCT(culprit_metric);
  MEMBER(culprit_metric, size);
  MEMBER(culprit_metric, name);
  MEMBER(culprit_metric, value);
  MEMBER(culprit_metric, step);
  STRUCT(culprit_comm);
  MEMBER(culprit_comm, size);
  MEMBER(culprit_comm, start_ns);
  MEMBER(culprit_comm, end_ns);
  MEMBER(culprit_comm, comm);
  MEMBER(culprit_comm, seq);
  MEMBER(culprit_comm, bytes);
  MEMBER(culprit_comm, step);
  MEMBER(culprit_comm, peer);
  MEMBER(culprit_comm, comm_size);
  MEMBER(culprit_comm, op);
  MEMBER(culprit_comm, group);
  MEMBER(culprit_comm, flags);
  STRUCT(culprit_step);
  MEMBER(culprit_step, size);
  MEMBER(culprit_step, phase);
  MEMBER(culprit_step, step);
  MEMBER(culprit_step, state);
  MEMBER(culprit_step, reserved);
  STRUCT(culprit_thread);
  MEMBER(culprit_thread, size);
  MEMBER(culprit_thread, name);
  MEMBER(culprit_thread, frames);
  MEMBER(culprit_thread, frame_count);
  STRUCT(culprit_stack);
  MEMBER(culprit_stack, size);
  MEMBER(culprit_stack, threads);
  MEMBER(culprit_stack, thread_count);
  STRUCT(culprit_counter);
  MEMBER(culprit_counter, size);
  MEMBER(culprit_counter, name);
  MEMBER(culprit_counter, value);
  STRUCT(culprit_event);
  MEMBER(culprit_event, size);
  MEMBER(culprit_event, kind);
  MEMBER(culprit_event, version);
  MEMBER(culprit_event, time_ns);
  MEMBER(culprit_event, job);
  MEMBER(culprit_event, host);
  MEMBER(culprit_event, source);
  MEMBER(culprit_event, rank);
  MEMBER(culprit_event, device);
  MEMBER(culprit_event, body);
}

static void host(void) {
  STRUCT(culprit_value);
  MEMBER(culprit_value, size);
  MEMBER(culprit_value, name);
  MEMBER(culprit_value, value);
  STRUCT(culprit_detector_finding);
  MEMBER(culprit_detector_finding, size);
  MEMBER(culprit_detector_finding, id);
  MEMBER(culprit_detector_finding, title);
  MEMBER(culprit_detector_finding, text);
  MEMBER(culprit_detector_finding, category);
  MEMBER(culprit_detector_finding, component);
  MEMBER(culprit_detector_finding, symptom);
  MEMBER(culprit_detector_finding, action);
  MEMBER(culprit_detector_finding, remedy);
  MEMBER(culprit_detector_finding, host);
  MEMBER(culprit_detector_finding, job);
  MEMBER(culprit_detector_finding, peer);
  MEMBER(culprit_detector_finding, part);
  MEMBER(culprit_detector_finding, rank);
  MEMBER(culprit_detector_finding, device);
  MEMBER(culprit_detector_finding, time_ns);
  MEMBER(culprit_detector_finding, confidence);
  MEMBER(culprit_detector_finding, severity);
  MEMBER(culprit_detector_finding, state);
  MEMBER(culprit_detector_finding, values);
  MEMBER(culprit_detector_finding, value_count);
  MEMBER(culprit_detector_finding, restart);
  STRUCT(culprit_budget);
  MEMBER(culprit_budget, size);
  MEMBER(culprit_budget, memory_bytes);
  MEMBER(culprit_budget, memory_used);
  MEMBER(culprit_budget, cpu_ppm);
  MEMBER(culprit_budget, call_ns);
  MEMBER(culprit_budget, findings_per_minute);
  MEMBER(culprit_budget, findings_left);
  STRUCT(culprit_host);
  MEMBER(culprit_host, size);
  MEMBER(culprit_host, context);
  MEMBER(culprit_host, version);
  MEMBER(culprit_host, name);
  MEMBER(culprit_host, log);
  MEMBER(culprit_host, emit);
  MEMBER(culprit_host, option);
  MEMBER(culprit_host, budget);
  MEMBER(culprit_host, extension);
}

static void detector(void) {
  STRUCT(culprit_detector);
  MEMBER(culprit_detector, size);
  MEMBER(culprit_detector, context);
  MEMBER(culprit_detector, observe);
  MEMBER(culprit_detector, tick);
  MEMBER(culprit_detector, destroy);
  MEMBER(culprit_detector, reset);
  MEMBER(culprit_detector, save_state);
  MEMBER(culprit_detector, load_state);
  MEMBER(culprit_detector, extension);
  STRUCT(culprit_option);
  MEMBER(culprit_option, size);
  MEMBER(culprit_option, name);
  MEMBER(culprit_option, default_value);
  MEMBER(culprit_option, about);
  MEMBER(culprit_option, minimum);
  MEMBER(culprit_option, maximum);
  MEMBER(culprit_option, type);
  MEMBER(culprit_option, reserved);
  STRUCT(culprit_description);
  MEMBER(culprit_description, size);
  MEMBER(culprit_description, abi_major);
  MEMBER(culprit_description, abi_minor);
  MEMBER(culprit_description, name);
  MEMBER(culprit_description, version);
  MEMBER(culprit_description, vendor);
  MEMBER(culprit_description, about);
  MEMBER(culprit_description, events);
  MEMBER(culprit_description, tick_ms);
  MEMBER(culprit_description, options);
  MEMBER(culprit_description, option_count);
  STRUCT(culprit_plugin);
  MEMBER(culprit_plugin, size);
  MEMBER(culprit_plugin, describe);
  MEMBER(culprit_plugin, create);
}

int main(void) {
  constants();
  events();
  host();
  detector();
  return 0;
}
