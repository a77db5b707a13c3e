#!/bin/bash
# HealthCheckProgram=/usr/local/sbin/slurm-node-check.sh, HealthCheckInterval=300, HealthCheckNodeState=IDLE.
# Drains this node if a check fails. An unknown answer drains nothing, and a node that is out stays as it is.
node=${SLURMD_NODENAME:-$(hostname -s)}
line=$(culprit node-check --full) && exit 0
[ $? -eq 1 ] || exit 0
scontrol -o show node "$node" | grep -Eq 'State=[A-Z+]*(DRAIN|DOWN|FAIL|MAINT)' && exit 0
scontrol update NodeName="$node" State=DRAIN Reason="node-check: ${line:0:120}"
