// Reads sysfs, in the child process: a driver may ask its firmware for each file, and wait for it.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace net {

// "name=value" lines; names are paths below the folder of the device.
using Reading = std::map<std::string, std::string>;
Reading parse(const std::string& text);

// Below root/sys/class/infiniband: "1/state", "1/rate", and with `counters` "1/symbol_error", …
std::string read_rdma(const std::string& root, const std::string& device, bool counters);
// Below root/sys/class/net: "operstate", "carrier_changes", "speed", and the counters of the table.
std::string read_interface(const std::string& root, const std::string& name);
// All PCI devices of a kind that training uses: "0000:9b:00.0/width", "/width_max", "/speed", "/speed_max",
// "/correctable", "/nonfatal", "/fatal", "/what". The maxima are what device and slot both can.
std::string read_pci(const std::string& root);

std::vector<std::string> rdma_devices(const std::string& root);
// Interfaces of hardware, or those of `chosen` ("eth0 veth1"; empty: all of hardware).
std::vector<std::string> interfaces(const std::string& root, const std::string& chosen);

}  // namespace net
