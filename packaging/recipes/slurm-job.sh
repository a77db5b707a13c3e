#!/bin/bash
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --requeue
#SBATCH --open-mode=append
# Arguments of this script go to the training program.
exec culprit run --verdict-exit -- srun --nodes=2 python train.py "$@"
