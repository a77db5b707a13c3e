// Recognises the kind of a JSON text by its beginning, without parsing it: the text may be cut anywhere. A
// pure function; any thread.
#pragma once

#include <string_view>

namespace culprit::ingest {

// Keys at the top level of the first object. `kind` points into the text.
struct JsonHead {
  std::string_view kind;                        // the value of "kind", if it is a string
  bool has_frames = false, has_thread = false;  // keys of a stack dump
  bool has_entries = false, has_pg_config = false, has_version = false;  // keys of a Flight Recorder dump
  bool has_communicators = false;                                        // key of an NCCL RAS answer
  bool has_perf = false;  // keys of an operation of NCCL's Inspector: header, and coll_perf or p2p_perf
  bool has_header = false;
  bool has_trace = false;  // key of a trace of PyTorch's profiler
  bool complete = false;   // the end of the object was seen
};
JsonHead read_json_head(std::string_view text);

}  // namespace culprit::ingest
