"""A second run of failed tests, alone on the machine.

Tests of the label `timed` (cmake/Module.cmake) start processes and say what must have happened within seconds. A machine
that others use can stand still for longer. Such a test that fails beside others and passes alone is unsteady: it is named
with what it printed, and has not failed. More than MOST at once are a fault, whatever a second run says, and so is one that
speaks of other weights, bits or files: no slow machine makes these."""
import os
import re
import signal
import subprocess

MOST = 3
FAILED = re.compile(r'^\[  FAILED  \] (\S+?)(?:, where .*)? \(\d+ ms\)$', re.M)
OF_BITS = re.compile(r'outcome|weights|sha256|steps_logged|\bbits\b|torch::equal|\.equal\(', re.I)


def timed_programs(preset, root):
    """The names of CTest's entries with the label."""
    listed = subprocess.run(['ctest', '--preset', preset, '-N', '-L', '^timed$'], cwd=root, capture_output=True, text=True).stdout
    return set(re.findall(r'^ *Test +#\d+: (\S+)$', listed, re.M))


def expressions_of(test, output):
    """What GoogleTest says of the test's failed expectations: the lines after "file:line: Failure", without the values."""
    begin = output.find(f'[ RUN      ] {test}\n')
    block = output[begin:output.find(f'[  FAILED  ] {test}', begin)]
    kept = []
    for failure in re.split(r'^\S+:\d+: Failure$', block, flags=re.M)[1:]:
        kept += [line for line in failure.splitlines()[:6] if not re.match(r' +(Which is|Actual)', line)]
    return '\n'.join(kept)


def failed_tests(output):
    """The names of GoogleTest's tests that failed; None if the program has not come to its end, or if one speaks of bits."""
    ended = re.search(r'^\[==========\] \d+ tests? from .* ran\.', output, re.M)
    failed = sorted(set(FAILED.findall(output)))
    return failed if ended and not any(OF_BITS.search(expressions_of(test, output)) for test in failed) else None


def pass_alone(program, tests, folder, environment=None, seconds=600):
    """Which of the program's tests pass when each is run alone, within so many seconds in all."""
    kept = {name: value for name, value in (environment or os.environ).items() if not name.startswith('GTEST_')}
    passed = []
    for test in tests:
        if seconds <= 0:
            break
        try:
            process = subprocess.Popen([program, f'--gtest_filter={test}'], cwd=folder, env=kept, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, text=True, errors='replace', start_new_session=True)
        except OSError:
            break
        try:
            output = process.communicate(timeout=seconds)[0]
            if process.returncode == 0 and f'[       OK ] {test}' in output:
                passed.append(test)
        except subprocess.TimeoutExpired:
            break
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    return passed
