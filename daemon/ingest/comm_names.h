// Names of collective operations and of process groups, as NCCL, RCCL and PyTorch write them. Pure functions;
// any thread.
#pragma once

#include <optional>
#include <string_view>

#include "model/comm.h"

namespace culprit::ingest {

// "AllReduce", "_allgather_base", "all_to_allv", "reduce_scatter_tensor_coalesced". None: another name.
std::optional<CommOp> comm_op_named(std::string_view name);
// The kind of a group by its description ("default_pg", "TENSOR_MODEL_PARALLEL_GROUP", "mesh_dp").
CommGroup comm_group_named(std::string_view description);
// Bytes of an element of this type, as PyTorch writes it ("BFloat16", "Float"); 0: unknown.
uint32_t element_bytes(std::string_view type);

}  // namespace culprit::ingest
