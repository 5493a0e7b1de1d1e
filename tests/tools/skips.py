"""What a test may be skipped for in CI."""
import re

# What a machine may lack: hardware, rights, data that are not the repository's. And what `./run test interop` brings.
MAY_LACK = re.compile(r"needs a GPU|only root can|mounting a small disk needs root|root may read|this machine has no IPv6"
                      r"|this CPU has no \S+|no network namespaces here|no MNIST in |no \S*/mnist|\S*/shared/data\S* is not there"
                      r"|.*LOCKSTEP_(PYTORCH|PADDLE)_PYTHON|no srun|Slurm's daemons|no torchrun in PATH|no MPICH in PATH"
                      r"|takes long; ")


def reason_of(name, log):
    """Why GoogleTest's log says that a test was skipped."""
    block = log[log.index(f'[ RUN      ] {name}\n'):]
    reason = re.search(r'Skipped\n(.*)', block[:block.index('[  SKIPPED ]')])
    return reason.group(1).strip() if reason else 'no reason given'
