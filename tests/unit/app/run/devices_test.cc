#include "app/run/devices.h"

#include <fmt/format.h>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "../fixtures.h"

namespace culprit::app {
using test::Folder;

namespace {

// A host with four GPUs, at addresses whose order is not that of the folder.
struct GpuHost {
  explicit GpuHost(const std::vector<std::string>& models = {"H100", "H100", "H100", "H100"}) {
    for (size_t i = 0; i < models.size(); ++i) {
      const std::string address = fmt::format("0000:{:02x}:00.0", 0x1b + 0x40 * i);
      folder.write("proc/driver/nvidia/gpus/" + address + "/information",
                   fmt::format("Model: \t\t {}\nIRQ:   \t\t 18\nGPU UUID: \t GPU-0000000{}-aaaa\n"
                               "Bus Location: \t {}\nDevice Minor: \t 3\n",
                               models[i], i, address));
    }
  }
  Folder folder;
};

Lookup variables(std::string list, std::string order = "") {
  return [list = std::move(list),
          order = std::move(order)](std::string_view name) -> std::optional<std::string> {
    if (name == "CUDA_VISIBLE_DEVICES" && !list.empty()) return list;
    if (name == "CUDA_DEVICE_ORDER" && !order.empty()) return order;
    return std::nullopt;
  };
}

struct Device {
  std::string visible, name, remaining;  // "" of `remaining`: the name is none of them
};
std::ostream& operator<<(std::ostream& out, const Device& c) { return out << c.visible << " " << c.name; }

const Device kDevices[] = {
    {"", "0000:5b:00", "GPU-00000000-aaaa,GPU-00000002-aaaa,GPU-00000003-aaaa"},
    {"", "PCI:00000000:5B:00.0", "GPU-00000000-aaaa,GPU-00000002-aaaa,GPU-00000003-aaaa"},
    {"", "5b:00", "GPU-00000000-aaaa,GPU-00000002-aaaa,GPU-00000003-aaaa"},
    {"", "0001:5b:00", ""},
    {"", "5b:00.1", ""},
    {"", "GPU 3", "GPU-00000000-aaaa,GPU-00000001-aaaa,GPU-00000002-aaaa"},
    {"", "device 0", "GPU-00000001-aaaa,GPU-00000002-aaaa,GPU-00000003-aaaa"},
    {"", "GPU 4", ""},
    {"", "GPU-00000002-AAAA", "GPU-00000000-aaaa,GPU-00000001-aaaa,GPU-00000003-aaaa"},
    {"3,1", "GPU 0", "GPU-00000001-aaaa"},
    {"GPU-00000002-aaaa,GPU-00000000", "GPU 1", "GPU-00000002-aaaa"},
    {"3,1", "0000:1b:00", ""},
    {"7", "GPU 0", ""},
    {"MIG-1", "GPU 0", ""},
    {"", "mlx5_0", ""},
};

}  // namespace

BOOST_AUTO_TEST_SUITE(devices)

BOOST_DATA_TEST_CASE(a_device_is_left_out_by_address_number_or_uuid, boost::unit_test::data::make(kDevices)) {
  const GpuHost host;
  const VisibleGpus visible = visible_gpus(variables(sample.visible), host.folder.path.string());
  const auto remaining = without(visible, {sample.name});
  BOOST_TEST((remaining ? uuid_list(*remaining) : "") == sample.remaining);
}

BOOST_AUTO_TEST_CASE(a_number_names_no_device_where_cuda_orders_by_speed) {
  const GpuHost host({"H100", "A100", "H100", "H100"});
  BOOST_TEST(!without(visible_gpus(variables(""), host.folder.path.string()), {"GPU 1"}).has_value());
  BOOST_TEST(
      without(visible_gpus(variables("", "PCI_BUS_ID"), host.folder.path.string()), {"GPU 1"}).has_value());
}

BOOST_AUTO_TEST_CASE(a_device_without_a_uuid_is_not_visible) {
  const GpuHost host;
  host.folder.write("proc/driver/nvidia/gpus/0000:5b:00.0/information",
                    "Model: Unknown\nGPU UUID: GPU-?\?\?\?\?\?\?\?-?\?\?\?\nBus Location: 0000:5b:00.0\n");
  BOOST_TEST(visible_gpus(variables(""), host.folder.path.string()).gpus.size() == 3);
}

BOOST_AUTO_TEST_CASE(gpus_of_amd_have_the_names_that_rocr_takes) {
  const Folder folder;
  const std::string nodes = "sys/class/kfd/kfd/topology/nodes/";
  folder.write(nodes + "0/properties", "simd_count 0\nlocation_id 0\nunique_id 0\n");
  folder.write(nodes + "1/properties", "simd_count 304\nlocation_id 768\ndomain 0\nunique_id 171\n");
  const VisibleGpus visible = visible_gpus(variables(""), folder.path.string());
  BOOST_TEST(visible.variable == "ROCR_VISIBLE_DEVICES");
  BOOST_TEST(uuid_list(visible) == "GPU-00000000000000ab");
  BOOST_TEST(without(visible, {"0000:03:00.0"}).has_value());
}

BOOST_AUTO_TEST_CASE(a_host_without_a_driver_has_no_gpu) {
  BOOST_TEST(visible_gpus(variables(""), Folder().path.string()).gpus.empty());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace culprit::app
