-- Prompts of shells in a log that a person copied: the output of a command that reads this machine has no
-- header, so the prompt names its host. A command that starts work elsewhere (srun, ssh, a script) is none.

local reads = [[(?:sudo (?:-\w+ )*)?(?:/\S*/)?(?:nvidia-smi|nvidia-bug-report|dcgmi|dmesg|journalctl|]] ..
  [[rocm-smi|rocminfo|amd-smi|npu-smi|hl-smi|xpu-smi|neuron-ls|tpu-info|ibstat(?:us)?|ibv_devinfo|lspci|]] ..
  [[lsmod|modprobe|ipmitool|ethtool|mlxlink|(?:cat|tail|less|grep .{0,40}) /var/log/)]]

rule {
  id = "process.shell", engine = 1, restart = "unknown", title = "Shell on <shell_host> read the machine",
  category = "unknown", component = "unknown", severity = "info", action = "none",
  match = { regex = {
    [=[^(?:\([\w.-]+\) )?\[?[a-z_][\w.-]*@(?P<shell_host>[A-Za-z][\w.-]*)[: ][^$#]{0,80}[$#] ?]=] .. reads,
    [=[^(?:\([\w.-]+\) )?(?P<shell_host>[a-z][\w-]*\d[\w.-]*):[~/][^$#]{0,80}[$#] ]=] .. reads },
    except = { [=[@(?:localhost|[0-9a-f]{12})[: ]]=] } },  -- a container's id is no host
  remedy = "None.",
  examples = { hit = { "[maria@node-7 ~]$ nvidia-smi", "root@gpu7:/var/log# dmesg | tail",
      "node7:~$ sudo nvidia-smi -q" },
    miss = { "[maria@login-1 ~]$ srun -N 4 nvidia-smi", "root@3f2a1b4c5d6e:/# nvidia-smi" } },
}
