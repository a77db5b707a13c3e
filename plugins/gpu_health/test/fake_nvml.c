/* A libnvidia-ml.so.1 without a GPU: plays the scenario in the file that FAKE_NVML names. It is read again
 * for each device that is asked for, so a test changes it as it goes.
 *
 *   count 8                  number of devices (default 8)
 *   gpu 3 temperature 92     a value of a device: temperature slowdown reasons sm sm_max power power_limit
 *                            corrected uncorrected remap_pending remap_failed replays recovery links
 *                            link_errors link_crc
 *   gpu 3 hang 60            a query of the device takes 60 s (in the call for its power)
 *   gpu 3 crash 1            a query of the device ends the process
 *   gpu 3 lost 1             NVML_ERROR_GPU_IS_LOST, from the handle on
 *   gpu 3 lost_in_query 1    the handle is given, the device is lost in mid-query
 *   init 18                  what nvmlInit_v2 returns
 *   xid 3 79                 an event of a device, once */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum {
  OK = 0,
  INVALID = 2,
  NOT_SUPPORTED = 3,
  NOT_FOUND = 6,
  TIMEOUT = 10,
  LOST = 15,
  GPUS = 16,
  LINKS = 18
};

typedef struct {
  unsigned long long temperature, slowdown, reasons, sm, sm_max, power, power_limit, corrected, uncorrected;
  unsigned long long remap_pending, remap_failed, replays, recovery, links, link_errors, link_crc;
  unsigned long long hang, crash, lost, lost_in_query;
} gpu;

static gpu gpus[GPUS];
static unsigned count;
static int init_status;
static unsigned xids[64][2], xid_count, xids_given;

static void set(gpu* g, const char* name, unsigned long long value) {
  const struct {
    const char* name;
    unsigned long long* place;
  } names[] = {{"temperature", &g->temperature},
               {"slowdown", &g->slowdown},
               {"reasons", &g->reasons},
               {"sm", &g->sm},
               {"sm_max", &g->sm_max},
               {"power", &g->power},
               {"power_limit", &g->power_limit},
               {"corrected", &g->corrected},
               {"uncorrected", &g->uncorrected},
               {"remap_pending", &g->remap_pending},
               {"remap_failed", &g->remap_failed},
               {"replays", &g->replays},
               {"recovery", &g->recovery},
               {"links", &g->links},
               {"link_errors", &g->link_errors},
               {"link_crc", &g->link_crc},
               {"hang", &g->hang},
               {"crash", &g->crash},
               {"lost", &g->lost},
               {"lost_in_query", &g->lost_in_query}};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    if (strcmp(names[i].name, name) == 0) *names[i].place = value;
  }
}

static void play(void) {
  const gpu normal = {.temperature = 45,
                      .slowdown = 90,
                      .reasons = 1,
                      .sm = 345,
                      .sm_max = 1980,
                      .power = 70000,
                      .power_limit = 700000,
                      .links = LINKS};
  const char* path = getenv("FAKE_NVML");
  FILE* file = path ? fopen(path, "re") : NULL;
  char line[256], name[64];
  unsigned index;
  unsigned long long value;
  count = 8;
  init_status = OK;
  xid_count = 0;
  for (int i = 0; i < GPUS; ++i) gpus[i] = normal;
  while (file && fgets(line, sizeof line, file)) {
    if (sscanf(line, "count %u", &count) == 1) continue;
    if (sscanf(line, "init %d", &init_status) == 1) continue;
    if (sscanf(line, "xid %u %llu", &index, &value) == 2 && xid_count < 64) {
      xids[xid_count][0] = index;
      xids[xid_count++][1] = (unsigned)value;
    } else if (sscanf(line, "gpu %u %63s %llu", &index, name, &value) == 3 && index < GPUS) {
      set(&gpus[index], name, value);
    }
  }
  if (file) fclose(file);
  if (count > GPUS) count = GPUS;
}

EXPORT int nvmlInit_v2(void) {
  play();
  return init_status;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned* out) {
  play();
  *out = count;
  return OK;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** out) {
  play();
  if (index >= count) return NOT_FOUND;
  *out = &gpus[index];
  return gpus[index].lost ? LOST : OK;
}

EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** out) {
  unsigned index = 0;
  if (sscanf(bus, "00000000:%x:00.0", &index) != 1) return NOT_FOUND;
  return nvmlDeviceGetHandleByIndex_v2(index - 0x10, out);
}

