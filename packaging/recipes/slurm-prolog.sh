#!/bin/bash
# Prolog=/usr/local/sbin/slurm-prolog.sh, with SchedulerParameters=nohold_on_prolog_fail: a node against which
# something is held gets no job. Slurm drains it, and starts the job on other nodes two minutes later. Without
# the parameter the job is held until `scontrol release`. An unknown answer, and one that is late or missing,
# holds no job back.
line=$(timeout 5 culprit node-check 2>/dev/null)
[ $? -eq 1 ] || exit 0
echo "node-check: $line" >&2
exit 1
