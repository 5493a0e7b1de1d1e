"""A second run of failed tests, alone on the machine.

Tests of the label `timed` (cmake/Module.cmake) start processes and say what must have happened within seconds. A machine
that others use can stand still for longer. Such a test that fails beside others and passes alone is unsteady: it is named
with what it printed, and has not failed. More than MOST at once are a fault, whatever a second run says."""
import os
import re
import subprocess

MOST = 3
FAILED = re.compile(r'^\[  FAILED  \] (\S+?)(?:, where .*)? \(\d+ ms\)$', re.M)


def timed_programs(preset, root):
    """The names of CTest's entries with the label."""
    listed = subprocess.run(['ctest', '--preset', preset, '-N', '-L', '^timed$'], cwd=root, capture_output=True, text=True).stdout
    return set(re.findall(r'^ *Test +#\d+: (\S+)$', listed, re.M))


def failed_tests(output):
    """The names of GoogleTest's tests that failed; None if the program has not come to its end."""
    ended = re.search(r'^\[==========\] \d+ tests? from .* ran\.', output, re.M)
    return sorted(set(FAILED.findall(output))) if ended else None


def pass_alone(program, tests, folder, environment=None, timeout=600):
    """Which of the program's tests pass when each is run alone."""
    kept = {name: value for name, value in (environment or os.environ).items() if not name.startswith('GTEST_')}
    passed = []
    for test in tests:
        try:
            result = subprocess.run([program, f'--gtest_filter={test}'], cwd=folder, env=kept, capture_output=True, text=True,
                                    errors='replace', timeout=timeout)
        except (subprocess.TimeoutExpired, OSError):
            continue
        if result.returncode == 0 and f'[       OK ] {test}' in result.stdout:
            passed.append(test)
    return passed
