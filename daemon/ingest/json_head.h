// What the beginning of a JSON text tells of its kind, without parsing it: the text may be cut off anywhere.
// A pure function; any thread.
#pragma once

#include <string_view>

namespace culprit::ingest {

// The keys of the first object's own level. `kind` points into the text.
struct JsonHead {
  std::string_view kind;                        // the value of "kind", where it is a string
  bool has_frames = false, has_thread = false;  // of a stack dump
  bool has_entries = false, has_pg_config = false, has_version = false;  // of a flight recorder's dump
  bool complete = false;                                                 // the object's end was seen
};
JsonHead read_json_head(std::string_view text);

}  // namespace culprit::ingest
