#include "core/diagnose/exceptions.h"

#include <boost/test/unit_test.hpp>

#include "core/diagnose/words.h"

using namespace culprit;
using namespace culprit::diagnose;

BOOST_AUTO_TEST_CASE(an_exception_is_named_without_its_modules) {
  BOOST_TEST(exception_name("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried") == "OutOfMemoryError");
  BOOST_TEST(exception_name("KeyError: 'x'") == "KeyError");
  BOOST_TEST(exception_name("KeyboardInterrupt") == "KeyboardInterrupt");
}

BOOST_AUTO_TEST_CASE(what_the_message_says_comes_before_what_the_type_says) {
  const struct {
    const char* text;
    Component component;
    bool cascade;
  } rows[] = {
      {"KeyError: 'hidden_size'", Component::kUserCode, false},
      {"ModuleNotFoundError: No module named 'flash_attn'", Component::kDependency, false},
      {"RuntimeError: CUDA out of memory. Tried to allocate 1 GiB", Component::kGpuMemory, false},
      {"RuntimeError: Out of Memory!!! Request memory size: 1B", Component::kGpuMemory, false},
      {"pynvml.NVMLError_LibRmVersionMismatch: RM has detected an NVML/RM version mismatch.",
       Component::kDriver, false},
      {"RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:1275", Component::kNcclComm, true},
      {"OSError: [Errno 28] No space left on device", Component::kStorage, false},
      {"FileNotFoundError: [Errno 2] No such file: 'config.yaml'", Component::kUserConfig, false},
      {"json.decoder.JSONDecodeError: Expecting value", Component::kUserData, false},
      {"torch.distributed.elastic.multiprocessing.errors.ChildFailedError:", Component::kUnknown, true},
      {"ConnectionResetError: [Errno 104] Connection reset by peer", Component::kNcclComm, true},
  };
  for (const auto& row : rows) {
    BOOST_TEST_CONTEXT(row.text) {
      BOOST_TEST((exception_kind(row.text).component == row.component));
      BOOST_TEST(exception_kind(row.text).cascade == row.cascade);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_mistake_of_the_program_is_of_no_host_and_a_missing_driver_is) {
  BOOST_TEST(!exception_kind("TypeError: unsupported operand").of_host);
  BOOST_TEST(exception_kind("RuntimeError: No CUDA GPUs are available").of_host);
}

BOOST_AUTO_TEST_CASE(the_component_is_the_one_that_most_texts_speak_of) {
  const std::string network[] = {"nic <*> state INIT -> ACTIVE, carrier changes <*>", "mlx<*>: Link up",
                                 "device <*> temperature <*>"};
  BOOST_TEST((component_by_words(network) == Component::kNetwork));
  const std::string nothing[] = {"all is well"};
  BOOST_TEST((component_by_words(nothing) == Component::kUnknown));
}
