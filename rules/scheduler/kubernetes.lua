-- Kubernetes and its training operators: pods that do not start, are evicted, or lose their node. Seen as
-- events (`kubectl get events`), as `kubectl describe`, or in an operator's log.

local function kube(row)
  rule {
    id = "scheduler.kubernetes." .. row.id, engine = 1, restart = row.restart or "same", title = row.title,
    category = row.category or "platform",
    component = row.component or "platform", severity = row.severity or "error", role = row.role,
    symptom = row.symptom or "crash", ends = row.ends, general = row.general, source = { "log", "event" },
    match = { regex = row.regex, except = row.except }, remedy = row.remedy, action = row.action or "check",
    examples = { hit = row.hit, miss = row.miss },
  }
end

kube {
  id = "oom", restart = { "never", "same" },
  title = "Container went over its memory limit and was killed", category = "user",
  component = "host_memory", severity = "fatal", action = "fix", ends = "killed",
  regex = { [[\bOOMKilled\b]], [[\bOOMKilling\b]],
    [[\bSystem OOM encountered, victim process: (?P<victim>[^,\s]+)]],
    [[(?i)container .{0,80}was OOM[- ]killed]] },
  remedy = "Raise the memory limit, or lower workers, caches and offload; /dev/shm counts too.",
  hit = { "      Reason:       OOMKilled",
    "Warning  OOMKilling  node/n3  Memory cgroup out of memory: Killed process 4955 (python)" },
  miss = { "oomScoreAdj: 2" },
}
kube {
  id = "webhook", restart = "later",
  title = "Kubernetes could not ask the webhook <webhook>", severity = "fatal",
  symptom = "launch_failure",
  regex = { [[failed calling webhook "(?P<webhook>[^"]+)"]],
    [[failed to call webhook: (?:Post|Get) "(?P<webhook>[^"]+)"]] },
  remedy = "Start the operator that serves the webhook, or remove its configuration if the operator is gone.",
  hit = { "Internal error occurred: failed calling webhook \"check.queue.example\": Post " ..
    "\"https://queue.svc:443/check\": no endpoints available for service \"queue\"" },
  miss = { "webhook \"check.queue.example\" registered" },
}
kube {
  id = "evicted_memory", title = "Pod was evicted because memory of its node ran low", severity = "fatal",
  component = "host_memory", action = "fix",
  regex = { [[The node was low on resource: memory\b]], [[node had condition: \[?MemoryPressure]] },
  remedy = "Ask for as much memory as the pod uses, or use less; look at what else runs on that node.",
  hit = { "The node was low on resource: memory. Container train was using 71Gi, which exceeds its " ..
    "request " ..
    "of 8Gi." },
  miss = { "The node was low on resource: ephemeral-storage." },
}
kube {
  id = "evicted", title = "Pod was evicted from its node", severity = "fatal", action = "retry",
  regex = { [[\bEvicted\b.*(?:low on resource|exceeds|usage|[Pp]od)]],
    [[The node was low on resource: (?P<resource>[\w-]+)]], [[Pod ephemeral local storage usage exceeds]],
    [[Usage of EmptyDir volume "(?P<volume>[^"]*)" exceeds the limit]],
    [[Usage of EmptyDir volume .* exceeds the limit]], [[\bTaintManagerEviction\b]], [[Evicting pod \S+]],
    [[\bEvictionThresholdMet\b.*Attempting to reclaim (?P<resource>[\w-]+)]],
    [[\b(?:DeletionByTaintManager|TerminationByKubelet|EvictionByEvictionAPI|DeletionByPodGC)\b]] },
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
  id = "node_not_ready", restart = "elsewhere",
  title = "Node of a pod stopped answering", category = "hardware",
  component = "unknown",
  regex = { [[\bNodeNotReady\b]], [[Node (?P<host>\S+) status is now: NodeNotReady]],
    [[node\.kubernetes\.io/(?:unreachable|not-ready)]], [[Kubelet stopped posting node status]],
    [[\bNodeLost\b|\bNodeShutdown\b]],
    [[Pod was (?:rejected|terminated) in response to imminent node shutdown]],
    [[\bNode (?P<host>\S+) has been rebooted, boot id: ]],
    [[(?P<what>PLEG is not healthy: pleg was last seen active \S+ ago)]],
    [[(?P<what>container runtime (?:is down|status check may not have completed yet))]],
    [[\bpods? "\S+" .{0,40}node "?(?P<host>[^\s"]+)"? no longer exists]] },
  except = { [[(?i)toleration|op=Exists]] }, severity = "fatal",
  remedy = "Look at that node: console, kernel log, network, kubelet.",
  hit = { "Warning  NodeNotReady  pod/trainer-3  Node is not ready", "Kubelet stopped posting node status." },
  miss = { "Tolerations: node.kubernetes.io/not-ready:NoExecute op=Exists for 300s" },
}
kube {
  id = "registry", restart = "later",
  title = "Registry of a container image does not answer", component = "network",
  symptom = "launch_failure", severity = "fatal",
  regex = { [[[Ff]ailed to (?:pull|resolve|fetch|copy)\b.{0,30}(?:image|]] ..
    [[reference)\b "?(?P<image>[^\s"]+)"?.*(?P<what>no such host|i/o timeout|connection (?:refused|]] ..
      [[reset|timed out)|TLS handshake timeout|network is unreachable|x509: .*|50[0234] \w+|]] ..
        [[unexpected EOF|context deadline exceeded)]],
    [=[\bError response from daemon: (?:Get|Head) "?(?P<url>\S+?)"?: .*(?P<what2>no such host|]=] ..
      [[i/o timeout|connection (?:refused|reset|timed out)|TLS handshake timeout|network is unreachable|]] ..
        [[Client\.Timeout exceeded|context deadline exceeded|\bEOF)]],
    [[(?P<what3>toomanyrequests): You have reached your (?:unauthenticated )?pull rate limit]] },
  remedy = "Check name service, proxy, certificates and the way from that node to the registry.",
  hit = { [[Failed to pull image "reg.example.org/train:v9": rpc error: code = Unknown desc = failed t]] ..
    [[o resolve reference: dial tcp: lookup reg.example.org: no such host]],
    [[Failed to pull image "reg/train:v9": x509: certificate signed by unknown authority]],
    [[docker: Error response from daemon: Get "https://reg.example.org/v2/": net/http: request canceled ]] ..
      [[(Client.Timeout exceeded while awaiting headers).]],
    "toomanyrequests: You have reached your pull rate limit." },
  miss = { [[Failed to pull image "reg/train:v9": rpc error: code = NotFound]] },
}
kube {
  id = "image", restart = "never",
  title = "Container image cannot be pulled", category = "user", component = "user_config",
  symptom = "launch_failure", severity = "fatal", action = "fix",
  regex = { [[\b(?:ImagePullBackOff|ErrImagePull|InvalidImageName|ErrImageNeverPull)\b]],
    [[Back-off pulling image "?(?P<image>[^\s"]+)"?]], [[Failed to pull image "?(?P<image>\S+?)"?:]],
    [[exec (?P<command>/\S+): exec format error]],
    [[(?:pull access denied|manifest unknown|manifest for \S+ not found)]] },
  remedy = "Correct the image's name, add the pull secret.",
  hit = { [[Warning  Failed  Failed to pull image "reg/train:v9": rpc error: code = NotFound]],
    "Waiting: ImagePullBackOff" },
  except = { [[no such host|i/o timeout|connection (?:refused|reset|timed out)|TLS handshake|]] ..
    [[network is unreachable|x509: |toomanyrequests: ]] },
  miss = { [[Successfully pulled image "reg/train:v9" in 41s]],
    [[Failed to pull image "reg/train:v9": dial tcp: lookup reg: no such host]] },
}
kube {
  id = "unschedulable", restart = "later",
  title = "No node has what the pod asks for", symptom = "launch_failure",
  severity = "error", category = "user", component = "user_config",
  regex = { [[\d+/\d+ nodes are available: (?P<what>[^.]+(?:\.\w+[^.]*)*)]], [[\bFailedScheduling\b]],
    [[(?P<what>Insufficient (?:nvidia\.com/gpu|amd\.com/gpu|cpu|memory|google\.com/tpu|]] ..
      [[aws\.amazon\.com/neuron\w*|rdma/\w+|vpc\.amazonaws\.com/efa))]],
    [[\bNode didn't have enough resource: (?P<what>[^,]+, requested: \d+, used: \d+)]],
    [[\bOutOf(?P<what>nvidia\.com/\S+|amd\.com/\S+|cpu|memory|pods)\b]],
    [[pod didn't trigger scale-up(?::? ?(?P<what>.*))?]],
    [[couldn't assign flavors to pod set \S+: (?P<what>.*)]],
    [[\d+/\d+ tasks in gang unschedulable: (?P<what>.*)]] },
  except = { [[Allocate failed]], [[PersistentVolumeClaims|volume node affinity|]] ..
    [[find available persistent volumes]] },
  remedy = "Compare requests, selectors and taints with the nodes; wait if they are only busy.",
  hit = { "Warning  FailedScheduling  0/12 nodes are available: 12 Insufficient nvidia.com/gpu." },
  miss = { "Successfully assigned ml/trainer-3 to n3",
    "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims." },
}
kube {
  id = "quota", restart = "never",
  title = "Quota of the namespace is used up, or the request is not allowed", category = "user",
  component = "user_config", symptom = "launch_failure", action = "fix", severity = "fatal",
  regex = { [[is forbidden: (?P<what>exceeded quota: .*|violates PodSecurity .*|User .* cannot .*|]] ..
    [[unable to validate against any .*|failed quota: .*|maximum .* usage per .*|minimum .* usage per .*)]],
    [[\bError from server \(Forbidden\): (?P<what>.*)]],
    [[\badmission webhook "(?P<webhook>[^"]+)" denied the request: (?P<what>.*)]],
    [[error looking up service account (?P<account>\S+): ]],
    [[(?:The|error: the) \w+ "[^"]*" is invalid: (?P<what>.*)]],
    [[error validating data: (?P<what>.*)]], [[no matches for kind "(?P<kind>\w+)" in version]] },
  remedy = "Ask for less, or correct the object that is named: quota, security context, service account.",
  hit = { [[Error creating: pods "train-0" is forbidden: exceeded quota: gpu-quota, requested: request]] ..
    [[s.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=16, limited: requests.nvidia.com/gpu=16]],
    [[admission webhook "validator.kueue.x-k8s.io" denied the request: spec.queueName: field is immutable]],
    [[error looking up service account ml/trainer: serviceaccount "trainer" not found]] },
  miss = { [[resourcequota/gpu-quota created]] },
}
kube {
  id = "api", restart = "later", title = "Kubernetes' API server does not answer", symptom = "launch_failure",
  regex = { [[Unable to connect to the server: (?P<what>.*)]],
    [[The connection to the server (?P<server>\S+) was refused - did you specify]],
    [[\betcdserver: (?P<what>request timed out|leader changed|mvcc: database space exceeded|]] ..
      [[too many requests)]],
    [[\bError from server \((?:Timeout|InternalError|ServiceUnavailable)\): (?P<what>.*)]] },
  remedy = "Check the control plane and the way to it; an address of another cluster stands in kubeconfig.",
  hit = { "Unable to connect to the server: dial tcp 10.0.0.1:6443: i/o timeout",
    "The connection to the server 10.0.0.1:6443 was refused - did you specify the right host or port?" },
  miss = { "Kubernetes control plane is running at https://10.0.0.1:6443" },
}
kube {
  id = "mount", restart = "later", title = "Volume of a pod cannot be mounted", component = "storage",
  symptom = "launch_failure", severity = "fatal",
  regex = { [[(?:MountVolume|AttachVolume|MapVolume)\.\w+ failed for volume "(?P<volume>[^"]+)"]],
    [[Unable to attach or mount volumes: unmounted volumes=\[(?P<volume>[^\]\s]+)]],
    [[\bFailedMount\b]], [[\bFailedAttachVolume\b]], [[MountVolume\.(?:SetUp|MountDevice) failed]],
    [[Unable to attach or mount volumes]], [[Multi-Attach error for volume "(?P<volume>[^"]+)"]],
    [[Multi-Attach error for volume]], [[persistentvolumeclaim "(?P<claim>[^"]+)" not found]],
    [[(?P<what>unbound immediate PersistentVolumeClaims)]],
    [[node\(s\) (?P<what>had volume node affinity conflict|]] ..
      [[didn't find available persistent volumes to bind)]],
    [[\bProvisioningFailed\b]] },
  except = { [[(?:configmap|secret) "[^"]+" not found]] },
  remedy = "Check claim, storage class, the driver's pods and the server.",
  hit = { [[Warning  FailedMount  MountVolume.SetUp failed for volume "pvc-1" : mount failed: exit sta]] ..
    [[tus 32]] }, miss = { "AttachVolume.Attach succeeded for volume \"pvc-1\"",
    [[MountVolume.SetUp failed for volume "cfg" : configmap "train-config" not found]] },
}
kube {
  id = "config", restart = "never",
  title = "Pod names a secret, key or setting that is not there", category = "user",
  component = "user_config", symptom = "launch_failure", severity = "fatal", action = "fix",
  regex = { [[\b(?P<what>(?:configmaps?|secrets?) "[^"]+" not found)]],
    [[couldn't find key (?P<what>\S+ in (?:Secret|ConfigMap) \S+)]],
    [[(?P<what>container has runAsNonRoot and image will run as root)]],
    [[(?P<what>cannot find volume "\S+" to mount into container "\S+")]] },
  remedy = "Create or correct what is named, in the pod's namespace.",
  hit = { [[Error: secret "wandb" not found]], [[Error: couldn't find key WANDB_API_KEY in Secret ml/wandb]],
    [[MountVolume.SetUp failed for volume "cfg" : configmap "train-config" not found]] },
  miss = { [[secret "wandb" created]] },
}
kube {
  -- Says that it failed; the runtime's own line says why (a hook, the driver, a mount).
  id = "container", restart = "never",
  title = "Container could not be created", category = "user", component = "user_config",
  general = true,
  symptom = "launch_failure", severity = "fatal", action = "fix",
  regex = { [[\b(?:CreateContainerConfigError|CreateContainerError|RunContainerError|]] ..
    [[ContainerCannotRun|StartError)\b]], [[OCI runtime create failed: (?P<what>.*)]],
    [[failed to create (?:containerd task|shim task)]] },
  remedy = "Read the reason behind it: command, mounts, secrets, GPU hook.",
  hit = { "Error: failed to create containerd task: failed to create shim task: OCI runtime create " ..
      "failed: runc create failed" },
  miss = { "Created container trainer" },
}
kube {
  id = "runtime_class", restart = "elsewhere",
  title = "Node's container runtime does not know the GPU runtime or its devices",
  component = "driver", symptom = "launch_failure", severity = "fatal", action = "fix",
  regex = { [[no runtime for "(?P<runtime>[^"]+)" is configured]],
    [[RuntimeHandler "(?P<runtime>[^"]+)" not supported]],
    [[unresolvable CDI devices (?P<device>\S+)]], [[failed to inject CDI devices: (?P<what>.*)]],
    [[unknown or invalid runtime name: (?P<runtime>[\w.-]+)]],
    [[error validating (?:driver|toolkit) installation: (?P<what>.*)]],
    [[(?:driver|toolkit) (?:daemonset|container) .*(?P<what>Could not resolve Linux kernel version)]],
    [[NodePrepareResources failed for claim (?P<claim>\S+?)(?::|$)]] },
  remedy = "Configure the GPU runtime on that node (nvidia-ctk runtime configure, CDI specs) and restart " ..
    "the container runtime; look at the GPU operator's pods.",
  hit = { [[Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox runti]] ..
    [[me: no runtime for "nvidia" is configured]],
    "failed to inject CDI devices: unresolvable CDI devices nvidia.com/gpu=all",
    "docker: Error response from daemon: unknown or invalid runtime name: nvidia." },
  miss = { [[runtime "nvidia" is configured]] },
}
kube {
  id = "addresses", restart = "elsewhere",
  title = "No address is left for pods of this node", component = "network",
  symptom = "launch_failure", severity = "fatal",
  regex = { [[(?P<what>failed to assign an IP address to container)]],
    [[(?P<what>no IP addresses available in (?:range set|network)[^"]*)]],
      [[(?P<what>InsufficientFreeAddresses\w*)]] },
  remedy = "Enlarge the subnet or the node's range of addresses; remove addresses that no pod holds.",
  hit = { [[plugin type="aws-cni" name="aws-cni" failed (add): add cmd: failed to assign an IP address]] ..
    [[ to container]] },
  miss = { "assigned an IP address to container" },
}
kube {
  id = "sandbox", title = "Pod network or sandbox could not be set up", component = "network",
  symptom = "launch_failure", general = true,
  regex = { [[\bplugin type="(?P<plugin>[^"]+)".{0,60} failed \(add\): (?P<what>.*)]],
    [[\bFailedCreatePodSandBox\b]], [[NetworkPlugin cni failed]], [[network plugin is not ready]],
    [[(?P<what>cni plugin not initialized)]],
    [[failed to (?:setup|set up) network for sandbox]] },
  remedy = "Check the network plugin's pods on that node.",
  hit = { "Warning  FailedCreatePodSandBox  Failed to create pod sandbox: rpc error" },
  miss = { "SandboxChanged  Pod sandbox changed, it will be killed and re-created." },
}
kube {
  id = "device", restart = "elsewhere",
  title = "Device plugin gave no healthy GPU", category = "hardware", component = "gpu",
  symptom = "launch_failure",
  regex = { [[(?i)device plugin.{0,80}(?:unhealthy|no healthy)]],
    [[Allocate failed due to .*(?:no healthy devices|unhealthy)]],
    [[XidCriticalError: Xid=(?P<xid>\d+) on Device=(?P<uuid>[\w-]+)]], [[XidCriticalError: Xid=(?P<xid>\d+)]],
    [[(?i)'(?P<uuid>GPU-[\w-]+)' device marked unhealthy]] },
  remedy = "Drain the node and look for the Xid.", action = "isolate",
  hit = { "Warning  UnexpectedAdmissionError  Allocate failed due to no healthy devices present; cannot " ..
      "allocate unhealthy devices nvidia.com/gpu",
    "XidCriticalError: Xid=79 on Device=GPU-1, the device will go unhealthy." },
  miss = { "Registered device plugin for 'nvidia.com/gpu' with Kubelet" },
}
kube {
  id = "devices_gone", restart = "elsewhere",
  title = "Device plugin could not give the pod what Kubernetes counted: " ..
    "<resource><what>",
  symptom = "launch_failure", severity = "fatal",
  regex = { [[Allocate failed due to requested number of devices unavailable for (?P<resource>[^.]+\.]] ..
    [[\w+/\w+)]],
    [[Allocate failed due to can't allocate unregistered device (?P<resource>[^,\s]+)]],
    [[Allocate failed due to (?P<what>.*)]], [[\bUnexpectedAdmissionError\b]] },
  except = { [[no healthy devices|unhealthy|GPU is lost]] },
  remedy = "Restart the device plugin, then look on that node for a GPU that is gone or unhealthy.",
  hit = { "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. " ..
    "Requested: 1, " ..
      "Available: 0, which is unexpected",
    "Allocate failed due to can't allocate unregistered device nvidia.com/gpu, which is unexpected" },
  miss = { "Allocate succeeded for nvidia.com/gpu",
    "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu" },
}
kube {
  id = "restarting", restart = "unknown",
  title = "Container keeps ending and is started again", role = "cascade",
  category = "unknown", component = "unknown", action = "none",
  regex = { [[\bCrashLoopBackOff\b]], [[Back-off restarting failed container]],
    [[\b(?:Job|\w+Job) (?:\S+ )?has (?:failed because it has )?reached the specified backoff limit]],
    [[\b(?:BackoffLimitExceeded|MaxFailedIndexesExceeded|PodFailurePolicy)\b]],
    [[\b\w+Job (?P<job>\S+) (?:is|has) failed because (?P<what>\d+ \w+ replica\(s\) failed)]],
    [[(?i)\bjobset failed due to reaching max number of restarts]] },
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
  regex = { [[failed liveness probe, will be restarted]],
    [[has failed its liveness probe, will be restarted]] },
  remedy = "Give the probe more time than the longest step or start takes.",
  hit = { "Container trainer failed liveness probe, will be restarted" },
  miss = { "Readiness probe failed: HTTP probe failed with statuscode: 503" },
}