typedef struct {
  char legacy[16];
  unsigned domain, bus, device, id, subsystem;
  char bus_id[32];
} pci_info;

static unsigned index_of(const void* device) { return (unsigned)((const gpu*)device - gpus); }

EXPORT int nvmlDeviceGetPciInfo_v3(void* device, pci_info* out) {
  memset(out, 0, sizeof *out);
  snprintf(out->bus_id, sizeof out->bus_id, "00000000:%02X:00.0", 0x10 + index_of(device));
  return OK;
}

EXPORT int nvmlDeviceGetName(void* device, char* name, unsigned bytes) {
  (void)device;
  snprintf(name, bytes, "Fake H100");
  return OK;
}

EXPORT int nvmlDeviceGetTotalEccErrors(void* device, int type, int counter, unsigned long long* out) {
  (void)counter;
  *out = type == 0 ? ((gpu*)device)->corrected : ((gpu*)device)->uncorrected;
  return OK;
}

EXPORT int nvmlDeviceGetRemappedRows(void* device, unsigned* corrected, unsigned* uncorrected,
                                     unsigned* pending, unsigned* failed) {
  *corrected = *uncorrected = 0;
  *pending = (unsigned)((gpu*)device)->remap_pending;
  *failed = (unsigned)((gpu*)device)->remap_failed;
  return OK;
}

EXPORT int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* out) {
  (void)sensor;
  *out = (unsigned)((gpu*)device)->temperature;
  return OK;
}

EXPORT int nvmlDeviceGetTemperatureThreshold(void* device, int which, unsigned* out) {
  *out = (unsigned)((gpu*)device)->slowdown;
  return which == 1 ? OK : NOT_SUPPORTED;
}

/* The older name alone: newer ones are optional. */
EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* out) {
  *out = ((gpu*)device)->reasons;
  return OK;
}

EXPORT int nvmlDeviceGetClockInfo(void* device, int type, unsigned* out) {
  (void)type;
  *out = (unsigned)((gpu*)device)->sm;
  return OK;
}

EXPORT int nvmlDeviceGetMaxClockInfo(void* device, int type, unsigned* out) {
  (void)type;
  *out = (unsigned)((gpu*)device)->sm_max;
  return OK;
}

EXPORT int nvmlDeviceGetPowerUsage(void* device, unsigned* out) {
  gpu* g = device;
  if (g->crash) abort();
  if (g->hang) sleep((unsigned)g->hang);
  *out = (unsigned)g->power;
  return g->lost_in_query ? LOST : OK;
}

EXPORT int nvmlDeviceGetEnforcedPowerLimit(void* device, unsigned* out) {
  *out = (unsigned)((gpu*)device)->power_limit;
  return OK;
}

EXPORT int nvmlDeviceGetPcieReplayCounter(void* device, unsigned* out) {
  *out = (unsigned)((gpu*)device)->replays;
  return OK;
}

EXPORT int nvmlDeviceGetNvLinkState(void* device, unsigned link, int* out) {
  (void)device;
  *out = link < ((gpu*)device)->links;
  return link < LINKS ? OK : INVALID;
}

typedef struct {
  unsigned id, scope;
  long long timestamp, latency;
  int type, status;
  unsigned long long value;
} field_value;

EXPORT int nvmlDeviceGetFieldValues(void* device, int number, field_value* values) {
  gpu* g = device;
  for (int i = 0; i < number; ++i) {
    values[i].status = OK;
    values[i].type = 3;
    values[i].value = 0;
    if (values[i].id == 230) values[i].value = g->recovery;
    if (values[i].id == 161 && values[i].scope == 4) values[i].value = g->link_errors;
    if (values[i].id == 163 && values[i].scope == 4) values[i].value = g->link_crc;
  }
  return OK;
}

EXPORT int nvmlEventSetCreate(void** set_out) {
  static int events;
  *set_out = &events;
  return OK;
}

EXPORT int nvmlDeviceRegisterEvents(void* device, unsigned long long types, void* event_set) {
  (void)device, (void)types, (void)event_set;
  return OK;
}

typedef struct {
  void* device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
} event_data;

EXPORT int nvmlEventSetWait_v2(void* event_set, event_data* out, unsigned timeout_ms) {
  (void)event_set, (void)timeout_ms;
  if (xids_given >= xid_count) return TIMEOUT;
  out->device = &gpus[xids[xids_given][0]];
  out->type = 8;
  out->data = xids[xids_given++][1];
  return OK;
}
