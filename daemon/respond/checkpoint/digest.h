// SHA-256 of a file's bytes, in parts. One thread.
#pragma once

#include <memory>
#include <string_view>

#include "model/copies.h"

struct evp_md_ctx_st;

namespace culprit::respond::checkpoint {

class Sha256 {
 public:
  Sha256();
  void add(std::string_view bytes);
  // The digest; the next one begins.
  copies::Digest finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

copies::Digest sha256(std::string_view bytes);

}  // namespace culprit::respond::checkpoint
