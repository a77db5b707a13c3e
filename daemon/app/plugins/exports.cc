#include "app/plugins/exports.h"

#include <elf.h>

#include <algorithm>
#include <array>

#include "base/bytes.h"

namespace culprit::app {
namespace {

// Of the linker itself.
constexpr std::array<std::string_view, 5> kOfLinker{"_init", "_fini", "_edata", "_end", "__bss_start"};

// Whether `count` entries of `size` bytes, starting at `at`, are within the bytes.
bool fits(std::string_view bytes, uint64_t at, uint64_t count, uint64_t size) {
  return at <= bytes.size() && count <= (bytes.size() - at) / size;
}

std::string_view text_at(std::string_view table, uint64_t at) {
  if (at >= table.size()) return {};
  const std::string_view rest = table.substr(at);
  return rest.substr(0, rest.find('\0'));
}

}  // namespace

Result<std::vector<std::string>> exported_symbols(std::string_view library) {
  if (library.size() < sizeof(Elf64_Ehdr) || !library.starts_with(ELFMAG))
    return fail(ErrorCode::kInvalid, "it is no ELF file");
  const auto head = get_at<Elf64_Ehdr>(library, 0);
  if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB || head.e_type != ET_DYN)
    return fail(ErrorCode::kInvalid, "it is no shared library for this machine");
  if (!fits(library, head.e_shoff, head.e_shnum, sizeof(Elf64_Shdr)))
    return fail(ErrorCode::kInvalid, "its sections are beyond its end");
  const auto section = [&](uint64_t i) {
    return get_at<Elf64_Shdr>(library, head.e_shoff + i * sizeof(Elf64_Shdr));
  };
  std::vector<std::string> out;
  for (uint64_t i = 0; i < head.e_shnum; ++i) {
    const Elf64_Shdr symbols = section(i);
    if (symbols.sh_type != SHT_DYNSYM || symbols.sh_link >= head.e_shnum) continue;
    const Elf64_Shdr names = section(symbols.sh_link);
    const uint64_t count = symbols.sh_size / sizeof(Elf64_Sym);
    if (!fits(library, symbols.sh_offset, count, sizeof(Elf64_Sym)) ||
        !fits(library, names.sh_offset, names.sh_size, 1))
      return fail(ErrorCode::kInvalid, "its symbols are beyond its end");
    const std::string_view texts = library.substr(names.sh_offset, names.sh_size);
    for (uint64_t s = 0; s < count; ++s) {
      const auto symbol = get_at<Elf64_Sym>(library, symbols.sh_offset + s * sizeof(Elf64_Sym));
      const std::string_view name = text_at(texts, symbol.st_name);
      const bool ours = symbol.st_shndx != SHN_UNDEF && ELF64_ST_BIND(symbol.st_info) == STB_GLOBAL &&
                        ELF64_ST_VISIBILITY(symbol.st_other) == STV_DEFAULT;
      if (ours && std::find(kOfLinker.begin(), kOfLinker.end(), name) == kOfLinker.end())
        out.emplace_back(name);
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace culprit::app
