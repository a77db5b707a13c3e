// The thresholds of error counters, as data: which file, how much growth within which time, and where the
// number comes from. README.md repeats the table for readers.
#pragma once

#include <cstdint>

#include "common/report.h"

namespace net {

using health::Kind;

enum class Place { kPort, kPortHardware, kInterface };  // counters/, hw_counters/, statistics/

struct Threshold {
  Place place;
  const char* file;
  double limit;  // growth within the window that is a finding
  int64_t window_ns;
  Kind kind;
};

constexpr const char* kCable =
    "Reseat or replace the cable or transceiver of this port; check its switch port.";
constexpr const char* kFabric = "Look at the switch counters on the path of this port.";

constexpr Kind link_fault(const char* id, const char* title, double confidence) {
  return {id, title, "hardware", "network", "slowdown", "check", kCable, CULPRIT_WARNING, confidence};
}

// ibqueryerrors: the thresholds in its manual page, there totals since the last reset, here growth within
// an hour. Own: no number is published; a fabric in good order has none of these, and the limit leaves
// room for a restart of a peer.
inline constexpr Threshold kThresholds[] = {
    {Place::kPort, "symbol_error", 10, health::kHour,  // ibqueryerrors
     link_fault("net.symbol_errors", "Port receives damaged symbols", 0.7)},
    {Place::kPort, "link_error_recovery", 10, health::kHour,  // ibqueryerrors
     link_fault("net.link_recovery", "Port retrains its link often", 0.8)},
    {Place::kPort, "port_rcv_errors", 10, health::kHour,  // own
     link_fault("net.receive_errors", "Port receives damaged packets", 0.7)},
    {Place::kPort, "local_link_integrity_errors", 10, health::kHour,  // own
     link_fault("net.link_integrity", "Port exceeds its limit of physical errors", 0.8)},
    {Place::kPort, "excessive_buffer_overrun_errors", 10, health::kHour,  // own
     link_fault("net.buffer_overruns", "Port's receive buffers overrun", 0.5)},
    {Place::kPort,
     "port_rcv_remote_physical_errors",
     100,
     health::kHour,  // own
     {"net.remote_errors", "Port receives packets that were damaged elsewhere", "platform", "network",
      "slowdown", "check", kFabric, CULPRIT_INFO, 0.3}},
    {Place::kPort,
     "port_xmit_discards",
     100,
     health::kHour,  // own
     {"net.transmit_discards", "Port drops packets that it cannot send", "platform", "network", "slowdown",
      "check", kFabric, CULPRIT_WARNING, 0.5}},
    {Place::kPortHardware,
     "local_ack_timeout_err",
     10,
     health::kMinute,  // own
     {"net.ack_timeouts", "Packets of a port are not acknowledged in time", "hardware", "network", "slowdown",
      "check", kFabric, CULPRIT_WARNING, 0.5}},
    {Place::kPortHardware,
     "packet_seq_err",
     100,
     health::kMinute,  // own
     {"net.lost_packets", "Packets of a port are lost on the way", "hardware", "network", "slowdown", "check",
      kFabric, CULPRIT_WARNING, 0.5}},
    {Place::kPortHardware,
     "rnr_nak_retry_err",
     10,
     health::kMinute,  // own
     {"net.receiver_not_ready", "Receivers have no buffer for a port's packets", "unknown", "network",
      "slowdown", "check", "Look at the ranks that this host sends to: they may be stuck.", CULPRIT_WARNING,
      0.3}},
    {Place::kPortHardware,
     "req_transport_retries_exceeded",
     1,
     health::kMinute,  // the connection is broken then
     {"net.retries_exceeded", "A connection of a port broke after all retries", "hardware", "network",
      "crash", "check", kCable, CULPRIT_ERR, 0.7}},
    {Place::kPortHardware, "rx_icrc_encapsulated", 10, health::kHour,  // own, as for damaged packets
     link_fault("net.icrc_errors", "Port receives packets with a wrong checksum", 0.7)},
    {Place::kInterface, "rx_crc_errors", 10, health::kHour,  // own, as for damaged packets
     link_fault("net.crc_errors", "Interface receives damaged frames", 0.7)},
    {Place::kInterface, "tx_errors", 10, health::kHour,  // own
     link_fault("net.transmit_errors", "Interface fails to send frames", 0.6)},
    {Place::kInterface, "tx_carrier_errors", 10, health::kHour,  // own
     link_fault("net.carrier_errors", "Interface loses its carrier while it sends", 0.6)},
    {Place::kInterface,
     "rx_missed_errors",
     1000,
     health::kMinute,  // own
     {"net.receive_missed", "Host is too slow to take the frames of an interface", "platform", "cpu",
      "slowdown", "check", "Check interrupt affinity, ring sizes and CPU load of this host.", CULPRIT_WARNING,
      0.5}},
};
constexpr size_t kThresholdCount = sizeof kThresholds / sizeof *kThresholds;

// PCI Express: Advanced Error Reporting. A fatal error resets the link. Corrected ones are repeated and cost
// time only at rates; the limit is own.
constexpr double kAerCorrectedPerMinute = 100;

// What is no rate.
constexpr Kind kLinkDown = {"net.link_down",
                            "Network port went down",
                            "hardware",
                            "network",
                            "hang",
                            "check",
                            kCable,
                            CULPRIT_ERR,
                            0.8,
                            2,
                            1};
constexpr Kind kLinkFlap = {"net.link_flap",
                            "Network link goes down and comes back",
                            "hardware",
                            "network",
                            "slowdown",
                            "check",
                            kCable,
                            CULPRIT_WARNING,
                            0.85};
constexpr Kind kOutage = {"net.outage_exceeds_timeout",
                          "Network port was down for longer than NCCL retries",
                          "hardware",
                          "network",
                          "crash",
                          "isolate",
                          kCable,
                          CULPRIT_ERR,
                          0.85};
constexpr Kind kSlower = {"net.speed_degraded",
                          "Network port runs below its speed",
                          "hardware",
                          "network",
                          "slowdown",
                          "check",
                          kCable,
                          CULPRIT_WARNING,
                          0.85,
                          2,
                          2};
constexpr Kind kExited = {"net.device_gone",
                          "Network adapter disappeared",
                          "hardware",
                          "network",
                          "crash",
                          "isolate",
                          "Look into the kernel log; power-cycle the host, reseat or replace the adapter.",
                          CULPRIT_FATAL,
                          0.9,
                          2,
                          1};
constexpr Kind kQueryHangs = {"net.query_hangs",
                              "Driver does not answer queries of an adapter",
                              "hardware",
                              "driver",
                              "hang",
                              "check",
                              "Look into the kernel log for messages of the adapter's driver and firmware.",
                              CULPRIT_ERR,
                              0.7};
constexpr Kind kWidth = {"pcie.width_degraded",
                         "PCIe device runs with fewer lanes than it could",
                         "hardware",
                         "pcie",
                         "slowdown",
                         "check",
                         "Reseat the device; check its slot and riser.",
                         CULPRIT_WARNING,
                         0.8,
                         2,
                         1};
constexpr Kind kSpeed = {"pcie.speed_degraded",
                         "PCIe device runs below its speed",
                         "hardware",
                         "pcie",
                         "slowdown",
                         "check",
                         "Reseat the device; check its slot and riser, and the BIOS setting.",
                         CULPRIT_WARNING,
                         0.7,
                         2,
                         1};
constexpr Kind kAerFatal = {"pcie.aer_fatal",
                            "Fatal PCIe error of a device",
                            "hardware",
                            "pcie",
                            "crash",
                            "isolate",
                            "Reseat or replace the device; check its slot.",
                            CULPRIT_ERR,
                            0.9};
constexpr Kind kAerNonFatal = {"pcie.aer_nonfatal",
                               "Uncorrected PCIe error of a device",
                               "hardware",
                               "pcie",
                               "other",
                               "check",
                               "Reseat the device; check its slot.",
                               CULPRIT_WARNING,
                               0.6};
constexpr Kind kAerCorrected = {"pcie.aer_corrected",
                                "Many corrected PCIe errors of a device",
                                "hardware",
                                "pcie",
                                "slowdown",
                                "check",
                                "Reseat the device; check its slot.",
                                CULPRIT_WARNING,
                                0.5};

}  // namespace net
