// The same engine from C++: one source for each file named, ownership in unique_ptr.
// From the top of the repository, once for the library, then for the program, which remembers where it lies:
//   cmake --preset release && cmake --build --preset release --target culprit_shared
//   c++ -std=c++17 -I sdk/include examples/embed/embed.cpp -L build/release/lib
//     -Wl,-rpath,"$PWD/build/release/lib" -lculprit -o embed
//   ./embed *.log
#include <culprit/embed.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>

int main(int argc, char** argv) {
  std::string error(256, '\0');
  const std::unique_ptr<culprit_job, decltype(&culprit_destroy)> job(
      culprit_create(nullptr, error.data(), error.size()), &culprit_destroy);
  if (!job) {
    std::cerr << "embed: " << error.c_str() << '\n';
    return 2;
  }
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    if (!file) {
      std::cerr << "embed: " << argv[i] << ": cannot be read\n";
      return 2;
    }
    const culprit_source info{sizeof info, argv[i], nullptr, -1, -1};
    const int source = culprit_open(job.get(), &info);
    std::string buffer(1 << 16, '\0');
    while (file.read(buffer.data(), static_cast<std::streamsize>(buffer.size())), file.gcount() > 0) {
      if (culprit_feed(job.get(), source, buffer.data(), static_cast<size_t>(file.gcount())) == 0) continue;
      std::cerr << "embed: " << culprit_error(job.get()) << '\n';
      return 2;
    }
    culprit_close(job.get(), source);
  }
  const std::unique_ptr<char, decltype(&culprit_free)> report(culprit_report(job.get()), &culprit_free);
  if (report) std::cout << report.get() << '\n';
}
