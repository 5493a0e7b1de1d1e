"""Writes what a launcher has set for this rank into $PROBE_FOLDER/RANK.json: the variables that it may have, and the arguments."""
import json
import os
import sys

PREFIXES = ('TORCHELASTIC_', 'PADDLE_', 'FLAGS_selected', 'ROLE_', 'GROUP_', 'LOCAL_', 'MASTER_')
NAMES = ('RANK', 'WORLD_SIZE', 'OMP_NUM_THREADS', 'CUDA_VISIBLE_DEVICES', 'TORCH_NCCL_ASYNC_ERROR_HANDLING')
variables = {name: value for name, value in os.environ.items() if name in NAMES or name.startswith(PREFIXES)}
rank = os.environ.get('RANK') or os.environ['PADDLE_TRAINER_ID']
with open(f'{os.environ["PROBE_FOLDER"]}/{rank}.json', 'w') as file:
    json.dump({'variables': variables, 'arguments': sys.argv[1:]}, file)
