"""What git knows of when files of lockstep/ have changed."""
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def git(*words):
    """What git says; "" where there is no git, or no history of this folder."""
    try:
        return subprocess.run(['git', *words], cwd=ROOT, capture_output=True, text=True).stdout
    except OSError:
        return ''


def newest_first():
    """The paths of files of lockstep/ by their last change, some of which are gone; [] where the checkout has no history:
    one commit, as of a clone of depth 1, has changed all files at once."""
    if len(git('log', '-2', '--format=%h', '--', 'lockstep').split()) < 2:
        return []
    return list(dict.fromkeys(git('log', '--format=', '--name-only', '--', 'lockstep').split()))
