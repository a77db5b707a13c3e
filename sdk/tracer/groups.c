/* Kinds of groups, from the names in frameworks. */
#include <strings.h>

#include "tracer.h"

typedef struct known_name {
  const char* begins; /* of the name, in any case */
  uint8_t group;
} known_name;

/* PyTorch names the group of all ranks default_pg, groups of a DeviceMesh mesh_<dimension>, and others by the
 * user's group_desc. Megatron-LM uses <KIND>_PARALLEL_GROUP with a suffix; DeepSpeed uses the short names of
 * dimensions. A group over several dimensions (model-parallel, embeddings) has no kind: none is better than a
 * wrong one. Longer prefixes come before shorter ones. */
static const known_name known[] = {
    {"default_pg", CULPRIT_WORLD},
    {"mpi_comm_world", CULPRIT_WORLD},
    {"world", CULPRIT_WORLD},
    {"expert_data_parallel", CULPRIT_EDP},
    {"intra_expert_data_parallel", CULPRIT_EDP},
    {"expert_model_parallel", CULPRIT_EP},
    {"expert_parallel", CULPRIT_EP},
    {"tensor_model_parallel", CULPRIT_TP},
    {"tensor_parallel", CULPRIT_TP},
    {"pipeline_model_parallel", CULPRIT_PP},
    {"pipeline_parallel", CULPRIT_PP},
    {"context_parallel", CULPRIT_CP},
    {"data_parallel", CULPRIT_DP},
};

/* Short name of a dimension, alone or followed by _ - : and a number or another word. */
static const known_name dimensions[] = {
    {"dp", CULPRIT_DP}, {"ddp", CULPRIT_DP}, {"fsdp", CULPRIT_DP}, {"tp", CULPRIT_TP},
    {"pp", CULPRIT_PP}, {"ep", CULPRIT_EP},  {"cp", CULPRIT_CP},   {"edp", CULPRIT_EDP},
};

uint8_t tracer_group_of(const char* name) {
  if (!name) return CULPRIT_GROUP_UNKNOWN;
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
    if (strncasecmp(name, known[i].begins, strlen(known[i].begins)) == 0) return known[i].group;
  if (strncasecmp(name, "mesh_", 5) == 0) name += 5;
  for (size_t i = 0; i < sizeof dimensions / sizeof *dimensions; ++i) {
    const size_t length = strlen(dimensions[i].begins);
    if (strncasecmp(name, dimensions[i].begins, length) != 0) continue;
    if (name[length] == 0 || strchr(":-", name[length])) return dimensions[i].group;
    /* dp_shard and dp_replicate are data parallel; dp_tp is two dimensions. */
    if (strncasecmp(name + length, "_shard", 6) == 0 || strncasecmp(name + length, "_repl", 5) == 0 ||
        (name[length] == '_' && name[length + 1] >= '0' && name[length + 1] <= '9'))
      return strchr(name + length + 1, '_') ? CULPRIT_GROUP_UNKNOWN : dimensions[i].group;
  }
  return CULPRIT_GROUP_UNKNOWN;
}
