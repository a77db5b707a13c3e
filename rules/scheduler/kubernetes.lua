-- Kubernetes and its training operators: pods that do not start, are evicted, or lose their node. Seen as
-- events (`kubectl get events`), as `kubectl describe`, or in an operator's log.

local function kube(row)
  rule {
    id = "scheduler.kubernetes." .. row.id, engine = 1, title = row.title,
    category = row.category or "platform",
    component = row.component or "platform", severity = row.severity or "error", role = row.role,
    symptom = row.symptom or "crash", general = row.general, source = { "log", "event" },
    match = { regex = row.regex, except = row.except }, remedy = row.remedy, action = row.action or "check",
    examples = { hit = row.hit, miss = row.miss },
  }
end

kube {
  id = "oom", title = "Container went over its memory limit and was killed", category = "user",
  component = "host_memory", severity = "fatal", action = "fix",
  regex = { [[\bOOMKilled\b]], [[\bOOMKilling\b]],
    [[(?i)container .{0,80}was OOM[- ]killed]] },
  remedy = "Raise the memory limit, or lower workers, caches and offload; /dev/shm counts too.",
  hit = { "      Reason:       OOMKilled",
    "Warning  OOMKilling  node/n3  Memory cgroup out of memory: Killed process 4955 (python)" },
  miss = { "oomScoreAdj: 2" },
}
kube {
  id = "evicted", title = "Pod was evicted from its node", severity = "fatal", action = "retry",
  regex = { [[\bEvicted\b.*(?:low on resource|exceeds|usage|[Pp]od)]],
    [[The node was low on resource: (?P<resource>[\w-]+)]], [[Pod ephemeral local storage usage exceeds]],
    [[Usage of EmptyDir volume .* exceeds the limit]], [[\bTaintManagerEviction\b]], [[Evicting pod \S+]] },
  remedy = "See which resource was short (disk, memory); set requests and limits for it.",
  hit = { "Warning  Evicted  pod/trainer-3  The node was low on resource: ephemeral-storage." },
  miss = { "eviction manager: started" },
}
kube {
  id = "preempted", title = "Pod was preempted or its spot machine was taken back", severity = "fatal",
  action = "retry",
  regex = { [[\bPreempt(?:ed|ing)\b.{0,80}\b(?:by|pod|node|workload|to make room)]],
    [[(?i)\bspot (?:instance|vm|node|block|capacity)s?\b.{0,40}(?:interruption|reclaim|preempt|terminat)]],
    [[EC2 Spot Instance (?:Interruption|Termination)]],
    [[(?i)instance[- ]action.{0,40}"?(?:terminate|stop|hibernate)"]], [[compute\.instances\.preempted]],
    [[DisruptionTarget.*(?:Preemption|Deletion|Eviction)]],
    [[(?i)scheduled maintenance .{0,60}(?:terminate|migrate|live)]] },
  except = { [[(?i)preemption (?:policy|disabled|is not helpful|victims found)]] },
  remedy = "Requeue it; save on the warning; use another capacity class if it happens often.",
  hit = { "Normal  Preempted  pod/trainer-3  Preempted by prod/serve-1 on node n3",
    "EC2 Spot Instance Interruption Warning: instance i-0123 will be reclaimed in 2 minutes" },
  miss = { "0/12 nodes are available: preemption: 0/12 nodes are available: No preemption victims found" },
}
kube {
  id = "node_not_ready", title = "Node of a pod stopped answering", category = "hardware",
  component = "unknown",
  regex = { [[\bNodeNotReady\b]], [[Node (?P<host>\S+) status is now: NodeNotReady]],
    [[node\.kubernetes\.io/(?:unreachable|not-ready)]], [[Kubelet stopped posting node status]],
    [[\bNodeLost\b|\bNodeShutdown\b]],
    [[Pod was (?:rejected|terminated) in response to imminent node shutdown]] },
  except = { [[(?i)toleration|op=Exists]] }, severity = "fatal",
  remedy = "Look at that node: console, kernel log, network, kubelet.",
  hit = { "Warning  NodeNotReady  pod/trainer-3  Node is not ready", "Kubelet stopped posting node status." },
  miss = { "Tolerations: node.kubernetes.io/not-ready:NoExecute op=Exists for 300s" },
}
kube {
  id = "image", title = "Container image cannot be pulled", category = "user", component = "user_config",
  symptom = "launch_failure", severity = "fatal", action = "fix",
  regex = { [[\b(?:ImagePullBackOff|ErrImagePull|InvalidImageName|ErrImageNeverPull)\b]],
    [[Failed to pull image "?(?P<image>\S+?)"?:]],
    [[(?:pull access denied|manifest unknown|manifest for \S+ not found)]],
    [[toomanyrequests: You have reached your (?:unauthenticated )?pull rate limit]] },
  remedy = "Correct the image's name, add the pull secret; a rate limit needs a mirror.",
  hit = { [[Warning  Failed  Failed to pull image "reg/train:v9": rpc error: code = NotFound]],
    "Waiting: ImagePullBackOff" }, miss = { [[Successfully pulled image "reg/train:v9" in 41s]] },
}
kube {
  id = "unschedulable", title = "No node has what the pod asks for", symptom = "launch_failure",
  severity = "error", category = "user", component = "user_config",
  regex = { [[\d+/\d+ nodes are available: ]], [[\bFailedScheduling\b]],
    [[Insufficient (?:nvidia\.com/gpu|amd\.com/gpu|cpu|memory|google\.com/tpu|]] ..
      [[aws\.amazon\.com/neuron\w*|rdma/\w+|vpc\.amazonaws\.com/efa)]], [[\bUnexpectedAdmissionError\b]] },
  remedy = "Compare requests, selectors and taints with the nodes; wait if they are only busy.",
  hit = { "Warning  FailedScheduling  0/12 nodes are available: 12 Insufficient nvidia.com/gpu." },
  miss = { "Successfully assigned ml/trainer-3 to n3" },
}
kube {
  id = "mount", title = "Volume of a pod cannot be mounted", component = "storage",
  symptom = "launch_failure", severity = "fatal",
  regex = { [[\bFailedMount\b]], [[\bFailedAttachVolume\b]], [[MountVolume\.(?:SetUp|MountDevice) failed]],
    [[Unable to attach or mount volumes]], [[Multi-Attach error for volume]],
    [[persistentvolumeclaim "\S+" not found]] },
  remedy = "Check claim, storage class, the driver's pods and the server.",
  hit = { [[Warning  FailedMount  MountVolume.SetUp failed for volume "pvc-1" : mount failed: exit ]] ..
      [[status 32]] }, miss = { "AttachVolume.Attach succeeded for volume \"pvc-1\"" },
}
kube {
  -- Says that it failed; the runtime's own line says why (a hook, the driver, a mount).
  id = "container", title = "Container could not be created", category = "user", component = "user_config",
  general = true,
  symptom = "launch_failure", severity = "fatal", action = "fix",
  regex = { [[\b(?:CreateContainerConfigError|CreateContainerError|RunContainerError|ContainerCannotRun|]] ..
      [[StartError)\b]], [[OCI runtime create failed: ]], [[(?:configmap|secret) "\S+" not found]],
    [[failed to create (?:containerd task|shim task)]] },
  remedy = "Read the reason behind it: command, mounts, secrets, GPU hook.",
  hit = { "Error: failed to create containerd task: failed to create shim task: OCI runtime create " ..
      "failed: runc create failed", [[Error: secret "wandb" not found]] },
  miss = { "Created container trainer" },
}
kube {
  id = "sandbox", title = "Pod network or sandbox could not be set up", component = "network",
  symptom = "launch_failure",
  regex = { [[\bFailedCreatePodSandBox\b]], [[NetworkPlugin cni failed]], [[network plugin is not ready]],
    [[failed to (?:setup|set up) network for sandbox]] },
  remedy = "Check the network plugin's pods on that node.",
  hit = { "Warning  FailedCreatePodSandBox  Failed to create pod sandbox: rpc error" },
  miss = { "SandboxChanged  Pod sandbox changed, it will be killed and re-created." },
}
kube {
  id = "device", title = "Device plugin gave no healthy GPU", category = "hardware", component = "gpu",
  symptom = "launch_failure",
  regex = { [[(?i)device plugin.{0,80}(?:unhealthy|no healthy)]],
    [[Allocate failed due to .*(?:no healthy devices|unhealthy)]], [[XidCriticalError: Xid=(?P<xid>\d+)]] },
  remedy = "Drain the node and look for the Xid.", action = "isolate",
  hit = { "Warning  UnexpectedAdmissionError  Allocate failed due to no healthy devices present; cannot " ..
      "allocate unhealthy devices nvidia.com/gpu",
    "XidCriticalError: Xid=79 on Device=GPU-1, the device will go unhealthy." },
  miss = { "Registered device plugin for 'nvidia.com/gpu' with Kubelet" },
}
kube {
  id = "restarting", title = "Container keeps ending and is started again", role = "cascade",
  category = "unknown", component = "unknown", action = "none",
  regex = { [[\bCrashLoopBackOff\b]], [[Back-off restarting failed container]],
    [[Job has reached the specified backoff limit]], [[\bBackoffLimitExceeded\b]] },
  remedy = "Read the container's previous log.",
  hit = { "Warning  BackOff  Back-off restarting failed container trainer in pod trainer-3" },
  miss = { "Started container trainer" },
}
kube {
  id = "deadline", title = "Job ran longer than it may", severity = "fatal", symptom = "other",
  action = "retry",
  regex = { [[\bDeadlineExceeded\b.*(?:[Jj]ob|[Pp]od)]], [[activeDeadlineSeconds.*DeadlineExceeded]],
    [[(?:Job|Pod) was active on the node longer than the specified deadline]] },
  remedy = "Raise activeDeadlineSeconds.",
  hit = { "Warning  DeadlineExceeded  Job was active longer than specified deadline" },
  miss = { "deadline 3600 s" },
}
kube {
  id = "probe", title = "Kubernetes restarts a container that does not answer its probe", category = "user",
  component = "user_config", severity = "error", action = "fix",
  regex = { [[failed liveness probe, will be restarted]], [[has failed its liveness probe, will be ]] ..
      [[restarted]] },
  remedy = "Give the probe more time than the longest step or start takes.",
  hit = { "Container trainer failed liveness probe, will be restarted" },
  miss = { "Readiness probe failed: HTTP probe failed with statuscode: 503" },
}
