// The evidence of one source, in an archive's own segments and in objects of the bucket, as one stream: own
// segments first, objects where these have nothing. Pure.
#pragma once

#include <string>
#include <vector>

#include "store/archive.h"
#include "store/bucket/object.h"

namespace culprit::store::bucket {

// What an object has of the wanted sources. `object`: the number that Extent::segment gets.
struct FoundObject {
  uint64_t object = 0;
  std::string archive;  // as in its row, like `number`
  uint64_t number = 0;
  std::vector<ObjectLog> logs;
};
// An object whose index cannot be read; without archive: the rows of objects.
struct UnreadObject {
  std::string archive;
  uint64_t number = 0;
  std::string why;
};

// Adds to `local` (Archive::stored, with places) what the objects have. A gap that an unread object may fill
// says why; so does one behind the last byte, where the next object of that archive is unread.
void merge(std::vector<HostStream>& local, const std::vector<FoundObject>& objects,
           const std::vector<UnreadObject>& unread);

// Leaves what `query` asks for.
void restrict_to(std::vector<ObjectLog>& logs, const StoredQuery& query);

}  // namespace culprit::store::bucket
