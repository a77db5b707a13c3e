-- What the program does with tensors: shapes, devices, types, gradients, wrapping in DDP and FSDP.

local function misuse(row)
  rule {
    id = "pytorch.tensor." .. row.id, engine = 1, restart = row.restart or "never",
    title = row.title, category = row.category or "user",
    component = row.component or "user_code", severity = row.severity or "fatal", general = row.general,
    match = { regex = row.regex, except = row.except }, remedy = row.remedy, action = "fix",
    examples = { hit = row.hit, miss = row.miss },
  }
end

misuse {
  id = "shape", title = "Shapes of tensors do not fit",
  regex = { [[mat1 and mat2 shapes cannot be multiplied]],
    [[The size of tensor a \(\d+\) must match the size of tensor b]],
    [[shape '\[[-\d, ]*\]' is invalid for input of size]],
    [[Sizes of tensors must match except in dimension]],
    [[stack expects each tensor to be equal size]],
    [[each element in list of batch should be of equal size]],
    [[Expected input batch_size \(\d+\) to match target batch_size]],
    [[(?:Given groups=\d+, weight of size|expected input\[.*to have \d+ channels)]],
    [[split_with_sizes expects split_sizes to sum]],
    [[view size is not compatible with input tensor's size]],
    [[The expanded size of the tensor \(\d+\) must match]],
    [[Tensors must have same number of dimensions: got]],
    [[Dimension out of range \(expected to be in range]],
    [[output with shape \[.*\] doesn't match the broadcast shape]], [[mask\.size\(\d+\) == query_seq_len]],
    [[einsum\(\): .* does not broadcast|number of dims don't match in permute]],
    [[Expected size for first two dimensions of batch2 tensor]],
    [[operands could not be broadcast together with shapes]] },
  remedy = "Print the shapes before the line named; padding, vocabulary and parallel split are the usual " ..
      "places.",
  hit = { "RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x768 and 1024x4096)",
    "RuntimeError: shape '[8, 12, 64]' is invalid for input of size 7680",
    "ValueError: operands could not be broadcast together with shapes (3,) (4,)" },
  miss = { "size mismatch for lm_head.weight: copying a param with shape" },
}
misuse {
  id = "device", title = "Tensors of one operation are on different devices",
  regex = { [[Expected all tensors to be on the same device]],
    [[Input type \(.*\) and weight type \(.*\) should be the same]],
    [[indices should be either on cpu or on the same device]],
    [[Expected \w+ tensor, please check whether the input tensor device]],
    [[Tensors must be CUDA and dense]], [[module must have its parameters and buffers on device]],
    [[Expected object of device type \w+ but got device type]] },
  remedy = "Move input, buffers and constants to the model's device.",
  hit = { "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, " ..
      "cuda:0 and cpu!",
    "RuntimeError: Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be " ..
        "the same" },
  miss = { "All tensors moved to cuda:0" },
}
misuse {
  id = "dtype", title = "Tensors have the wrong type of number",
  regex = { [[expected (?:m1 and m2|mat1 and mat2|scalar type|self and mat2)\b.*(?:same dtype|]] ..
    [[but (?:found|got))]],
    [[Expected tensor for argument #\d+ '\w+' to have (?:one of the following )?scalar types?]],
    [[result type \w+ can't be cast to the desired output type]], [[not implemented for '(?P<dtype>\w+)']],
    [[Index put requires the source and destination dtypes match]],
    [[FlashAttention only supports? (?:fp16|Ampere)]],
    [[Found dtype \w+ but expected \w+]], [[Got unsupported ScalarType]] },
  remedy = "Cast the tensor, or take an operation or precision that the device supports.",
  hit = { "RuntimeError: expected mat1 and mat2 to have the same dtype, but got: float != c10::BFloat16",
    [[RuntimeError: "addmm_impl_cpu_" not implemented for 'Half']],
    "RuntimeError: expected scalar type Half but found Float" },
  miss = { "Using dtype torch.bfloat16" },
}
misuse {
  id = "contiguous", title = "Tensor is not contiguous where it has to be",
  regex = { [[Tensors must be contiguous]], [[tensor (?:must be|is not) contiguous]],
    [[input must be contiguous]] },
  remedy = "Call .contiguous() before the operation.",
  hit = { "ValueError: Tensors must be contiguous" }, miss = { "using contiguous memory format" },
}
misuse {
  id = "inplace", title = "Tensor that the backward pass needs was changed in place",
  regex = { [[has been modified by an inplace operation]],
    [[a leaf Variable that requires grad (?:is being used in|has been used in) an in-place]],
    [[Output \d+ of \w+ is a view and (?:is being|its base or another view).*modified inplace]] },
  remedy = "Replace the in-place operation; anomaly detection names the forward line.",
  hit = { "RuntimeError: one of the variables needed for gradient computation has been modified by an " ..
      "inplace operation" },
  miss = { "inplace operations enabled" },
}
misuse {
  id = "graph", title = "Backward pass has no graph to run through",
  regex = { [[Trying to backward through the graph a second time]],
    [[does not require grad and does not have a grad_fn]],
    [[grad can be implicitly created only for scalar outputs]],
    [[One of the differentiated Tensors (?:appears to not|does not)]],
    [[element \d+ of tensors does not require grad]], [[ValueError: optimizer got an empty parameter list]] },
  remedy = "See where the loss is cut off from the parameters (detach, no_grad, frozen weights).",
  hit = { "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn",
    "RuntimeError: Trying to backward through the graph a second time" },
  miss = { "UserWarning: None of the inputs have requires_grad=True. Gradients will be None" },
}
misuse {
  id = "checkpoint", title = "Recomputed forward pass differs from the first one",
  regex = { [[CheckpointError: torch\.utils\.checkpoint: (?:A different number|Recomputed values)]],
    [[torch\.utils\.checkpoint: (?:A different number of tensors|Recomputed values for the following)]] },
  remedy = "Keep the forward pass the same when it is repeated (random state, dtype, caches off).",
  hit = { "torch.utils.checkpoint.CheckpointError: torch.utils.checkpoint: A different number of " ..
      "tensors was saved" },
  miss = { "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly" },
}
misuse {
  id = "ddp_unused", title = "Parameters got no gradient under data parallelism",
  regex = { [[Expected to have finished reduction in the prior iteration before starting a new one]],
    [[Parameters? (?:indices|at index).{0,80}(?:did not receive grad|that did not receive|]] ..
      [[has been marked as ready twice)]],
    [[Expected to mark a variable ready only once]],
    [[DDP expects same model across all ranks|appears not to match (?:sizes|strides) of the same param]] },
  remedy = "Use all outputs in the loss on all ranks, or find_unused_parameters; the same model everywhere.",
  hit = { "RuntimeError: Expected to have finished reduction in the prior iteration before starting a " ..
      "new one.",
    "RuntimeError: Expected to mark a variable ready only once." },
  miss = { "Warning: find_unused_parameters=True was specified in DDP constructor, but did not find " ..
      "any unused" },
}
misuse {
  id = "fsdp", title = "FSDP was set up the wrong way", component = "user_config",
  regex = { [[(?:ValueError|RuntimeError|AssertionError): .*(?:FSDP|FullyShardedDataParallel|]] ..
    [[FlatParameter).*(?:must|expects?|requires?|cannot|not)\b]],
    [[Must flatten tensors with uniform (?:dtype|requires_grad)]],
    [[Expects .* to be in (?:HandleTrainingState|TrainingState)\.]] },
  remedy = "Check wrapping policy, mixed dtypes and use_orig_params; call the wrapped module's forward.",
  hit = { "ValueError: Must flatten tensors with uniform dtype but got torch.bfloat16 and torch.float32",
    "AssertionError: FSDP assumes weight to be sharded, it cannot be empty" },
  miss = { "FSDP will all-gather and process each parameter" },
}
misuse {
  id = "scaler", title = "Gradient scaler and precision do not fit", component = "user_config",
  regex = { [[Attempting to unscale FP16 gradients]],
    [[unscale_\(\) has already been called on this optimizer]],
    [[No inf checks were recorded for this optimizer]], [[Attempted \w+ but _scale is None]] },
  remedy = "Keep master weights in fp32 (or use bf16 without a scaler); one unscale per step.",
  hit = { "ValueError: Attempting to unscale FP16 gradients." }, miss = { "GradScaler is enabled" },
}
misuse {
  id = "internal", restart = "unknown", title = "PyTorch failed an internal check", component = "framework",
  category = "framework",
  general = true,
  regex = { [[INTERNAL ASSERT FAILED at]], [[please report a bug to PyTorch]] },
  remedy = "Read the condition; try another version or without the feature named.",
  hit = { "RuntimeError: !block->expandable_segment_ INTERNAL ASSERT FAILED at " ..
      "\"CUDACachingAllocator.cpp\":3144" },
  miss = { "assert passed" },
}
misuse {
  id = "dtensor", title = "Distributed and plain tensors are mixed in one operation",
  regex = { [[(?P<op>aten[.\w]+): got mixed torch\.Tensor and DTensor]],
    [[All operands in an operation must be (?:DTensor|on the same device mesh)]] },
  remedy = "Make every operand a DTensor of the same mesh, or take the local tensors.",
  hit = { "RuntimeError: aten.mm.default: got mixed torch.Tensor and DTensor, need to convert all " ..
      "torch.Tensor " ..
      "to DTensor before calling distributed operators!" },
  miss = { "DTensor sharding propagated" },
}
misuse {
  id = "shared_cuda", title = "CUDA tensor was passed on to a second process",
  regex = { [[Attempted to send CUDA tensor received from another process]],
    [[Producer process has been terminated before all shared CUDA tensors released]] },
  remedy = "Send host tensors, or keep the process that made the tensor alive.",
  hit = { "RuntimeError: Attempted to send CUDA tensor received from another process; this is not " ..
      "currently " ..
      "supported." },
  miss = { "CUDA IPC is used" },
}
misuse {
  id = "sharding", title = "Operation has no rule for sharded tensors: <op>", category = "framework",
  component = "framework",
  regex = { [[Operator (?P<op>\S+) does not have a (?:DistTensor rule|sharding (?:strategy|]] ..
    [[rule)) registered]] },
  remedy = "Compute this operation on local tensors, or take a version that knows it.",
  hit = { "NotImplementedError: Operator aten.foo.default does not have a sharding strategy registered." },
  miss = { "Registered a sharding strategy for aten.foo.default" },
}
